"""Segments: messages that were committed together, in two rows. One has their bytes end to end.

The other has a record of each, with everything else that is known of it: 76 bytes, by ascending
numbers, so that a start reads no bodies, and a commit writes few rows, however many messages it
has. Each record has two checksums (CRC-32C): of the message's bytes, and of the record with that.
Properties that few messages have besides (a message-format, a publisher) are labels: a segment has
each once, beside the bytes, and a record names one by its place among them (`labels.py`).
"""

from __future__ import annotations

from typing import Final, final

from google_crc32c import value
from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64, mypyc_attr

from storage.records import StoredMessage
from storage.sql.segments.labels import Label, unpack_labels
from storage.sql.segments.ranges import ascending, index_of

MESSAGES_MAX: Final[i64] = 64
"""Maximum messages per segment: reading one of them reads all, and a lost page may destroy all."""

BYTES_MAX: Final[i64] = 256 * 1024
"""Maximum bytes of the messages in a segment of more than one message."""

COPIES_MAX: Final[i64] = 256
"""Maximum messages per segment if they share their bytes: the removal of one of them writes the
records of the others."""

RECORD: Final[i64] = 76
"""Bytes of a record."""

_POSITION: Final[i64] = 8
_TTL: Final[i64] = 16
_ARRIVED: Final[i64] = 24
_EXPIRES: Final[i64] = 32
_DELIVER: Final[i64] = 40
_QUEUE: Final[i64] = 48
_COUNT: Final[i64] = 52
_OFFSET: Final[i64] = 56
_LENGTH: Final[i64] = 60
_CONTENT_SUM: Final[i64] = 64
_FLAGS: Final[i64] = 68
"""The priority in the lowest 8 bits, DURABLE, VOLATILE, OPAQUE, LARGE; from bit LABEL up the place
of the message's label, counted from 1, or 0 if it has none."""
_SUM: Final[i64] = 72

PRIORITY: Final[i64] = 255
DURABLE: Final[i64] = 256
VOLATILE: Final[i64] = 512
OPAQUE: Final[i64] = 1024
LARGE: Final[i64] = 2048
"""The body is a content. Brokers up to 0.1.0 did not set this bit."""

LABEL: Final[i64] = 16
"""Bits by which the place of the label is shifted."""

COUNT_MAX: Final[i64] = (1 << 31) - 1

Damage = tuple[int, str]
"""The number of a message, and what is wrong with it."""


# two calls for each message: mypyc reads a final name without a search
_crc_32c: Final = value


def checksum(data: bytes) -> i64:
    """Return the CRC-32C as a number with a sign, as the records hold it."""
    found: i64 = _crc_32c(data)
    return found - ((found >> 31) << 32)


