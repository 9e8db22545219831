"""Positions in queues up to which messages may have been delivered: read after a kill (RCV-08)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import DELIVERED, QUEUE

DELETE: Final = delete(DELIVERED).where(DELIVERED.c.queue == bindparam("which"))
"""Parameters: queue."""

INSERT: Final = insert(DELIVERED)
"""Parameters: queue, position."""


def statements_of(
    positions: dict[str, int], queue_ids: Mapping[str, int]
) -> list[tuple[ClauseElement, Sequence[tuple[object, ...]]]]:
    """Return the statements that replace the stored positions with these; needed rarely."""
    rows = [
        (queue_ids[name], position) for name, position in positions.items() if name in queue_ids
    ]
    return [(DELETE, [(queue,) for queue, _ in rows]), (INSERT, rows)] if rows else []


def positions(connection: Connection) -> dict[str, int]:
    """Return all stored positions by the names of their queues."""
    rows = connection.execute(
        select(QUEUE.c.name, DELIVERED.c.position).join(DELIVERED, DELIVERED.c.queue == QUEUE.c.id)
    )
    return {row.name: row.position for row in rows}


def rows(connection: Connection) -> dict[int, int]:
    """Return all stored positions by the ids of their queues."""
    return {row.queue: row.position for row in connection.execute(select(DELIVERED))}


def put(connection: Connection, positions: Mapping[int, int]) -> None:
    """Store positions of queues that have none, by their ids."""
    if positions:
        parameters = [{"queue": each, "position": at} for each, at in positions.items()]
        connection.execute(INSERT, parameters)


def forget_gone(connection: Connection) -> None:
    """Delete the positions of removed queues."""
    connection.execute(delete(DELIVERED).where(DELIVERED.c.queue.not_in(select(QUEUE.c.id))))


def forget_all(connection: Connection) -> None:
    """Delete all positions, if all delivered messages have been counted: none is in doubt."""
    connection.execute(delete(DELIVERED))
