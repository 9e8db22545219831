"""Contents of large messages in SQL: rows of chunks, and which messages have them.

A chunk's number consists of that of its content and its index there, so that the chunks of one
content are stored together, and no database index is needed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, final

from sqlalchemy import Connection, bindparam, delete, func, insert, select
from sqlalchemy.sql.dml import UpdateBase

from storage.api import ContentError
from storage.batch import Batch
from storage.contents import CHUNKS_MAX, ContentChanges, ContentUses
from storage.records import StoredContent, StoredMessage, StoredPlaces
from storage.sql.large_rows import BESIDES, LOST, content_of, is_chunk_sound, is_number, large_row
from storage.sql.quarantine import NOBODYS, find
from storage.sql.rows import checksum
from storage.sql.segments.packing import Sifting
from storage.sql.statements import Texts
from storage.sql.tables import CHUNK, LARGE, QUARANTINE

SWEPT_AT_ONCE: Final = 16
"""Maximum chunks that one step of a sweep deletes, so that a commit does not wait for more."""

INSERT_CHUNK: Final = insert(CHUNK)
"""Parameters: number, checksum, data."""

INSERT_LARGE: Final = insert(LARGE)
"""Parameters: number, content, size, beginning, checksum."""

INSERT_QUARANTINE: Final = insert(QUARANTINE)
"""Parameters: number, found_ms, reason."""

DELETE_LARGE: Final = delete(LARGE).where(LARGE.c.number == bindparam("which"))
"""Parameters: number."""

NO_CONTENT: Final = 0
"""Number of no content: for a message whose row is damaged."""

Rows = Sequence[tuple[object, ...]]


@final
class Chunks:
    """The uses of contents, and the conversion of a batch's content changes to rows."""

    def __init__(self) -> None:
        self.uses: Final = ContentUses()
        self.first = 1
        """The lowest number above those of all contents that were there at the start."""

    def apply(self, batch: Batch) -> list[tuple[UpdateBase, Rows]]:
        """Apply `batch` to the uses, and return the statements to write. Call once per batch."""
        statements: list[tuple[UpdateBase, Rows]] = []
        changes = batch.contents
        if changes is not None:
            for content in changes.held:
                self.uses.hold(content)
            rows = [_chunk(content, index, data) for content, index, data in changes.chunks]
            statements.append((INSERT_CHUNK, rows))
        gone = self._queues_removed(batch) if self.uses.any() else []
        if changes is not None:
            statements.append((INSERT_LARGE, self._added(batch)))
        gone += self.uses.remove(batch.removed)
        statements.append((DELETE_LARGE, [(number,) for number in gone]))
        if changes is not None:
            statements.append((INSERT_QUARANTINE, _quarantined(changes)))
            for content in changes.let_go:
                self.uses.let_go(content)
        return [(statement, rows) for statement, rows in statements if rows]

    def _queues_removed(self, batch: Batch) -> list[int]:
        gone = [node.address for node in batch.nodes_removed if node.kind == "queue"]
        return [
            number
            for queue in gone + batch.subscriptions_removed
            for number in self.uses.remove_queue(queue)
        ]

    def _added(self, batch: Batch) -> list[tuple[int, int, int, bytes, int]]:
        rows: list[tuple[int, int, int, bytes, int]] = []
        for message in batch.appended:
            if message is not None and message.content is not None:
                rows.append(large_row(int(message.number), message.content))
                content = int(message.content.number)
                self.uses.add(int(message.number), content, message.queue)
        return rows


