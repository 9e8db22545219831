"""The check of a store: what is in it, what is damaged, what is left over. It changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, Table, func, inspect, select, text

from storage.contents import CHUNKS_MAX
from storage.sql.large_rows import (
    BESIDES,
    INCOMPLETE,
    LOST,
    content_of,
    is_chunk_sound,
    is_complete,
)
from storage.sql.reading import following_with_bytes
from storage.sql.schema import version_of
from storage.sql.segments.packing import numbers_of
from storage.sql.segments.segment import (
    RECORD,
    Segment,
    damage_at,
    is_large_at,
    queue_at,
)
from storage.sql.sqlite.sqlite import DRIVER_ERRORS, reason_of
from storage.sql.statements import Texts
from storage.sql.tables import BODY, CHUNK, LARGE, METADATA, QUARANTINE, QUEUE, SEGMENT

CHUNKS_TOGETHER: Final = 16
"""Chunks that are read at a time: 4 MiB."""

LARGE_TOGETHER: Final = 1000
"""Rows of large messages that are read at a time."""

TOLD_MAX: Final = 20
"""Maximum damaged messages and chunks that are named; all are counted."""

COMPLAINTS_MAX: Final = 100
"""Maximum complaints of SQLite's own check that are kept."""

Advance = Callable[[int], None]
"""Called with the number of messages examined since the last call."""


@dataclass
class Findings:
    """The findings of a check. `left_over` rows belong to nothing; the next start deletes them."""

    schema: str = ""
    rows: dict[str, int] = field(default_factory=lambda: {"message": 0})
    complaints: list[str] = field(default_factory=list)
    damaged: int = 0
    examples: list[str] = field(default_factory=list)
    damaged_chunks: int = 0
    quarantined: int = 0
    left_over: dict[str, int] = field(default_factory=lambda: {"messages": 0, "bodies": 0})

    def is_sound(self) -> bool:
        """Return whether the check has found no damage, except messages quarantined before."""
        return not self.complaints and self.damaged == 0 and self.damaged_chunks == 0


@dataclass
class Known:
    """Numbers of messages that were quarantined before, and of those with a row in `large`."""

    quarantined: set[int]
    large: set[int]


def messages_in(connection: Connection) -> int | None:
    """Return the number of messages in the store, None if it cannot be read."""
    try:
        lengths = func.sum(func.length(SEGMENT.c.facts))
        return int(connection.execute(select(lengths)).scalar() or 0) // int(RECORD)
    except DRIVER_ERRORS:
        return None


def _count_of(connection: Connection, table: str) -> int:
    found = connection.execute(select(func.count()).select_from(METADATA.tables[table]))
    return found.scalar() or 0


def check(connection: Connection, advance: Advance) -> Findings:
    """Check everything in the store, as far as it can be read."""
    found = Findings()
    try:
        _look(connection, found, advance)
    except DRIVER_ERRORS as error:
        found.complaints.append(reason_of(error))
    return found


def _look(connection: Connection, found: Findings, advance: Advance) -> None:
    found.schema = version_of(connection)
    tables = [name for name in METADATA.tables if inspect(connection).has_table(name)]
    missing = {QUEUE.name, SEGMENT.name, BODY.name} - set(tables)
    if missing:
        found.complaints.append(f"there is no table {', '.join(sorted(missing))}")
        return
    if connection.dialect.name == "sqlite":
        found.complaints += _integrity(connection)
    known = _numbers_in(connection, QUARANTINE, tables)
    found.quarantined = len(known)
    large = _numbers_in(connection, LARGE, tables)
    _look_at_messages(connection, found, Known(known, large), advance=advance)
    if CHUNK.name in tables:
        _look_at_chunks(connection, found)
        _look_at_large_messages(connection, found, known)
    found.rows |= {name: _count_of(connection, name) for name in tables}
    found.left_over["bodies"] = _bodies_left_over(connection)


def _integrity(connection: Connection) -> list[str]:
    """Return the complaints of SQLite's own integrity check."""
    try:
        asked = connection.execute(text(f"PRAGMA integrity_check({COMPLAINTS_MAX})"))
        told = [str(complaint) for complaint in asked.scalars()]
    except DRIVER_ERRORS as error:
        return [reason_of(error)]
    return [] if told == ["ok"] else told


def _numbers_in(connection: Connection, table: Table, tables: list[str]) -> set[int]:
    """Return the numbers of a table's rows; empty if it is none of the `tables` that are there."""
    if table.name not in tables:
        return set()
    return set(connection.execute(select(table.c.number)).scalars())


def _look_at_messages(
    connection: Connection, found: Findings, known: Known, *, advance: Advance
) -> None:
    queues = set(connection.execute(select(QUEUE.c.id)).scalars())
    texts = Texts(connection.dialect)
    behind = -(2**63)
    while segments := following_with_bytes(connection, texts, behind):
        for segment in segments:
            _look_at(segment, found, known, queues=queues)
            advance(int(segment.slots()))
        behind = max(segments[-1].last, segments[-1].number)


def _look_at(segment: Segment, found: Findings, known: Known, *, queues: set[int]) -> None:
    facts = segment.facts
    for slot, number in enumerate(numbers_of(segment)):
        at = slot * int(RECORD)
        damage = damage_at(segment, at)
        if not damage and is_large_at(facts, at) and number not in known.large:
            damage = LOST
        found.rows["message"] += 1
        if damage and number not in known.quarantined:
            found.damaged += 1
            _give_example(found, f"message {number}: {damage}")
        if not damage and queue_at(facts, at) not in queues:
            found.left_over["messages"] += 1


def _look_at_chunks(connection: Connection, found: Findings) -> None:
    """Compare the checksums of the chunks of large messages."""
    behind = -1
    asked = select(CHUNK).order_by(CHUNK.c.number).limit(CHUNKS_TOGETHER)
    while rows := connection.execute(asked.where(CHUNK.c.number > behind)).all():
        for row in rows:
            behind = row.number
            if not is_chunk_sound(row):
                found.damaged_chunks += 1
                content, index = divmod(row.number, CHUNKS_MAX)
                _give_example(found, f"chunk {index} of content {content} is damaged")


def _look_at_large_messages(connection: Connection, found: Findings, known: set[int]) -> None:
    """Compare the checksums of what large messages have besides, and look for missing chunks."""
    behind = -1
    asked = select(LARGE).order_by(LARGE.c.number).limit(LARGE_TOGETHER)
    while rows := connection.execute(asked.where(LARGE.c.number > behind)).all():
        for row in rows:
            behind = row.number
            content = content_of(row)
            if content is None:
                damage = BESIDES
            else:
                damage = "" if is_complete(connection, content) else INCOMPLETE
            if damage and row.number not in known:
                found.damaged += 1
                _give_example(found, f"message {row.number}: {damage}")


def _give_example(found: Findings, text: str) -> None:
    if len(found.examples) < TOLD_MAX:
        found.examples.append(text)


def _bodies_left_over(connection: Connection) -> int:
    unused = BODY.c.number.not_in(select(SEGMENT.c.number))
    return connection.execute(select(func.count()).where(unused)).scalar() or 0
