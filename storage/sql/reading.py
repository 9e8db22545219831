"""What is read of segments: by the numbers of their messages, or one after the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
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
"""More than these are asked for in one statement, where there are arrays."""

SEGMENTS_AT_ONCE: Final = 512
"""So many are read together at a start: up to 32,768 messages."""

BODIES_AT_ONCE: Final = 16
"""The same with their bytes: up to 4 MiB where none is of one larger message."""


def segment_of(row: Sequence[Any]) -> Segment:
    """A segment as its row has it. What a flipped bit has made another type of is not there."""
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
    """Some of the segments with messages behind that one, none where none is left."""
    return _following(connection, texts.of(FOLLOWING), behind=behind, part=SEGMENTS_AT_ONCE)


def following_with_bytes(connection: Connection, texts: Texts, behind: int) -> list[Segment]:
    """The same with their bytes."""
    return _following(
        connection, texts.of(FOLLOWING_WITH_BYTES), behind=behind, part=BODIES_AT_ONCE
    )


def _following(connection: Connection, text: str, *, behind: int, part: int) -> list[Segment]:
    rows = connection.exec_driver_sql(text, (behind + 1, part, 0)).all()
    found = [segment_of(row) for row in rows]
    # the first may end before: its last message, if any, is then that one
    return [each for each in found if each.last > behind or each is not found[0]]


def every(connection: Connection, texts: Texts, look: Callable[[Segment], None]) -> None:
    """Have all segments looked at, in their order; each may be changed or removed meanwhile."""
    behind = -1
    while found := following(connection, texts, behind):
        for segment in found:
            look(segment)
        behind = max(found[-1].last, found[-1].number)


def holding(
    connection: Connection, texts: Texts, numbers: list[int], *, with_bytes: bool
) -> Iterator[Segment]:
    """The segments that have messages of these numbers, which ascend, and some others.

    One after the other: the bytes of the next can lie in memory where those of the last lay.
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
    """Rows, from SQLite's own driver where that is below: a window is read with every portion."""
    driver = connection.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        return driver.execute(text, parameters)
    return connection.exec_driver_sql(text, parameters)


def learn(connection: Connection, texts: Texts, *, segments: Segments, wanted: Wanted) -> None:
    """Read what the next batch has to know."""
    if wanted.numbers:
        for segment in holding(connection, texts, wanted.numbers, with_bytes=False):
            segments.learn(segment)
    if wanted.with_bytes:
        for segment in holding(connection, texts, wanted.with_bytes, with_bytes=True):
            segments.learn(segment)
