"""Rows of large messages, and of the chunks of their bodies: what is wrong with them.

A flipped bit can change a number's sign, and even the type of a value: neither is an error here.
"""

from __future__ import annotations

from typing import Any, Final

from google_crc32c import extend
from sqlalchemy import Connection, Row, func, select, update

from storage.contents import CHUNK_SIZE, CHUNKS_MAX
from storage.records import StoredContent
from storage.sql.rows import checksum
from storage.sql.tables import CHUNK, LARGE

CONTENT_MAX: Final = 2**63 // CHUNKS_MAX - 1
"""The highest number of a content: the numbers of its chunks have 63 bits."""

BESIDES: Final = "what it has besides its row is damaged"

LOST: Final = "its body is lost"

INCOMPLETE: Final = "its body is not complete"


def large_row(message: int, content: StoredContent) -> tuple[int, int, int, bytes, int]:
    """Return the row of `large` for a message with the body `content`."""
    number, size, beginning = int(content.number), int(content.size), content.beginning
    return message, number, size, beginning, _sum_of(message, content)


def content_of(row: Row[Any], *, vouch: bool = False) -> StoredContent | None:
    """Return the content that a row of `large` names, None if the row is damaged.

    If `vouch` is true, a checksum that does not fit is no damage.
    """
    if not is_number(row.content) or not isinstance(row.size, int) or row.size < 0:
        return None
    if not isinstance(row.beginning, bytes):
        return None
    found = StoredContent(number=row.content, size=row.size, beginning=row.beginning)
    return found if vouch or _sum_of(row.number, found) == row.checksum else None


def is_number(content: object) -> bool:
    """Return whether a value can be the number of a content."""
    return isinstance(content, int) and 0 < content <= CONTENT_MAX


def _sum_of(message: int, content: StoredContent) -> int:
    facts = int(content.number).to_bytes(8) + int(content.size).to_bytes(8) + content.beginning
    return int(extend(extend(0, message.to_bytes(8)), facts))


def is_chunk_sound(row: Row[Any]) -> bool:
    """Return whether a row of `chunk` fits its checksum."""
    return isinstance(row.data, bytes) and checksum(row.number, row.data) == row.checksum


def is_complete(connection: Connection, content: StoredContent) -> bool:
    """Return whether all chunks of a content are there, damaged or not."""
    first, count = _chunks_of(content)
    among = CHUNK.c.number.between(first, first + count - 1)
    asked = select(func.count(), func.sum(func.length(CHUNK.c.data))).where(among)
    found, size = connection.execute(asked).one()
    return count < CHUNKS_MAX and (found, int(size or 0)) == (count, int(content.size))


def vouch(connection: Connection, message: int, *, is_large: bool) -> str:
    """Accept the body of a large message as it is now. Return why not if that is impossible.

    `is_large`: the record of the message says that its body is a content.
    """
    row = connection.execute(select(LARGE).where(LARGE.c.number == message)).first()
    if row is None:
        return LOST if is_large else ""
    content = content_of(row, vouch=True)
    if content is None:
        return BESIDES
    if not is_complete(connection, content):
        return INCOMPLETE
    first, count = _chunks_of(content)
    for number in range(first, first + count):
        chunk = connection.execute(select(CHUNK).where(CHUNK.c.number == number)).one()
        if not isinstance(chunk.data, bytes):
            return INCOMPLETE
        if not is_chunk_sound(chunk):
            fitting = update(CHUNK).where(CHUNK.c.number == number)
            connection.execute(fitting.values(checksum=checksum(number, chunk.data)))
    if row.checksum != _sum_of(message, content):
        fitting = update(LARGE).where(LARGE.c.number == message)
        connection.execute(fitting.values(checksum=_sum_of(message, content)))
    return ""


def _chunks_of(content: StoredContent) -> tuple[int, int]:
    """Return the number of the first chunk of a content, and how many it should have."""
    size = int(content.size)
    return int(content.number) * CHUNKS_MAX, (size + CHUNK_SIZE - 1) // CHUNK_SIZE
