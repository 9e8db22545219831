"""The remembered ids of messages in SQL: rows in the order of their numbers, no other index."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Dialect, bindparam, delete, insert, select

from storage.ids import IdChanges
from storage.records import StoredId
from storage.sql.rows import ranges
from storage.sql.tables import NODE, REMEMBERED_ID

PART: Final = 10_000
"""Ids loaded together at a start."""


class IdStatements:
    """SQL texts for one dialect, positional; run as driver SQL with tuples."""

    def __init__(self, dialect: Dialect) -> None:
        number = REMEMBERED_ID.c.number
        self.insert: Final = str(insert(REMEMBERED_ID).compile(dialect=dialect))
        """The columns of REMEMBERED_ID, in their order."""
        self.delete: Final = str(
            delete(REMEMBERED_ID)
            .where(number.between(bindparam("first"), bindparam("last")))
            .compile(dialect=dialect)
        )
        """first, last"""


def write(connection: Connection, verbs: IdStatements, changes: IdChanges) -> None:
    """Put `changes` into the transaction at hand."""
    rows = [
        (int(each.number), each.kind, each.address, each.digest, int(each.at_ms))
        for each in changes.remembered
        if each is not None
    ]
    if rows:
        connection.exec_driver_sql(verbs.insert, rows)
    if changes.forgotten:
        connection.exec_driver_sql(verbs.delete, ranges(changes.forgotten))


def load(connection: Connection, behind: int) -> list[StoredId]:
    """The first ids with numbers above `behind`, of nodes that are there."""
    known = (NODE.c.kind == REMEMBERED_ID.c.kind) & (NODE.c.address == REMEMBERED_ID.c.address)
    rows = connection.execute(
        select(REMEMBERED_ID)
        .join(NODE, known)
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