def load(connection: Connection, texts: Texts, names: Mapping[int, str]) -> Chunks:
    """Return the uses of contents, and the unused ones as garbage.

    Rows of large messages that are gone are deleted.
    """
    chunks = Chunks()
    used: set[int] = set()
    for row in connection.execute(select(LARGE.c.number, LARGE.c.content)).all():
        found = find(connection, texts, row.number)
        if found is None:
            connection.execute(delete(LARGE).where(LARGE.c.number == row.number))
            continue
        queue = names.get(found.queue())
        content = row.content if is_number(row.content) else NO_CONTENT
        if queue is not None:
            chunks.uses.add(row.number, content, queue)
        if queue is not None or found.queue() == NOBODYS:
            used.add(content)
    present = _present(connection)
    chunks.uses.garbage.extend(content for content in present if content not in used)
    chunks.first = max([0, *used, *present]) + 1
    return chunks


def complete(
    connection: Connection, chunks: Chunks, found: Sifting
) -> tuple[list[StoredMessage], list[tuple[int, str]]]:
    """Return the sound messages with their contents, and those without a sound row in `large`."""
    if not chunks.uses.any() and not found.large:
        return found.sound, []
    numbers = [int(message.number) for message in found.sound]
    large = {number for number in numbers if chunks.uses.content_of(number) is not None}
    contents: dict[int, StoredContent] = {}
    unsound: dict[int, str] = {}
    for row in connection.execute(select(LARGE).where(LARGE.c.number.in_(large))):
        stored = content_of(row)
        if stored is not None:
            contents[row.number] = stored
        else:
            unsound[row.number] = BESIDES
    for number in found.large:
        if number not in contents:
            unsound.setdefault(number, LOST)
    return [
        message.with_content(contents.get(int(message.number)))
        for message in found.sound
        if int(message.number) not in unsound
    ], list(unsound.items())


def weigh(connection: Connection, chunks: Chunks, found: StoredPlaces) -> None:
    """Add the sizes of their contents to the sizes of large messages."""
    if not found.numbers or not chunks.uses.any():
        return
    within = LARGE.c.number.between(found.numbers[0], found.numbers[-1])
    rows = connection.execute(select(LARGE.c.number, LARGE.c.size).where(within))
    sizes = {row.number: row.size for row in rows if isinstance(row.size, int)}
    for index, number in enumerate(found.numbers):
        found.sizes[index] += sizes.get(number, 0)


def read(connection: Connection, content: int, index: int) -> bytes:
    """Return a chunk of a content. Raise ContentError if it is damaged or missing."""
    number = content * CHUNKS_MAX + index
    which = CHUNK.c.number == number
    row = connection.execute(select(CHUNK).where(which)).first()
    if row is None or not is_chunk_sound(row):
        raise ContentError(f"chunk {index} of content {content} is damaged or missing")
    return bytes(row.data)


def sweep(connection: Connection, content: int) -> bool:
    """Delete some chunks of an unused content. Return whether none is left.

    Never called within a commit.
    """
    first = content * CHUNKS_MAX
    some = select(CHUNK.c.number).where(CHUNK.c.number.between(first, first + CHUNKS_MAX - 1))
    some = some.order_by(CHUNK.c.number).limit(SWEPT_AT_ONCE)
    done = connection.execute(delete(CHUNK).where(CHUNK.c.number.in_(some)))
    return done.rowcount < SWEPT_AT_ONCE


def _present(connection: Connection) -> list[int]:
    """Return the numbers of contents that have chunks: one search each, whatever their size."""
    found: list[int] = []
    behind = 0
    while True:
        least = select(func.min(CHUNK.c.number)).where(CHUNK.c.number >= behind)
        number = connection.execute(least).scalar()
        if number is None:
            return found
        found.append(number // CHUNKS_MAX)
        behind = (found[-1] + 1) * CHUNKS_MAX


def _quarantined(changes: ContentChanges) -> list[tuple[int, int, str]]:
    found_ms = time.time_ns() // 1_000_000
    return [(number, found_ms, reason) for number, reason in changes.quarantined]


def _chunk(content: int, index: int, data: bytes) -> tuple[int, int, bytes]:
    number = content * CHUNKS_MAX + index
    return number, checksum(number, data), data
