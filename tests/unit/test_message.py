"""A message inside the broker: its bytes, its header, its expiry."""

import pytest

from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX
from broker.amqp.sections import PRIORITY_DEFAULT, Sections
from broker.amqp.types import (
    Byte,
    Char,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from broker.message import (
    AT_ONCE,
    NEVER,
    Message,
    OptionalFields,
    Origin,
    delivery_time,
    expires_at,
    opaque_message,
    read_message,
    remaining_ttl,
)
from tests.support.clock import WALL_START_MS, SimulatedClock

BODY = bytes.fromhex("005375a00568656c6c6f")
ANNOTATIONS = bytes.fromhex("005372c10100")
DELIVERY_ANNOTATIONS = bytes.fromhex("005371c10100")


def header(fields: str) -> bytes:
    """Return a header section with these encoded fields, given in hex."""
    encoded = bytes.fromhex(fields)
    return b"\x00\x53\x70\xd0" + (len(encoded) + 4).to_bytes(4) + b"\0\0\0\x05" + encoded


def properties(absolute_expiry_time: int) -> bytes:
    fields = b"\x40" * 8 + b"\x83" + absolute_expiry_time.to_bytes(8, signed=True)
    return b"\x00\x53\x73\xd0" + (len(fields) + 4).to_bytes(4) + b"\0\0\0\x09" + fields


def read(data: bytes, clock: SimulatedClock | None = None) -> Message:
    sections = Sections()
    framed = b"frame" + data + b"next"
    sections.read(framed, 5, 5 + len(data))
    return read_message(sections, framed, clock or SimulatedClock())


def reread(message: Message, delivery_count: int, clock: SimulatedClock) -> Message:
    """Return what the next broker reads from a delivery of `message`."""
    return read(message.header(delivery_count, clock) + message.encoded, clock)


# -- the bytes that are kept

KEPT = {
    "a body alone": (BODY, BODY),
    "a header": (header("4040404040") + BODY, BODY),
    "delivery-annotations": (DELIVERY_ANNOTATIONS + BODY, BODY),
    "all of both": (header("4040404040") + DELIVERY_ANNOTATIONS + ANNOTATIONS + BODY, None),
    "properties": (properties(-1) + BODY, properties(-1) + BODY),
    "no body": (ANNOTATIONS, ANNOTATIONS),
}


@pytest.mark.requirement("PRD-05")
@pytest.mark.parametrize(("data", "kept"), KEPT.values(), ids=KEPT.keys())
def test_the_message_is_kept_byte_for_byte_from_its_annotations_on(
    data: bytes, kept: bytes | None
) -> None:
    expected = ANNOTATIONS + BODY if kept is None else kept
    message = read(data)
    assert message.encoded == expected
    assert message.size == len(expected)


FIELDS = {
    "no header": (b"", (False, PRIORITY_DEFAULT, -1)),
    "nothing in the header": (header("4040404040"), (False, PRIORITY_DEFAULT, -1)),
    "durable": (header("4140404040"), (True, PRIORITY_DEFAULT, -1)),
    "priority 0": (header("405000404040"), (False, 0, -1)),
    "priority 9": (header("405009404040"), (False, 9, -1)),
    "a higher priority counts as 9": (header("4050c8404040"), (False, 9, -1)),
    "ttl": (header("4040700000ea604040"), (False, PRIORITY_DEFAULT, 60_000)),
    "ttl 0": (header("4040434040"), (False, PRIORITY_DEFAULT, 0)),
}


@pytest.mark.requirement("RCV-03", "DST-14")
@pytest.mark.parametrize(("section", "expected"), FIELDS.values(), ids=FIELDS.keys())
def test_of_the_header_routing_reads(section: bytes, expected: tuple[bool, int, int]) -> None:
    message = read(section + BODY)
    assert (message.durable, message.priority, message.ttl_ms) == expected


# -- the header


@pytest.mark.requirement("RCV-01", "RCV-03", "DST-14")
@pytest.mark.parametrize("delivery_count", [0, 1, 255, 256])
@pytest.mark.parametrize("priority", range(10))
@pytest.mark.parametrize("durable", [False, True])
def test_a_header_says_again_what_it_said(
    durable: bool, priority: int, delivery_count: int
) -> None:
    clock = SimulatedClock()
    section = header(f"4{durable:d}50{priority:02x}404040")
    message = read(section + BODY)
    sent = message.header(delivery_count, clock)
    sections = Sections()
    sections.read(sent + BODY, 0, len(sent + BODY))
    assert (sections.durable, sections.priority, sections.ttl) == (durable, priority, -1)
    assert sections.start_kept == len(sent)


@pytest.mark.requirement("RCV-01")
def test_only_a_first_delivery_goes_to_a_first_acquirer() -> None:
    clock, message = SimulatedClock(), read(BODY)
    fields = b"\x42\x50\x04\x40"  # not durable, priority 4, no ttl
    assert message.header(0, clock) == b"\x00\x53\x70\xc0\x06\x04" + fields + b"\x41"
    assert message.header(3, clock) == b"\x00\x53\x70\xc0\x08\x05" + fields + b"\x42\x52\x03"


def test_messages_share_the_header_of_a_first_delivery() -> None:
    clock = SimulatedClock()
    assert read(BODY).header(0, clock) is read(ANNOTATIONS).header(0, clock)


@pytest.mark.requirement("PRD-04")
def test_the_time_spent_here_is_taken_from_the_ttl() -> None:
    clock = SimulatedClock()
    message = read(header("4040700000ea604040") + BODY, clock)
    clock.advance(10_000)
    assert reread(message, 0, clock).ttl_ms == 50_000
    assert reread(message, 2, clock).ttl_ms == 50_000


REMAINING = {
    "at once": (1000, 500, 500, 1000),
    "later": (1000, 500, 600, 900),
    "at the last moment": (1000, 500, 1499, 1),
    "too late, which expiry sees to": (1000, 500, 9999, 1),
    "after the clock was set back": (1000, 500, 400, 1000),
    "never": (0, 500, 9999, 0),
}


@pytest.mark.requirement("PRD-04")
@pytest.mark.parametrize(
    ("ttl_ms", "arrived_ms", "now_ms", "expected"), REMAINING.values(), ids=REMAINING.keys()
)
def test_the_ttl_that_is_left(ttl_ms: int, arrived_ms: int, now_ms: int, expected: int) -> None:
    assert remaining_ttl(ttl_ms=ttl_ms, arrived_ms=arrived_ms, now_ms=now_ms) == expected


# -- ttl and expiry

ENDS = {
    "neither": (-1, -1, NEVER),
    "both say never": (0, 0, NEVER),
    "ttl": (50, -1, 1050),
    "ttl of never, no time": (0, -1, NEVER),
    "a time": (-1, 1020, 1020),
    "a time, ttl of never": (0, 1020, 1020),
    "the time is earlier": (50, 1020, 1020),
    "the ttl is earlier": (50, 1080, 1050),
    "a time that has passed": (50, 1, 1),
    "a time before 1970 is none": (50, -1000, 1050),
}


@pytest.mark.requirement("PRD-04")
@pytest.mark.parametrize(("ttl_ms", "absolute_ms", "expected"), ENDS.values(), ids=ENDS.keys())
def test_a_message_ends_by(ttl_ms: int, absolute_ms: int, expected: int) -> None:
    assert expires_at(ttl_ms=ttl_ms, absolute_ms=absolute_ms, arrived_ms=1000) == expected


@pytest.mark.requirement("PRD-04")
def test_the_end_is_counted_from_the_arrival() -> None:
    by_ttl = read(header("4040700000ea604040") + BODY)
    assert by_ttl.expires_at_ms == WALL_START_MS + 60_000
    by_time = read(properties(WALL_START_MS + 5) + BODY)
    assert (by_time.expires_at_ms, by_time.ttl_ms) == (WALL_START_MS + 5, -1)
    assert read(BODY).expires_at_ms == NEVER


@pytest.mark.requirement("RCV-02")
def test_an_expired_message_that_is_kept_has_no_end_any_more() -> None:
    clock = SimulatedClock()
    message = read(header("415007700000ea604040") + BODY, clock)
    clock.advance(10**6)
    kept = message.moved(None, expires=False)
    assert (kept.encoded, kept.durable, kept.priority) == (BODY, True, 7)
    assert (kept.ttl_ms, kept.expires_at_ms) == (-1, NEVER)
    assert reread(kept, 0, clock).ttl_ms == -1


# -- publisher and key


@pytest.mark.requirement("RCV-05", "DST-05")
def test_a_message_knows_its_publisher_and_key_through_every_change() -> None:
    sections = Sections()
    sections.read(BODY, 0, len(BODY))
    message = read_message(sections, BODY, SimulatedClock(), origin=Origin("c", "k"))
    for each in (message, message.moved(None, expires=False), message.annotated(ADDED)):
        assert (each.publisher, each.key) == ("c", "k")
    assert (read(BODY).publisher, read(BODY).key) == ("", "")


# -- annotations that an outcome adds

ADDED = bytes.fromhex("c10602a3016154 02")
OURS = "c10602a3016154 01"

ANNOTATED = {
    "none before": (BODY, "005372 c10602a3016154 02"),
    "an empty map before": (ANNOTATIONS + BODY, "005372 c10602a3016154 02"),
    "the same key": (bytes.fromhex("005372" + OURS) + BODY, "005372 c10602a3016154 02"),
    "another key": (
        bytes.fromhex("005372 c10602a3016254 01") + BODY,
        "005372 c10b04a3016254 01a3016154 02",
    ),
}

UNREADABLE = {
    "a key twice": bytes.fromhex("c10904a3016141a3016141"),
    "nested too deep": b"\xc1\x65\x02\xa3\x01a" + b"\x00\x53\x01" * 32 + b"\x41",
}


@pytest.mark.requirement("RCV-02")
@pytest.mark.parametrize(("data", "annotations"), ANNOTATED.values(), ids=ANNOTATED.keys())
def test_annotations_are_added_to_those_of_the_message(data: bytes, annotations: str) -> None:
    message = read(header("415007700000ea604040") + data)
    again = message.annotated(ADDED)
    assert again.encoded == bytes.fromhex(annotations) + BODY
    assert (again.durable, again.priority, again.ttl_ms) == (True, 7, 60_000)
    assert (again.arrived_ms, again.expires_at_ms) == (message.arrived_ms, message.expires_at_ms)


def test_a_message_without_any_section_can_be_annotated() -> None:
    assert read(header("4040404040")).annotated(ADDED).encoded == b"\x00\x53\x72" + ADDED


@pytest.mark.parametrize("own", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_annotations_that_cannot_be_decoded_stay_as_they_are(own: bytes) -> None:
    message = read(b"\x00\x53\x72" + own + BODY)
    assert message.annotated(ADDED) is message


def test_annotations_may_not_grow_for_ever() -> None:
    """Without a limit a peer could make a message longer at every release."""
    large = b"\xd1" + (SECTIONS_BEFORE_BODY_MAX + 16).to_bytes(4) + b"\0\0\0\x02\xa3\x01a"
    large += b"\xb0" + (SECTIONS_BEFORE_BODY_MAX + 4).to_bytes(4)
    large += bytes(SECTIONS_BEFORE_BODY_MAX + 4)
    with pytest.raises(LinkFault) as caught:
        read(BODY).annotated(large)
    assert caught.value.condition == "amqp:resource-limit-exceeded"


# -- delivery time

MOMENT = 1_750_000_001_000

DELIVERY_TIMES = {
    "none": (None, AT_ONCE),
    "a long, as JMS clients send it": (MOMENT, MOMENT),
    "a timestamp": (Timestamp(MOMENT), MOMENT),
    "an ulong": (ULong(MOMENT), MOMENT),
    "an uint": (UInt(2**32 - 1), 2**32 - 1),
    "an int": (Int(2**31 - 1), 2**31 - 1),
    "a ushort": (UShort(7), 7),
    "a short": (Short(7), 7),
    "a ubyte": (UByte(7), 7),
    "a byte": (Byte(7), 7),
    "before 1970": (-1, AT_ONCE),
    "the first moment of 1970": (0, AT_ONCE),
    "as late as can be": (2**63 - 1, 2**63 - 1),
    "later than that": (ULong(2**64 - 1), 2**63 - 1),
}


@pytest.mark.requirement("DLY-01")
@pytest.mark.parametrize(
    ("annotation", "expected"), DELIVERY_TIMES.values(), ids=DELIVERY_TIMES.keys()
)
def test_the_delivery_time_is(annotation: object, expected: int) -> None:
    assert delivery_time(annotation) == expected


@pytest.mark.requirement("DLY-01")
@pytest.mark.parametrize(
    "annotation", ["1750000001000", Symbol("soon"), 1.5, Float(1.0), True, b"1", [1], Char(49)]
)
def test_a_delivery_time_that_is_none_is_refused(annotation: object) -> None:
    with pytest.raises(LinkFault) as refused:
        delivery_time(annotation)
    assert refused.value.condition == INVALID_FIELD


@pytest.mark.requirement("DLY-01", "PRD-05")
def test_the_delivery_time_is_read_from_the_annotations_and_stays_there() -> None:
    annotations = "005372c1 1f 02 a3 13 782d6f70742d64656c69766572792d74696d65 81"
    encoded = bytes.fromhex(annotations) + MOMENT.to_bytes(8) + BODY
    message = read(encoded)
    assert message.deliver_at_ms == MOMENT
    assert message.encoded == encoded
    assert read(ANNOTATIONS + BODY).deliver_at_ms == AT_ONCE


def test_an_annotated_message_keeps_its_delivery_time_and_an_expired_one_has_none() -> None:
    message = Message(
        encoded=BODY,
        durable=False,
        priority=4,
        ttl_ms=5,
        arrived_ms=0,
        expires_at_ms=5,
        optional_fields=OptionalFields(deliver_at_ms=MOMENT),
    )
    assert message.annotated(ANNOTATIONS[3:]).deliver_at_ms == MOMENT
    assert message.moved(None, expires=False).deliver_at_ms == AT_ONCE


# -- groups


def grouped(group_id: str, group_sequence: str = "") -> bytes:
    """Return properties up to group-id or group-sequence, which are encoded, in hex, and BODY."""
    fields = b"\x40" * 10 + bytes.fromhex(group_id + group_sequence)
    count = 12 if group_sequence else 11
    size = (len(fields) + 4).to_bytes(4)
    return b"\x00\x53\x73\xd0" + size + count.to_bytes(4) + fields + BODY


GROUPS = {
    # name: message, its group, whether the message closes the group
    "no properties": (BODY, "", False),
    "properties that end before it": (properties(-1) + BODY, "", False),
    "null": (grouped("40"), "", False),
    "empty": (grouped("a100"), "", False),
    "a name alone": (grouped("a10167"), "g", False),
    "a name and a sequence": (grouped("a10167", "700000002a"), "g", False),
    "the last of its group": (grouped("a10167", "70ffffffff"), "g", True),
    "one before that": (grouped("a10167", "70fffffffe"), "g", False),
    "a sequence of null": (grouped("a10167", "40"), "g", False),
    "a sequence without a group": (grouped("40", "70ffffffff"), "", True),
}


@pytest.mark.requirement("RCV-07")
@pytest.mark.parametrize(("data", "group", "closes"), GROUPS.values(), ids=GROUPS.keys())
def test_a_message_knows_its_group(data: bytes, group: str, closes: bool) -> None:
    message = read(data)
    assert (message.group, message.closes_group) == (group, closes)
    again = message.moved(None, expires=False).annotated(bytes.fromhex("c10100"))
    assert (again.group, again.closes_group) == (group, closes)


@pytest.mark.parametrize("data", [grouped("5201"), grouped("a10167", "a10131")])
def test_a_group_that_is_no_string_or_has_no_number_is_refused(data: bytes) -> None:
    with pytest.raises(LinkFault):
        read(data)


def test_an_opaque_message_has_nothing_but_its_payload() -> None:
    """Annotations and subject are not even read from a payload that begins like a message."""
    payload = ANNOTATIONS + bytes.fromhex("005373c0080440404040a10173") + b"?"
    message = opaque_message(payload, message_format=7, origin=Origin("ada"))
    clock = SimulatedClock()
    assert [message.header(count, clock) for count in (0, 3)] == [b"", b""]
    assert message.header(0, clock, acquired_before=True) == b""
    assert (message.encoded, message.size, message.subject()) == (payload, len(payload), "")
    for change in (message.annotations, lambda: message.annotated(ANNOTATIONS[3:])):
        with pytest.raises(LinkFault, match=r"format 0x7 .* has no annotations"):
            change()
    moved = message.moved(None, expires=False)
    assert (moved.encoded, moved.opaque, moved.message_format) == (payload, True, 7)
    assert (moved.publisher, moved.header(0, clock)) == ("ada", b"")
