"""The lifecycle journal in SQL: rows in the order of their ids, no other index.

Old rows go in steps of bounded size, and a reader looks at a bounded part at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select
from sqlalchemy.sql.expression import ClauseElement

from storage.events import EventChanges, EventPage, EventQuery, EventRow
from storage.sql.tables import EVENT

SCAN_MAX: Final = 20_000
"""Rows that one query looks at, whatever its filters make of them: some milliseconds."""


INSERT: Final = insert(EVENT)
"""The columns of EVENT, in their order."""

TRIM: Final = delete(EVENT).where(
    EVENT.c.id < select(func.min(EVENT.c.id)).scalar_subquery() + bindparam("step"),
    EVENT.c.id < select(func.max(EVENT.c.id)).scalar_subquery(),
    or_(EVENT.c.at_us < bindparam("before"), EVENT.c.id < bindparam("floor")),
)
"""step, before_us, floor"""


def statements_of(
    changes: EventChanges,
) -> list[tuple[ClauseElement, Sequence[tuple[object, ...]]]]:
    """What is to be written for `changes`."""
    written: list[tuple[ClauseElement, Sequence[tuple[object, ...]]]] = []
    if changes.rows:
        written.append((INSERT, changes.rows))
    trim = changes.trim
    if trim is not None:
        written.append((TRIM, [(int(trim.step), int(trim.before_us), int(trim.floor))]))
    return written


def first_free(connection: Connection) -> int:
    """The lowest id that no row has ever had: the newest row is never removed."""
    return int(connection.execute(select(func.max(EVENT.c.id))).scalar() or 0) + 1


def load(connection: Connection, query: EventQuery) -> EventPage:
    """What `query` asks for, as far as SCAN_MAX rows tell."""
    oldest, newest = connection.execute(select(func.min(EVENT.c.id), func.max(EVENT.c.id))).one()
    if newest is None or newest <= query.behind:
        return EventPage([], looked_to=query.behind, is_last=True)
    behind = max(int(query.behind), oldest - 1)
    upto = min(newest, behind + SCAN_MAX)
    wanted = select(EVENT).where(EVENT.c.id > behind, EVENT.c.id <= upto)
    if query.address:
        wanted = wanted.where(EVENT.c.address == query.address)
    if query.kind:
        wanted = wanted.where(EVENT.c.kind == query.kind)
    if query.since_us:
        wanted = wanted.where(EVENT.c.at_us >= int(query.since_us))
    if query.until_us:
        wanted = wanted.where(EVENT.c.at_us < int(query.until_us))
    found = connection.execute(wanted.order_by(EVENT.c.id).limit(int(query.at_most)))
    rows: list[EventRow] = [tuple(row) for row in found]
    looked_to = rows[-1][0] if len(rows) == query.at_most else upto
    return EventPage(rows, looked_to=looked_to, is_last=looked_to >= newest)
