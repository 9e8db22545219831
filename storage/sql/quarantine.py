"""Damaged messages: quarantined when they are found, and never loaded again (P10).

A row of the table `quarantine` names the message. Its record and bytes stay where they are, so
that as little as possible is written to a file that has proved unreliable.
"""

from __future__ import annotations

import time
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select

from storage.facts import QuarantinedMessage
from storage.sql.large_rows import vouch as vouch_body
from storage.sql.reading import holding
from storage.sql.segments.packing import numbers_of
from storage.sql.segments.segment import (
    RECORD,
    Damage,
    Segment,
    bytes_at,
    damage_at,
    is_large_at,
    is_sound,
    queue_at,
)
from storage.sql.statements import CHANGE_SEGMENT, DELETE_BODIES, DELETE_SEGMENTS, Texts
from storage.sql.tables import LARGE, QUARANTINE, QUEUE

NOBODYS: Final = 0
"""Id of no queue: that of a damaged message whose queue is unknown."""


def quarantine(connection: Connection, damaged: list[Damage]) -> None:
    """Note these messages as quarantined, so that they are not loaded again."""
    found_ms = time.time_ns() // 1_000_000
    connection.execute(
        insert(QUARANTINE),
        [{"number": n, "found_ms": found_ms, "reason": reason} for n, reason in damaged],
    )


def count(connection: Connection) -> int:
    """Return the number of quarantined messages."""
    return connection.execute(select(func.count()).select_from(QUARANTINE)).scalar() or 0


def forget_gone(connection: Connection, texts: Texts) -> set[int]:
    """Remove messages whose rows are gone, with their queues for instance. Return those left."""
    left = set()
    for number in connection.execute(select(QUARANTINE.c.number)).scalars().all():
        if find(connection, texts, number) is None:
            connection.execute(delete(QUARANTINE).where(QUARANTINE.c.number == number))
        else:
            left.add(number)
    return left


# -- what an operator may do about quarantined messages


class Found:
    """The segment of a message that may be damaged, and the offset `at` of the message's record."""

    def __init__(self, segment: Segment, at: int) -> None:
        self.segment: Final = segment
        self.at: Final = at

    def queue(self) -> int:
        """Return the id of the message's queue, NOBODYS if its record is damaged."""
        facts = self.segment.facts
        return int(queue_at(facts, self.at)) if is_sound(facts, self.at) else NOBODYS

    def encoded(self) -> bytes:
        """Return the message's bytes as far as they are there, empty if its record is damaged."""
        facts, body = self.segment.facts, self.segment.body
        return bytes_at(facts, self.at, body) if body and is_sound(facts, self.at) else b""


def find(connection: Connection, texts: Texts, number: int) -> Found | None:
    """Return where a message is, even if it is damaged; None if it is not stored."""
    for segment in holding(connection, texts, [number], with_bytes=True):
        numbers = numbers_of(segment)
        if number in numbers:
            return Found(segment, numbers.index(number) * int(RECORD))
    return None


def listed(connection: Connection, behind: int, at_most: int) -> list[QuarantinedMessage]:
    """Return the first `at_most` messages with numbers above `behind`, ascending."""
    texts = Texts(connection.dialect)
    rows = connection.execute(
        select(QUARANTINE)
        .where(QUARANTINE.c.number > behind)
        .order_by(QUARANTINE.c.number)
        .limit(at_most)
    ).all()
    return [_told(connection, texts, row) for row in rows]


def _told(connection: Connection, texts: Texts, row: Row[Any]) -> QuarantinedMessage:
    found = find(connection, texts, row.number)
    named = select(QUEUE.c.name).where(QUEUE.c.id == (NOBODYS if found is None else found.queue()))
    queue = connection.execute(named).scalar() or ""
    size = 0 if found is None else len(found.encoded())
    return QuarantinedMessage(row.number, queue, row.found_ms, row.reason, size)


def restore(connection: Connection, number: int) -> str:
    """Accept a quarantined message as it is now, so that it is loaded again.

    Return why not if that fails, else an empty text.
    """
    if connection.execute(select(QUARANTINE).where(QUARANTINE.c.number == number)).first() is None:
        return "is not quarantined"
    texts = Texts(connection.dialect)
    found = find(connection, texts, number)
    if found is None:
        return "has no row any more"
    encoded = found.encoded()
    large = connection.execute(select(LARGE.c.number).where(LARGE.c.number == number)).first()
    # there may be nothing before a large body
    if not encoded and (large is None or not is_sound(found.segment.facts, found.at)):
        return damage_at(found.segment, found.at) or "has no bytes"
    found.segment.vouch(found.at, encoded)
    damage = damage_at(found.segment, found.at)
    if not damage:
        is_large = is_large_at(found.segment.facts, found.at)
        damage = vouch_body(connection, number, is_large=is_large)
    if damage:
        return damage
    _write(connection, texts, found.segment)
    connection.execute(delete(QUARANTINE).where(QUARANTINE.c.number == number))
    return ""


def drop(connection: Connection, number: int) -> str:
    """Delete a quarantined message. Return why not if that fails, else an empty text."""
    gone = connection.execute(delete(QUARANTINE).where(QUARANTINE.c.number == number))
    if gone.rowcount == 0:
        return "is not quarantined"
    texts = Texts(connection.dialect)
    found = find(connection, texts, number)
    if found is not None:
        segment = found.segment
        segment.cut(found.at)
        if segment.facts:
            _write(connection, texts, segment)
        else:
            first = last = int(segment.number)
            for statement in (DELETE_SEGMENTS, DELETE_BODIES):
                connection.exec_driver_sql(texts.of(statement), (first, last))
    return ""


def _write(connection: Connection, texts: Texts, segment: Segment) -> None:
    row = (int(segment.size), segment.facts, int(segment.number))
    connection.exec_driver_sql(texts.of(CHANGE_SEGMENT), row)
