"""Packing of messages into segments, and reading them back: sound ones apart from damaged."""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from storage.records import StoredMessage, StoredPlaces
from storage.sql.segments.labels import NO_LABEL, Label, pack_labels, unpack_labels
from storage.sql.segments.ranges import index_of
from storage.sql.segments.segment import (
    BYTES_MAX,
    COPIES_MAX,
    MESSAGES_MAX,
    RECORD,
    Damage,
    Segment,
    bytes_at,
    damage_at,
    delivery_time_at,
    expiry_at,
    has_bytes,
    is_large_at,
    is_sound,
    label_at,
    message_at,
    number_at,
    position_at,
    put_record,
    queue_at,
    size_at,
)
from storage.sql.yielding import YIELD_EVERY, yield_interpreter

HELD: Final[i64] = 1 << 62
"""Added to the positions of messages that are held back (HELD_PLACES in `record_mapping.py`)."""


@final
class Packing:
    """A segment that is being filled. Copies of one message that follow each other share its bytes.

    Copies are recognized by the object `encoded`, which they share.
    """

    def __init__(self, first: StoredMessage) -> None:
        self._number: Final[i64] = first.number
        self._records: Final = BytesWriter()
        self._parts: Final[list[bytes]] = []
        self._size: i64 = 0
        self._count: i64 = 0
        self._newest = b""
        self._labels: Final[list[Label]] = []
        # label of the last message that has one: mostly all messages have the same
        self._label: Label = NO_LABEL
        self._label_place: i64 = 0

    def takes(self, message: StoredMessage) -> bool:
        """Return whether there is room for `message`."""
        if message.encoded is self._newest:
            return self._count < COPIES_MAX
        return self._count < MESSAGES_MAX and self._size + len(message.encoded) <= BYTES_MAX

    def add(self, message: StoredMessage, queue: i64) -> None:
        """Put a message of the queue with the id `queue` behind the others."""
        encoded = message.encoded
        if self._count == 0 or encoded is not self._newest:
            self._parts.append(encoded)
            self._size += len(encoded)
            self._newest = encoded
        offset = self._size - len(encoded)
        label: i64 = 0
        if message.publisher or message.message_format != 0:
            label = self._place_of(message.message_format, message.publisher)
        put_record(self._records, message, queue=queue, offset=offset, label=label)
        self._count += 1

    def _place_of(self, message_format: i64, publisher: str) -> i64:
        """Return the place of a label, counted from 1; add the label unless it is there."""
        last_format, last_publisher = self._label
        if i64(last_format) == message_format and last_publisher == publisher:
            return self._label_place
        self._label = (int(message_format), publisher)
        labels = self._labels
        if self._label not in labels:
            labels.append(self._label)
        self._label_place = i64(labels.index(self._label)) + 1
        return self._label_place

    def segment(self) -> Segment:
        """Return the segment with all messages added so far, and its bytes."""
        body = self._newest if len(self._parts) == 1 else b"".join(self._parts)
        labels = pack_labels(self._labels)
        return Segment(self._number, self._size, self._records.getvalue(), body=body, labels=labels)


def segments_of(appended: list[StoredMessage | None], queue_ids: dict[str, int]) -> list[Segment]:
    """Return the messages that are left of a batch, packed into segments."""
    found: list[Segment] = []
    packing: Packing | None = None
    for message in appended:
        if message is None:
            continue
        if packing is None:
            packing = Packing(message)
        elif not packing.takes(message):
            found.append(packing.segment())
            yield_interpreter()
            packing = Packing(message)
        packing.add(message, queue_ids[message.queue])
    if packing is not None:
        found.append(packing.segment())
    return found


def unknown_queues(appended: list[StoredMessage | None], queue_ids: dict[str, int]) -> list[str]:
    """Return the queues of these messages that have no id yet, each once."""
    unknown: dict[str, None] = {}
    last = ""
    left: i64 = YIELD_EVERY
    for message in appended:
        left -= 1
        if left == 0:
            left = YIELD_EVERY
            yield_interpreter()
        if message is None or message.queue is last:
            continue
        last = message.queue
        if last not in queue_ids:
            unknown[last] = None
    return list(unknown)


# -- reading


def numbers_of(segment: Segment) -> list[int]:
    """Return the numbers of its messages. That of a damaged record is derived from neighbours."""
    facts = segment.facts
    found: list[int] = []
    previous = segment.number - 1
    for slot in range(segment.slots()):
        at = slot * RECORD
        number = number_at(facts, at) if at + RECORD <= i64(len(facts)) else i64(0)
        if not is_sound(facts, at) and not (
            previous < number < _next_sound(facts, at + RECORD, segment.last + 1)
        ):
            number = previous + 1
        found.append(int(number))
        previous = number
    return found


def queues_of(segment: Segment) -> set[int]:
    """Return the ids of the queues of its messages, except those with damaged records."""
    found: set[int] = set()
    at: i64 = 0
    while at < i64(len(segment.facts)):
        if is_sound(segment.facts, at):
            found.add(int(queue_at(segment.facts, at)))
        at += RECORD
    return found


