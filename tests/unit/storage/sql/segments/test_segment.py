"""Records of segments, and how they change."""

from storage.records import StoredMessage
from storage.sql.segments.packing import Sifting, numbers_of, segments_of
from storage.sql.segments.segment import RECORD, Segment, checksum, damage_at, is_sound
from tests.unit.storage.test_batch import stored


def message(number: int, encoded: bytes) -> StoredMessage:
    return stored(number).with_bytes(encoded)


def volatile(number: int) -> StoredMessage:
    return StoredMessage(
        number=number,
        queue="q",
        position=number,
        encoded=b"x",
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
        volatile=True,
    )


def segment_with(*messages: StoredMessage) -> Segment:
    (segment,) = segments_of(list(messages), {"q": 7})
    return segment


def held(segment: Segment) -> dict[int, StoredMessage]:
    sifting = Sifting({7: "q"}, set())
    sifting.take(segment, None)
    assert sifting.damaged == []
    return {int(message.number): message for message in sifting.sound}


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_every_bit_of_a_record_is_covered() -> None:
    facts = segment_with(message(1, b"a"), message(2, b"b")).facts
    for at in range(int(RECORD)):
        changed = flipped(facts, at)
        assert not is_sound(changed, 0)
        assert is_sound(changed, RECORD)
    assert not is_sound(facts[:-1], RECORD)


def test_a_checksum_is_a_number_with_a_sign() -> None:
    assert checksum(b"") == 0
    assert {checksum(bytes([each])) < 0 for each in range(16)} == {True, False}


def test_bytes_that_are_not_those_that_came() -> None:
    segment = segment_with(message(1, b"one"), message(2, b"two"))
    assert segment.body == b"onetwo"
    assert [damage_at(segment, at) for at in (0, RECORD)] == ["", ""]
    segment.body = flipped(segment.body, 5)
    assert "bytes are not" in damage_at(segment, RECORD)
    assert damage_at(segment, 0) == ""
    segment.body = None
    assert damage_at(segment, 0) == "its bytes are missing"


def test_a_message_falls_due_and_is_counted() -> None:
    segment = segment_with(message(1, b"a"), message(2, b"b"))
    segment.move(segment.find(2), 54)
    segment.count(segment.find(2), 3)
    segment.count(segment.find(1), 2**40)
    found = held(segment)
    assert (found[2].position, found[2].deliver_at_ms, found[2].delivery_count) == (54, 0, 3)
    assert (found[1].position, found[1].delivery_count) == (1, 2**31 - 1)
    assert segment.find(3) == -1


def test_messages_go() -> None:
    segment = segment_with(*[message(number, b"%d" % number) for number in range(1, 6)])
    segment.remove([1, 3, 99])
    assert {number: each.encoded for number, each in held(segment).items()} == {
        2: b"2",
        4: b"4",
        5: b"5",
    }
    segment.remove([2, 4, 5])
    assert segment.facts == b""


def test_a_damaged_number_keeps_no_other_message_from_going() -> None:
    segment = segment_with(*[message(number, b"%d" % number) for number in range(1, 6)])
    segment.facts = flipped(segment.facts, int(RECORD) + 6)
    segment.remove([2, 3, 4])
    assert numbers_of(segment) == [1, 2, 5], "2 stays where it lies"


def test_messages_of_other_queues_go() -> None:
    both = [message(1, b"a"), stored(2, "r"), message(3, b"c")]
    (segment,) = segments_of(list(both), {"q": 7, "r": 8})
    segment.keep({7})
    assert list(held(segment)) == [1, 3]


def test_a_segment_with_little_left_is_packed_anew() -> None:
    segment = segment_with(*[message(number, bytes([number]) * 1000) for number in range(1, 21)])
    segment.remove(list(range(1, 16)))
    assert not segment.is_sparse()
    segment.remove([16, 17])
    assert segment.is_sparse()
    segment.rebuild({})
    assert (segment.size, len(segment.body or b"")) == (3000, 3000)
    assert not segment.is_sparse()
    assert {number: each.encoded[0] for number, each in held(segment).items()} == {
        18: 18,
        19: 19,
        20: 20,
    }


def test_some_bytes_change_and_copies_stay_copies() -> None:
    shared = b"shared"
    segment = segment_with(message(1, shared), message(2, shared), message(3, shared))
    segment.rebuild({2: b"other"})
    assert segment.body == b"sharedother"
    assert [each.encoded for each in held(segment).values()] == [shared, b"other", shared]


def test_a_message_without_bytes_is_no_copy_of_the_next() -> None:
    segment = segment_with(message(1, b""), message(2, b"two"), message(3, b""))
    segment.rebuild({})
    assert [each.encoded for each in held(segment).values()] == [b"", b"two", b""]


def test_volatile_messages_go_when_the_store_is_opened() -> None:
    segment = segment_with(volatile(1), message(2, b"b"), volatile(3))
    segment.keep({7})
    assert list(held(segment)) == [2]


def test_what_is_damaged_stays_so() -> None:
    segment = segment_with(message(1, b"one"), message(2, b"two"), message(3, b"three"))
    segment.facts = flipped(segment.facts, 8)
    segment.body = flipped(segment.body or b"", 4)
    segment.rebuild({3: b"3"})
    assert not is_sound(segment.facts, 0)
    assert damage_at(segment, RECORD) != ""
    assert damage_at(segment, 2 * RECORD) == ""


def test_the_last_number_is_that_of_the_last_sound_record() -> None:
    facts = segment_with(message(3, b"a"), message(5, b"b")).facts
    assert Segment(3, 2, facts).last == 5
    assert Segment(3, 2, flipped(facts, 80)).last == 3
    assert Segment(3, 2, b"").last == 3


def test_an_operator_vouches_for_what_is_there() -> None:
    segment = segment_with(message(1, b"one"), message(2, b"two"))
    segment.body = flipped(segment.body or b"", 1)
    assert damage_at(segment, 0) != ""
    segment.vouch(0, segment.body[:3])
    assert damage_at(segment, 0) == ""
    segment.cut(0)
    assert list(held(segment)) == [2]
