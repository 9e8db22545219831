"""Up to where messages may have been delivered, queue by queue: asked after a kill (RCV-08)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import DELIVERED, QUEUE

DELETE: Final = delete(DELIVERED).where(DELIVERED.c.queue == bindparam("which"))
"""queue"""

INSERT: Final = insert(DELIVERED)
"""queue, position"""


def statements_of(
    positions: dict[str, int], queue_ids: Mapping[str, int]
) -> list[tuple[ClauseElement, Sequence[tuple[object, ...]]]]:
    """What puts these positions in place of those that were kept; it is rare."""
    rows = [
        (queue_ids[name], position) for name, position in positions.items() if name in queue_ids
    ]
    return [(DELETE, [(queue,) for queue, _ in rows]), (INSERT, rows)] if rows else []


def positions(connection: Connection) -> dict[str, int]:
    """All that are kept, by the names of their queues."""
    rows = connection.execute(
        select(QUEUE.c.name, DELIVERED.c.position).join(DELIVERED, DELIVERED.c.queue == QUEUE.c.id)
    )
    return {row.name: row.position for row in rows}


def forget_gone(connection: Connection) -> None:
    """Forget those of queues that have gone."""
    connection.execute(delete(DELIVERED).where(DELIVERED.c.queue.not_in(select(QUEUE.c.id))))


def forget_all(connection: Connection) -> None:
    """Every message that was delivered has been counted: nothing is in doubt."""
    connection.execute(delete(DELIVERED))