@mypyc_attr(acyclic=True)
@final
class Segment:
    """A segment as it is, or will be, in the store. `number` is the lowest that it ever had.

    `facts` has the records, `size` is that of all bytes. These (`body`) and the packed `labels` are
    here only if they are needed; `last` is the highest number in it, or a higher one that is gone.
    """

    def __init__(
        self,
        number: i64,
        size: i64,
        facts: bytes,
        *,
        body: bytes | None = None,
        labels: bytes = b"",
    ) -> None:
        self.number: Final[i64] = number
        self.size: i64 = size
        self.facts = facts
        self.body = body
        self.labels = labels
        self.last: i64 = _last_of(number, facts)

    def slots(self) -> i64:
        """Return the number of records; one that is cut off at the end counts, too."""
        return (i64(len(self.facts)) + RECORD - 1) // RECORD

    def find(self, number: i64) -> i64:
        """Return where the record of a message begins, -1 if there is none that is sound."""
        facts = self.facts
        at: i64 = 0
        while at + RECORD <= i64(len(facts)):
            if read_i64_le(facts, at) == number and is_sound(facts, at):
                return at
            at += RECORD
        return -1

    # -- changes of messages

    def move(self, at: i64, position: i64) -> None:
        """Set the position of the message with its record at `at`, and clear its delivery time."""
        facts = self.facts
        record = (
            facts[at : at + _POSITION]
            + _bytes_of(position)
            + facts[at + _TTL : at + _DELIVER]
            + _bytes_of(0)
            + facts[at + _QUEUE : at + _SUM]
        )
        self._put(at, _sealed(record))

    def count(self, at: i64, delivery_count: i64) -> None:
        """Set the number of failed deliveries of the message with its record at `at`."""
        facts = self.facts
        counted = int(min(delivery_count, COUNT_MAX)).to_bytes(4, "little")
        record = facts[at : at + _COUNT] + counted + facts[at + _OFFSET : at + _SUM]
        self._put(at, _sealed(record))

    def _put(self, at: i64, record: bytes) -> None:
        self.facts = self.facts[:at] + record + self.facts[at + RECORD :]

    def vouch(self, at: i64, encoded: bytes) -> None:
        """Accept `encoded`, the bytes that the message at `at` has now, as its stored bytes."""
        offset = i64(read_i32_le(self.facts, at + _OFFSET))
        self._put(at, _record_with(self.facts, at, encoded, offset=offset))

    def cut(self, at: i64) -> None:
        """Remove the record at `at`, or what is left of it."""
        self.facts = self.facts[:at] + self.facts[at + RECORD :]

    def remove(self, numbers: list[int]) -> None:
        """Remove the messages of these ascending numbers.

        Their bytes stay until the segment is rebuilt or removed itself.
        """
        facts = self.facts
        kept = BytesWriter()
        index: i64 = 0
        start: i64 = 0
        at: i64 = 0
        while at + RECORD <= i64(len(facts)):
            number = read_i64_le(facts, at)
            index = index_of(numbers, number, index)
            if index < i64(len(numbers)) and i64(numbers[index]) == number:
                if start < at:
                    kept.write(facts[start:at])
                start = at + RECORD
            at += RECORD
        if start > 0:
            kept.write(facts[start:])
            self.facts = kept.getvalue()

    def keep(self, queues: set[int]) -> None:
        """Remove all volatile messages and those of other queues, when the store is opened."""
        facts = self.facts
        gone = []
        at: i64 = 0
        while at + RECORD <= i64(len(facts)):
            is_volatile = i64(read_i32_le(facts, at + _FLAGS)) & VOLATILE != 0
            is_kept = int(read_i32_le(facts, at + _QUEUE)) in queues and not is_volatile
            if not is_kept and is_sound(facts, at):
                gone.append(int(read_i64_le(facts, at)))
            at += RECORD
        self.remove(ascending(gone))

    def is_sparse(self) -> bool:
        """Return whether messages use less than a quarter of the bytes; False up to 4,096 bytes."""
        if self.size <= 4096:
            return False
        facts = self.facts
        used: i64 = 0
        at: i64 = 0
        while at + RECORD <= i64(len(facts)):
            used += i64(read_i32_le(facts, at + _LENGTH))
            at += RECORD
        return used * 4 < self.size

    def rebuild(self, rewritten: dict[int, bytes]) -> None:
        """Pack the bytes anew, with those in `rewritten` by number. Damaged records stay as is."""
        facts = self.facts
        old = b"" if self.body is None else self.body
        records = BytesWriter()
        parts: list[bytes] = []
        # new offsets by old beginning and end: an empty message begins where the next one does
        places: dict[tuple[int, int], int] = {}
        size: i64 = 0
        at: i64 = 0
        while at + RECORD <= i64(len(facts)):
            if is_sound(facts, at):
                first = int(read_i32_le(facts, at + _OFFSET))
                was_at = (first, first + int(read_i32_le(facts, at + _LENGTH)))
                encoded = rewritten.get(int(read_i64_le(facts, at)))
                if encoded is not None:
                    record = _record_with(facts, at, encoded, offset=size)
                elif was_at in places:
                    record = _record_moved(facts, at, places[was_at])
                else:
                    places[was_at] = int(size)
                    encoded = old[was_at[0] : was_at[1]]
                    record = _record_moved(facts, at, size)
                if encoded is not None:
                    parts.append(encoded)
                    size += i64(len(encoded))
                records.write(record)
            else:
                records.write(facts[at : at + RECORD])
            at += RECORD
        records.write(facts[at:])
        self.facts = records.getvalue()
        self.body = b"".join(parts)
        self.size = size


def is_sound(facts: bytes, at: i64) -> bool:
    """Return whether the record that begins at `at` is whole, and as it was written."""
    if at + RECORD > i64(len(facts)):
        return False
    return i64(read_i32_le(facts, at + _SUM)) == checksum(facts[at : at + _SUM])


def number_at(facts: bytes, at: i64) -> i64:
    return read_i64_le(facts, at)


def queue_at(facts: bytes, at: i64) -> i64:
    return i64(read_i32_le(facts, at + _QUEUE))


def size_at(facts: bytes, at: i64) -> i64:
    return i64(read_i32_le(facts, at + _LENGTH))


def position_at(facts: bytes, at: i64) -> i64:
    return read_i64_le(facts, at + _POSITION)


def expiry_at(facts: bytes, at: i64) -> i64:
    return read_i64_le(facts, at + _EXPIRES)


def delivery_time_at(facts: bytes, at: i64) -> i64:
    return read_i64_le(facts, at + _DELIVER)


def bytes_at(facts: bytes, at: i64, body: bytes) -> bytes:
    """Return the bytes of the message with its record at `at`."""
    offset = i64(read_i32_le(facts, at + _OFFSET))
    length = i64(read_i32_le(facts, at + _LENGTH))
    return body if length == i64(len(body)) else body[offset : offset + length]


