"""Remembered message ids in SQL: rows in the order of their numbers, without another index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.ids import IdChanges
from storage.records import StoredId
from storage.sql.segments.ranges import ranges
from storage.sql.tables import NODE, REMEMBERED_ID

PART: Final = 10_000
"""Maximum ids that are loaded together at a start."""


INSERT: Final = insert(REMEMBERED_ID)
"""Parameters: the columns of REMEMBERED_ID, in their order."""

DELETE: Final = delete(REMEMBERED_ID).where(
    REMEMBERED_ID.c.number.between(bindparam("first"), bindparam("last"))
)
"""Parameters: first, last."""


def statements_of(changes: IdChanges) -> list[tuple[ClauseElement, Sequence[tuple[object, ...]]]]:
    """Return the statements that write `changes`, each with its rows of parameters."""
    rows = [
        (int(each.number), each.kind, each.address, each.digest, int(each.at_ms))
        for each in changes.remembered
        if each is not None
    ]
    written: list[tuple[ClauseElement, Sequence[tuple[object, ...]]]] = []
    if rows:
        written.append((INSERT, rows))
    if changes.forgotten:
        written.append((DELETE, ranges(changes.forgotten)))
    return written


def load(connection: Connection, behind: int) -> list[StoredId]:
    """Return the first ids with numbers above `behind`.

    Ids without a node are among them: left out, they would never be deleted, and their numbers
    would be given again.
    """
    rows = connection.execute(
        select(REMEMBERED_ID)
        .where(REMEMBERED_ID.c.number > behind)
        .order_by(REMEMBERED_ID.c.number)
        .limit(PART)
    )
    return [
        StoredId(
            number=row.number,
            kind=row.kind,
            address=row.address,
            digest=row.digest,
            at_ms=row.at_ms,
        )
        for row in rows
    ]


def drop_orphans(connection: Connection) -> int:
    """Delete the ids of nodes that the store does not have; return how many were deleted."""
    node = select(NODE.c.id).where(
        NODE.c.kind == REMEMBERED_ID.c.kind, NODE.c.address == REMEMBERED_ID.c.address
    )
    return connection.execute(delete(REMEMBERED_ID).where(~node.exists())).rowcount
