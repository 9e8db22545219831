"""Messages that are damaged: set aside where they are found, and never loaded again (P10).

A row of the table `quarantine` names the message. The row of the message itself stays where
it lies, so nothing more is written to a file that has shown to be unreliable than has to be.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update

from storage.facts import SetAside
from storage.records import StoredMessage
from storage.sql.rows import checksum, damage_of, message_of
from storage.sql.statements import MESSAGE_ROWS
from storage.sql.tables import BODY, MESSAGE, QUARANTINE, QUEUE

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


# -- what an operator may do about them


def listed(connection: Connection, behind: int, at_most: int) -> list[SetAside]:
    """Those with numbers above `behind`, ascending."""
    stored = func.coalesce(MESSAGE.c.encoded, BODY.c.encoded)
    rows = connection.execute(
        select(
            QUARANTINE.c.number,
            func.coalesce(QUEUE.c.name, "").label("queue"),
            QUARANTINE.c.found_ms,
            QUARANTINE.c.reason,
            func.coalesce(func.length(stored), 0).label("size"),
        )
        .select_from(
            QUARANTINE.outerjoin(MESSAGE, MESSAGE.c.number == QUARANTINE.c.number)
            .outerjoin(BODY, BODY.c.number == MESSAGE.c.body)
            .outerjoin(QUEUE, QUEUE.c.id == MESSAGE.c.queue)
        )
        .where(QUARANTINE.c.number > behind)
        .order_by(QUARANTINE.c.number)
        .limit(at_most)
    )
    return [SetAside(row.number, row.queue, row.found_ms, row.reason, row.size) for row in rows]


def restore(connection: Connection, number: int) -> str:
    """Take a message as it is now for what was stored; why not, where that cannot be."""
    if connection.execute(select(QUARANTINE).where(QUARANTINE.c.number == number)).first() is None:
        return "is not set aside"
    asked = MESSAGE_ROWS.where(MESSAGE.c.number == bindparam("which"))
    text = str(asked.compile(dialect=connection.dialect))
    row = connection.exec_driver_sql(text, (number,)).first()
    if row is None:
        return "has no row any more"
    encoded = row.encoded if row.body is None else row.shared
    if not isinstance(encoded, bytes):
        return "has no bytes"
    anew = update(MESSAGE).where(MESSAGE.c.number == number)
    connection.execute(anew.values(checksum=checksum(number, encoded)))
    repaired = connection.exec_driver_sql(text, (number,)).one()
    damage = damage_of(repaired, repaired.shared)
    if not damage:
        connection.execute(delete(QUARANTINE).where(QUARANTINE.c.number == number))
    return damage


def drop(connection: Connection, number: int) -> str:
    """Delete a message that is set aside; why not, where that cannot be."""
    gone = connection.execute(delete(QUARANTINE).where(QUARANTINE.c.number == number))
    if gone.rowcount == 0:
        return "is not set aside"
    connection.execute(delete(MESSAGE).where(MESSAGE.c.number == number))
    return ""
