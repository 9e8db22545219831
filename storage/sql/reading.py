"""Reading of segments: by the numbers of their messages, or one after the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from storage.sql.segments.ranges import ranges
from storage.sql.segments.segment import Segment
from storage.sql.segments.segments import Segments, Wanted
from storage.sql.statements import (
    BETWEEN,
    BETWEEN_WITH_BYTES,
    FOLLOWING,
    FOLLOWING_WITH_BYTES,
    HOLDING,
    HOLDING_WITH_BYTES,
    Texts,
)

RANGES_MAX: Final = 8
"""Maximum ranges of numbers that are read with one statement each. More are read with a single
statement, if the database has arrays."""

SEGMENTS_AT_ONCE: Final = 512
"""Segments that are read together at a start: up to 32,768 messages."""

BODIES_AT_ONCE: Final = 16
"""Segments that are read together with their bytes: up to 4 MiB, unless one holds a single larger
message."""


def segment_of(row: Sequence[Any]) -> Segment:
    """Return the segment of a row. A value is left out if a flipped bit has changed its type."""
    number, size, facts, *body = row
    encoded, labels = body or (None, None)
    return Segment(
        number,
        size if isinstance(size, int) else 0,
        facts if isinstance(facts, bytes) else b"",
        body=encoded if isinstance(encoded, bytes) else None,
        labels=labels if isinstance(labels, bytes) else b"",
    )


def following(connection: Connection, texts: Texts, behind: int) -> list[Segment]:
    """Return some of the segments with messages above number `behind`, [] if none is left."""
    return _following(connection, texts.of(FOLLOWING), behind=behind, part=SEGMENTS_AT_ONCE)


def following_with_bytes(connection: Connection, texts: Texts, behind: int) -> list[Segment]:
    """Return segments like `following`, with their bytes."""
    return _following(
        connection, texts.of(FOLLOWING_WITH_BYTES), behind=behind, part=BODIES_AT_ONCE
    )


def _following(connection: Connection, text: str, *, behind: int, part: int) -> list[Segment]:
    rows = connection.exec_driver_sql(text, (behind + 1, part, 0)).all()
    return behind_of([segment_of(row) for row in rows], behind)


def behind_of(found: list[Segment], behind: int) -> list[Segment]:
    """Return those segments that have messages above number `behind`; only the first may have none.

    The first begins at the message next to it, or before it.
    """
    return [each for each in found if each.last > behind or each is not found[0]]


def portions(connection: Connection, texts: Texts) -> Iterator[list[Segment]]:
    """Yield all segments in portions, in their order; they may be changed or removed meanwhile."""
    behind = -1
    while found := following(connection, texts, behind):
        behind = max(found[-1].last, found[-1].number)
        yield found


def holding(
    connection: Connection, texts: Texts, numbers: list[int], *, with_bytes: bool
) -> Iterator[Segment]:
    """Yield the segments with messages of these ascending numbers, and some others.

    They are read one after the other, so that the bytes of each can reuse the memory of the last.
    """
    spans = ranges(numbers)
    if connection.dialect.name == "postgresql" and len(spans) > RANGES_MAX:
        text = texts.of(HOLDING_WITH_BYTES if with_bytes else HOLDING)
        yield from map(segment_of, connection.exec_driver_sql(text, (numbers,)))
        return
    text = texts.of(BETWEEN_WITH_BYTES if with_bytes else BETWEEN)
    number = behind = -1
    for first, last in spans:
        if last <= behind:
            continue
        for row in _rows(connection, text, (max(first, behind + 1), last)):
            if row[0] > number:
                segment = segment_of(row)
                number, behind = int(segment.number), int(segment.last)
                yield segment


def _rows(
    connection: Connection, text: str, parameters: tuple[int, ...]
) -> Iterable[Sequence[Any]]:
    """Return rows, from SQLite's own driver if that is in use.

    SQLAlchemy would cost more, and every portion of a long queue is loaded this way.
    """
    driver = connection.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        return driver.execute(text, parameters)
    return connection.exec_driver_sql(text, parameters)


def learn(connection: Connection, texts: Texts, *, segments: Segments, wanted: Wanted) -> None:
    """Read the segments that `wanted` asks for, before the next batch, into `segments`."""
    if wanted.numbers:
        for segment in holding(connection, texts, wanted.numbers, with_bytes=False):
            segments.learn(segment)
    if wanted.with_bytes:
        for segment in holding(connection, texts, wanted.with_bytes, with_bytes=True):
            segments.learn(segment)
