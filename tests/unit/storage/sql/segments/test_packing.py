"""Messages packed into segments, and read back."""

import pytest

from storage.records import StoredMessage, StoredPlaces
from storage.sql.segments.labels import unpack_labels
from storage.sql.segments.packing import Sifting, numbers_of, queues_of, segments_of, unknown_queues
from storage.sql.segments.segment import BYTES_MAX, COPIES_MAX, MESSAGES_MAX, RECORD, Segment
from tests.unit.storage.test_batch import stored

IDS = {"q": 7, "r": 8}


def own(number: int, size: int = 1, queue: str = "q") -> StoredMessage:
    """Return a message with bytes of its own."""
    return stored(number, queue).with_bytes(number.to_bytes(8) + bytes(size))


def test_a_message_comes_back_as_it_went() -> None:
    message = StoredMessage(
        number=2**40,
        queue="r",
        position=2**41 + 7,
        encoded=b"bytes",
        priority=9,
        ttl_ms=-1,
        arrived_ms=1_750_000_000_000,
        expires_at_ms=1_750_000_000_001,
        deliver_at_ms=1_750_000_000_002,
        delivery_count=3,
        durable=False,
        message_format=0x8001_3700,
        opaque=True,
        publisher="client",
        volatile=True,
    )
    (segment,) = segments_of([None, message, None], IDS)
    sifting = Sifting({8: "r"}, set())
    sifting.take(segment, [2**40])
    (back,) = sifting.sound
    for name in ("number", "queue", "position", "encoded", "priority", "ttl_ms", "arrived_ms"):
        assert getattr(back, name) == getattr(message, name)
    for name in ("expires_at_ms", "deliver_at_ms", "delivery_count", "durable"):
        assert getattr(back, name) == getattr(message, name)
    for name in ("message_format", "opaque", "publisher", "volatile"):
        assert getattr(back, name) == getattr(message, name)


def labelled(number: int, publisher: str) -> StoredMessage:
    """Return a message with bytes and a publisher."""
    return StoredMessage(
        number=number,
        queue="q",
        position=number,
        encoded=b"%d" % number,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
        publisher=publisher,
    )


SIZES = [
    pytest.param([own(n) for n in range(1, 131)], [1, 65, 129], id="64 messages"),
    pytest.param(
        [own(n, BYTES_MAX // 3) for n in range(1, 6)], [1, 3, 5], id="so many bytes at most"
    ),
    pytest.param([own(1, BYTES_MAX * 2), own(2)], [1, 2], id="a large one is alone"),
    pytest.param([stored(n) for n in range(1, 301)], [1, 1 + COPIES_MAX], id="copies are more"),
    pytest.param([], [], id="nothing"),
]


@pytest.mark.parametrize(("messages", "expected"), SIZES)
def test_segments(messages: list[StoredMessage], expected: list[int]) -> None:
    segments = segments_of(list(messages), IDS)
    assert [int(segment.number) for segment in segments] == expected
    assert sum(int(segment.slots()) for segment in segments) == len(messages)


def test_copies_have_their_bytes_once() -> None:
    segment = segments_of([own(1), stored(2), stored(3, "r"), stored(4), own(5)], IDS)[0]
    assert segment.body == own(1).encoded + b"x" + own(5).encoded
    assert queues_of(segment) == {7, 8}


def test_each_label_is_stored_once_and_none_for_messages_without() -> None:
    publishers = ["", "a", "a", "b", "a", ""]
    segment = segments_of([labelled(n, name) for n, name in enumerate(publishers, 1)], IDS)[0]
    assert unpack_labels(segment.labels) == [(0, "a"), (0, "b")]
    sifting = Sifting({7: "q"}, set())
    sifting.take(segment, None)
    assert [message.publisher for message in sifting.sound] == publishers
    assert segments_of([own(1)], IDS)[0].labels == b""


def test_a_message_whose_label_is_damaged_is_not_delivered() -> None:
    segment = segments_of([labelled(1, ""), labelled(2, "a")], IDS)[0]
    segment.labels = segment.labels[:-1]
    sifting = Sifting({7: "q"}, set())
    sifting.take(segment, None)
    assert [int(message.number) for message in sifting.sound] == [1]
    ((number, reason),) = sifting.damaged
    assert (number, "publisher are not those" in reason) == (2, True)


def test_queues_that_have_no_id_are_named_once() -> None:
    assert unknown_queues([own(1), own(2, queue="s"), None, own(3, queue="s")], IDS) == ["s"]


def flipped(segment: Segment, at: int) -> Segment:
    facts = segment.facts
    changed = facts[:at] + bytes([facts[at] ^ 2]) + facts[at + 1 :]
    return Segment(segment.number, segment.size, changed, body=segment.body)


def test_what_is_damaged_is_known_by_what_lies_around_it() -> None:
    (segment,) = segments_of([own(n) for n in (4, 5, 6, 7)], IDS)
    record = int(RECORD)
    assert numbers_of(segment) == [4, 5, 6, 7]
    assert numbers_of(flipped(segment, record)) == [4, 5, 6, 7], "5 has become 7"
    assert numbers_of(flipped(segment, record + 8)) == [4, 5, 6, 7], "its number is as it was"
    assert numbers_of(flipped(segment, 3 * record + 5)) == [4, 5, 6, 7], "the last"
    cut = Segment(4, 4, segment.facts[:-1], body=segment.body)
    assert numbers_of(cut) == [4, 5, 6, 7]
    sifting = Sifting({7: "q"}, set())
    sifting.take(flipped(segment, record), None)
    assert [int(message.number) for message in sifting.sound] == [4, 6, 7]
    assert [number for number, _ in sifting.damaged] == [5]


def test_what_is_wanted_is_taken() -> None:
    (segment,) = segments_of([own(1), own(2), own(3), stored(4, "r")], IDS)
    sifting = Sifting({7: "q"}, {3})
    sifting.take(segment, [2, 3, 4])
    assert [int(message.number) for message in sifting.sound] == [2], (
        "3 was quarantined, 4 is nobody's"
    )
    assert sifting.damaged == []


def test_places() -> None:
    (segment,) = segments_of([own(1), own(2, 5), stored(3, "r"), own(4), own(5)], IDS)
    found = StoredPlaces()
    sifting = Sifting({7: "q"}, {4})
    sifting.place(flipped(segment, 4 * int(RECORD) + 8), found, 1)
    assert (found.numbers, found.positions, found.sizes) == ([2], [2], [13])
    assert (found.queues, found.expires_at_ms, found.deliver_at_ms) == (["q"], [0], [0])
    assert sifting.damaged == [(5, "its record is not as it was written")]
    assert MESSAGES_MAX == 64