def note_highest(segment: Segment, highest: dict[int, int]) -> None:
    """Raise in `highest`, by id of queue, the positions of messages to those of this segment."""
    facts = segment.facts
    at: i64 = 0
    while at + RECORD <= i64(len(facts)):
        if is_sound(facts, at):
            queue, position = int(queue_at(facts, at)), int(position_at(facts, at) % HELD)
            if position > highest.get(queue, -1):
                highest[queue] = position
        at += RECORD


def _next_sound(facts: bytes, at: i64, otherwise: i64) -> i64:
    """Return the number of the first sound record from `at` on, `otherwise` if there is none."""
    while at + RECORD <= i64(len(facts)):
        if is_sound(facts, at):
            return number_at(facts, at)
        at += RECORD
    return otherwise


@final
class Sifting:
    """Messages of segments, the sound apart from the damaged.

    `names` has the names of queues by their ids: messages of other queues are ignored. So are those
    in `left_out`, which were found damaged before. `large` has the numbers of sound messages whose
    bodies are contents.
    """

    def __init__(self, names: dict[int, str], left_out: set[int]) -> None:
        self.sound: Final[list[StoredMessage]] = []
        self.large: Final[list[int]] = []
        self.damaged: Final[list[Damage]] = []
        self._names: Final = names
        self._left_out: Final = left_out
        # queue of the last message
        self._queue: i64 = -1
        self._name: str | None = None
        # labels of the segment that is being sifted, unpacked when the first of them is needed
        self._labels: list[Label] | None = None

    def take(self, segment: Segment, wanted: list[int] | None, behind: i64 = 0) -> None:
        """Sift those messages of a segment that are `wanted`; the segment must have its bytes.

        `wanted` has ascending numbers, or is None for all messages with numbers above `behind`.
        """
        facts = segment.facts
        self._labels = None
        index: i64 = 0
        at: i64 = 0
        while at < i64(len(facts)):
            if not is_sound(facts, at):
                self._look_closer(segment, at, wanted)
            elif wanted is None:
                if number_at(facts, at) > behind:
                    self._take(segment, at)
            else:
                number = number_at(facts, at)
                index = index_of(wanted, number, index)
                if index < i64(len(wanted)) and i64(wanted[index]) == number:
                    self._take(segment, at)
            at += RECORD

    def _take(self, segment: Segment, at: i64) -> None:
        """Sift a message whose record is sound; ignore it if its queue is gone."""
        facts, body = segment.facts, segment.body
        encoded = b"" if body is None else bytes_at(facts, at, body)
        if body is None or not has_bytes(facts, at, encoded):
            self._look_closer(segment, at, None)
            return
        label = self._label(segment, label_at(facts, at))
        if label is None:
            self._look_closer(segment, at, None)
            return
        queue = queue_at(facts, at)
        if queue != self._queue:
            self._queue = queue
            self._name = self._names.get(int(queue))
        name = self._name
        left_out = self._left_out
        if name is not None and (not left_out or int(number_at(facts, at)) not in left_out):
            self.sound.append(message_at(facts, at, queue=name, encoded=encoded, label=label))
            if is_large_at(facts, at):
                self.large.append(int(number_at(facts, at)))

    def _label(self, segment: Segment, place: i64) -> Label | None:
        """Return the label at `place`, counted from 1, NO_LABEL for 0; None if it is damaged."""
        if place == 0:
            return NO_LABEL
        labels = self._labels
        if labels is None:
            labels = self._labels = unpack_labels(segment.labels)
        return labels[place - 1] if place <= i64(len(labels)) else None

    def place(self, segment: Segment, found: StoredPlaces, behind: i64) -> None:
        """Add to `found` the places of messages with numbers above `behind`, without the bytes."""
        facts = segment.facts
        names, left_out = self._names, self._left_out
        at: i64 = 0
        while at + RECORD <= i64(len(facts)):
            number = number_at(facts, at)
            queue = names.get(int(queue_at(facts, at)))
            if not is_sound(facts, at):
                self._look_closer(segment, at, None)
            elif queue is not None and number > behind and int(number) not in left_out:
                found.numbers.append(int(number))
                found.queues.append(queue)
                found.positions.append(int(position_at(facts, at)))
                found.sizes.append(int(size_at(facts, at)))
                found.expires_at_ms.append(int(expiry_at(facts, at)))
                found.deliver_at_ms.append(int(delivery_time_at(facts, at)))
            at += RECORD
        if at < i64(len(facts)):
            self._look_closer(segment, at, None)

    def _look_closer(self, segment: Segment, at: i64, wanted: list[int] | None) -> None:
        """Note the damage of a message, unless it is not wanted or was found before."""
        number = numbers_of(segment)[at // RECORD]
        if number not in self._left_out and (wanted is None or number in wanted):
            self.damaged.append((number, damage_at(segment, at)))
