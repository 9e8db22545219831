"""The event log in SQL: rows in the order of their ids, without another index.

Old rows are removed in steps of bounded size, and a reader examines a bounded part at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    bindparam,
    cast,
    delete,
    func,
    insert,
    literal_column,
    select,
)
from sqlalchemy.sql.expression import ClauseElement

from storage.events import (
    SEPARATOR,
    EventChanges,
    EventColumns,
    EventPage,
    EventQuery,
    EventRow,
    columns_of,
)
from storage.sql.tables import EVENT

SCAN_MAX: Final = 20_000
"""Maximum rows that one query examines, whether its filters pass them or not: some milliseconds."""


INSERT: Final = insert(EVENT)
"""Parameters: the columns of EVENT, in their order."""

OLDEST: Final = select(func.min(EVENT.c.id)).scalar_subquery()
NEWEST: Final = select(func.max(EVENT.c.id)).scalar_subquery()

TRIM: Final = delete(EVENT).where(
    EVENT.c.id < OLDEST + bindparam("step"),
    EVENT.c.id < NEWEST,
    EVENT.c.id
    < func.coalesce(
        select(func.min(EVENT.c.id))
        .where(
            EVENT.c.id < OLDEST + bindparam("span"),
            EVENT.c.at_us >= bindparam("before"),
            EVENT.c.id >= bindparam("floor"),
        )
        .scalar_subquery(),
        NEWEST,
    ),
)
"""Parameters: step, step again, before_us, floor. The last subquery: the first row that stays."""

BOUNDS: Final = select(OLDEST, NEWEST)
"""Two subqueries, since SQLite reads every row if one query asks for both minimum and maximum."""

SEPARATOR_LITERAL: Final = literal_column(f"'{SEPARATOR}'", Text)


def statements_of(
    changes: EventChanges,
) -> list[tuple[ClauseElement, Sequence[tuple[object, ...]]]]:
    """Return the statements that write `changes`, each with its rows of parameters."""
    written: list[tuple[ClauseElement, Sequence[tuple[object, ...]]]] = []
    if changes.rows:
        written.append((INSERT, changes.rows))
    trim = changes.trim
    if trim is not None:
        step = int(trim.step)
        written.append((TRIM, [(step, step, int(trim.before_us), int(trim.floor))]))
    return written


def first_free(connection: Connection) -> int:
    """Return the lowest id that no row has ever had: the newest row is never removed."""
    return int(connection.execute(select(func.max(EVENT.c.id))).scalar() or 0) + 1


def bounds(connection: Connection) -> tuple[int, int]:
    """Return the oldest and the newest id, 0 and 0 if there is no row."""
    oldest, newest = connection.execute(BOUNDS).one()
    return (0, 0) if newest is None else (int(oldest), int(newest))


def _stretch(connection: Connection, query: EventQuery, at_most: int) -> tuple[int, int, bool]:
    """Return the ids that one call examines, and whether these reach the end of the query.

    They are those above the first value, up to the second; none if the two are equal.
    """
    oldest, newest = bounds(connection)
    behind = int(query.behind)
    last = min(newest, int(query.up_to)) if query.up_to else newest
    if last <= behind or last < oldest:
        return behind, behind, True
    behind = max(behind, oldest - 1)
    upto = min(last, behind + at_most)
    return behind, upto, upto >= last


def _wanted(behind: int, upto: int, query: EventQuery) -> list[ColumnElement[bool]]:
    found = [EVENT.c.id > behind, EVENT.c.id <= upto]
    if query.address:
        found.append(EVENT.c.address == query.address)
    if query.kind:
        found.append(EVENT.c.kind == query.kind)
    if query.since_us:
        found.append(EVENT.c.at_us >= int(query.since_us))
    if query.until_us:
        found.append(EVENT.c.at_us < int(query.until_us))
    return found


def load(connection: Connection, query: EventQuery) -> EventPage:
    """Return the first rows that `query` asks for; at most SCAN_MAX rows are examined."""
    behind, upto, is_last = _stretch(connection, query, SCAN_MAX)
    if upto == behind:
        return EventPage([], looked_to=behind, is_last=is_last)
    wanted = select(EVENT).where(*_wanted(behind, upto, query))
    found = connection.execute(wanted.order_by(EVENT.c.id).limit(int(query.at_most)))
    rows: list[EventRow] = [tuple(row) for row in found]
    if len(rows) < query.at_most:
        return EventPage(rows, looked_to=upto, is_last=is_last)
    looked_to = rows[-1][0]
    return EventPage(rows, looked_to=looked_to, is_last=is_last and looked_to == upto)


def load_columns(connection: Connection, query: EventQuery) -> EventColumns:
    """Return rows in columns, which the database puts together: three times as fast as `load`."""
    behind, upto, is_last = _stretch(connection, query, min(int(query.at_most), SCAN_MAX))
    if upto == behind:
        return columns_of([], looked_to=behind, is_last=is_last)
    wanted = _wanted(behind, upto, query)
    if connection.dialect.name == "postgresql":
        # the subquery sorts the rows: otherwise the order in which they are joined is undefined
        rows = select(EVENT).where(*wanted).order_by(EVENT.c.id).subquery()
        joined = [func.string_agg(cast(each, Text), SEPARATOR_LITERAL) for each in rows.c]
        found = connection.execute(select(func.count(), *joined).select_from(rows)).one()
    else:
        # SQLite reads rows by ascending id; a subquery or a bound separator takes twice as long
        joined = [func.group_concat(each, SEPARATOR_LITERAL) for each in EVENT.c]
        found = connection.execute(select(func.count(), *joined).where(*wanted)).one()
    return EventColumns(
        [text or "" for text in found[1:]], count=found[0], looked_to=upto, is_last=is_last
    )