def has_bytes(facts: bytes, at: i64, encoded: bytes) -> bool:
    """Return whether `encoded` are the bytes with which the message at `at` was stored."""
    return i64(read_i32_le(facts, at + _CONTENT_SUM)) == checksum(encoded)


def label_at(facts: bytes, at: i64) -> i64:
    """Return the place of a message's label in its segment, counted from 1; 0 if it has none."""
    return i64(read_i32_le(facts, at + _FLAGS)) >> LABEL


def is_large_at(facts: bytes, at: i64) -> bool:
    """Return whether the record says that the message's body is a content."""
    return i64(read_i32_le(facts, at + _FLAGS)) & LARGE != 0


def damage_at(segment: Segment, at: i64) -> str:
    """Return why the message with its record at `at` must not be delivered; empty if it is sound.

    The segment must have its bytes.
    """
    facts, body = segment.facts, segment.body
    if not is_sound(facts, at):
        return "its record is not as it was written"
    if body is None:
        return "its bytes are missing"
    if not has_bytes(facts, at, bytes_at(facts, at, body)):
        return "its bytes are not those that were stored"
    if label_at(facts, at) > i64(len(unpack_labels(segment.labels))):
        return "its message-format and publisher are not those that were stored"
    return ""


def message_at(facts: bytes, at: i64, *, queue: str, encoded: bytes, label: Label) -> StoredMessage:
    """Return the message of a sound record."""
    message_format, publisher = label
    flags = i64(read_i32_le(facts, at + _FLAGS))
    return StoredMessage(
        number=read_i64_le(facts, at),
        queue=queue,
        position=read_i64_le(facts, at + _POSITION),
        encoded=encoded,
        priority=flags & PRIORITY,
        ttl_ms=read_i64_le(facts, at + _TTL),
        arrived_ms=read_i64_le(facts, at + _ARRIVED),
        expires_at_ms=read_i64_le(facts, at + _EXPIRES),
        deliver_at_ms=read_i64_le(facts, at + _DELIVER),
        delivery_count=i64(read_i32_le(facts, at + _COUNT)),
        durable=flags & DURABLE != 0,
        message_format=message_format,
        opaque=flags & OPAQUE != 0,
        publisher=publisher,
        volatile=flags & VOLATILE != 0,
    )


def put_record(
    out: BytesWriter, message: StoredMessage, *, queue: i64, offset: i64, label: i64
) -> None:
    """Write the record of a message whose bytes begin at `offset`; `label` as in `label_at`."""
    flags = message.priority | (label << LABEL)
    if message.durable:
        flags |= DURABLE
    if message.opaque:
        flags |= OPAQUE
    if message.volatile:
        flags |= VOLATILE
    if message.content is not None:
        flags |= LARGE
    record = BytesWriter()
    write_i64_le(record, message.number)
    write_i64_le(record, message.position)
    write_i64_le(record, message.ttl_ms)
    write_i64_le(record, message.arrived_ms)
    write_i64_le(record, message.expires_at_ms)
    write_i64_le(record, message.deliver_at_ms)
    write_i32_le(record, i32(queue))
    write_i32_le(record, i32(min(message.delivery_count, COUNT_MAX)))
    write_i32_le(record, i32(offset))
    write_i32_le(record, i32(len(message.encoded)))
    write_i32_le(record, i32(checksum(message.encoded)))
    write_i32_le(record, i32(flags))
    _put_sealed(out, record.getvalue())


def _put_sealed(out: BytesWriter, record: bytes) -> None:
    out.write(record)
    write_i32_le(out, i32(checksum(record)))


def _sealed(record: bytes) -> bytes:
    out = BytesWriter()
    _put_sealed(out, record)
    return out.getvalue()


def _record_moved(facts: bytes, at: i64, offset: i64) -> bytes:
    """Return the record at `at` for a message whose bytes begin at `offset` now."""
    return _sealed(
        facts[at : at + _OFFSET]
        + int(offset).to_bytes(4, "little")
        + facts[at + _LENGTH : at + _SUM]
    )


def _record_with(facts: bytes, at: i64, encoded: bytes, *, offset: i64) -> bytes:
    """Return the record at `at` for a message with the bytes `encoded`, which begin at `offset`."""
    return _sealed(
        facts[at : at + _OFFSET]
        + int(offset).to_bytes(4, "little")
        + len(encoded).to_bytes(4, "little")
        + int(checksum(encoded)).to_bytes(4, "little", signed=True)
        + facts[at + _FLAGS : at + _SUM]
    )


def _bytes_of(number: i64) -> bytes:
    return int(number).to_bytes(8, "little", signed=True)


def _last_of(number: i64, facts: bytes) -> i64:
    """Return the highest number that can be read in `facts`, `number` if there is none."""
    at = i64(len(facts)) // RECORD * RECORD - RECORD
    while at >= 0:
        if is_sound(facts, at):
            return read_i64_le(facts, at)
        at -= RECORD
    return number
