"""Messages that are damaged: set aside where they are found, and never loaded again (P10).

A row of the table `quarantine` names the message. The row of the message itself stays where
it lies, so nothing more is written to a file that has shown to be unreliable than has to be.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select

from storage.records import StoredMessage
from storage.sql.rows import damage_of, message_of
from storage.sql.tables import MESSAGE, QUARANTINE

Damage = tuple[int, str]
"""The number of a message, and what is wrong with it."""


class Sifted:
    """Rows of messages, the sound apart from the damaged."""

    def __init__(self, rows: Sequence[Row[Any]], names: dict[int, str]) -> None:
        self.sound: Final[list[StoredMessage]] = []
        self.damaged: Final[list[Damage]] = []
        for row in rows:
            damage = damage_of(row, row.shared)
            if damage:
                self.damaged.append((row.number, damage))
            else:
                self.sound.append(message_of(row, names[row.queue], row.shared))


def set_aside(connection: Connection, damaged: list[Damage]) -> None:
    """Keep these messages from being loaded again."""
    found_ms = time.time_ns() // 1_000_000
    connection.execute(
        insert(QUARANTINE),
        [{"number": n, "found_ms": found_ms, "reason": reason} for n, reason in damaged],
    )


def count(connection: Connection) -> int:
    """How many messages are set aside."""
    return connection.execute(select(func.count()).select_from(QUARANTINE)).scalar() or 0


def forget_gone(connection: Connection) -> None:
    """Forget those whose rows are gone, with their queues for instance."""
    connection.execute(
        delete(QUARANTINE).where(QUARANTINE.c.number.not_in(select(MESSAGE.c.number)))
    )
