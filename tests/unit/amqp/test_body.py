"""Bodies that arrive in parts: the scanner judges them as `split` judges whole messages."""

import pytest

from broker.amqp.body import ENOUGH, NAME_MAX, BodyScanner, find_body
from broker.amqp.errors import DECODE_ERROR, RESOURCE_LIMIT_EXCEEDED, Fault
from broker.amqp.limits import DEPTH_MAX, SECTIONS_BEFORE_BODY_MAX, SECTIONS_MAX
from broker.amqp.sections import split

DATA = b"\x00\x53\x75"
SEQUENCE = b"\x00\x53\x76"
VALUE = b"\x00\x53\x77"
FOOTER = b"\x00\x53\x78"

BODIES = {
    "short data": DATA + b"\xa0\x03abc",
    "long data": DATA + b"\xb0\x00\x00\x00\x03abc",
    "two data sections": DATA + b"\xa0\x01a" + DATA + b"\xa0\x00",
    "data and a footer": DATA + b"\xa0\x01a" + FOOTER + b"\xc1\x01\x00",
    "a sequence": SEQUENCE + b"\xc0\x03\x02\x41\x41" + SEQUENCE + b"\x45",
    "a long sequence": SEQUENCE + b"\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x41",
    "a string": VALUE + b"\xa1\x05hello",
    "a null": VALUE + b"\x40",
    "a long": VALUE + b"\x80" + bytes(8),
    "a map": VALUE + b"\xd1\x00\x00\x00\x06\x00\x00\x00\x02\x41\x42",
    "an array": VALUE + b"\xe0\x04\x02\x50\x01\x02",
    "a described value": VALUE + b"\x00\x53\x01\x00\xa3\x03a:b\x40",
    "a value with a name that no section has": VALUE + b"\x00\xa3\x41" + b"n" * 65 + b"\x40",
    "a value with a very long name": VALUE + b"\x00\xb3\x00\x00\x01\x00" + b"n" * 256 + b"\x41",
    "a value of a type with a code of eight bytes": VALUE + b"\x00\x80" + bytes(8) + b"\x40",
    "a value of the type zero": VALUE + b"\x00\x44\x40",
    "a descriptor of eight bytes": b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x75\xa0\x01a",
    "a descriptor by name": b"\x00\xa3\x10amqp:data:binary\xa0\x01a",
    "a descriptor by a long name": b"\x00\xb3\x00\x00\x00\x10amqp:data:binary\xa0\x01a",
}

MALFORMED = {
    "not described": b"\xa0\x01a",
    "not binary": DATA + b"\xa1\x01a",
    "not a list": SEQUENCE + b"\xa0\x01a",
    "two values": VALUE + b"\x40" + VALUE + b"\x40",
    "data and a value": DATA + b"\xa0\x00" + VALUE + b"\x40",
    "a section from before the body": DATA + b"\xa0\x00" + b"\x00\x53\x74\xc1\x01\x00",
    "behind the footer": DATA + b"\xa0\x00" + FOOTER + b"\xc1\x01\x00" + DATA + b"\xa0\x00",
    "a footer that is a list": DATA + b"\xa0\x00" + FOOTER + b"\xc0\x01\x00",
    "no constructor": VALUE + b"\x01",
    "an unknown descriptor": b"\x00\x53\x99\x40",
    "a descriptor that is a string": b"\x00\xa1\x01a\x40",
    "a size without room for its count": VALUE + b"\xd0\x00\x00\x00\x01\x00\x00\x00\x00",
    "a map with half a pair": VALUE + b"\xc1\x02\x01\x41",
    "a count that is too large": VALUE + b"\xc0\x02\x09\x41",
    "nested too deeply": VALUE + b"\x00\x53\x01" * (DEPTH_MAX + 1) + b"\x40",
}


def walked(data: bytes, step: int) -> BodyScanner:
    body = BodyScanner()
    for at in range(0, len(data), step):
        body.walk(data, at, min(len(data), at + step))
    return body


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize("data", BODIES.values(), ids=BODIES.keys())
def test_a_body_is_whole_however_it_comes(data: bytes, step: int) -> None:
    split(data, 0, len(data))
    assert walked(data, step).is_whole()


@pytest.mark.parametrize("data", BODIES.values(), ids=BODIES.keys())
def test_a_part_is_whole_exactly_where_it_would_be_a_body(data: bytes) -> None:
    for end in range(1, len(data)):
        try:
            split(data[:end], 0, end)
            would_be = True
        except Fault:
            would_be = False
        assert walked(data[:end], 3).is_whole() is would_be, end


@pytest.mark.parametrize("step", [1, 1000])
@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_malformed_is_so_in_parts_too(data: bytes, step: int) -> None:
    with pytest.raises(Fault):
        split(data, 0, len(data))
    with pytest.raises(Fault) as found:
        walked(data, step)
    assert found.value.condition == DECODE_ERROR


def test_a_body_has_no_more_sections_than_its_limit() -> None:
    most = (DATA + b"\xa0\x00") * SECTIONS_MAX
    with_footer = most + FOOTER + b"\xc1\x01\x00"
    split(with_footer, 0, len(with_footer))
    assert walked(with_footer, 1000).is_whole()
    body = walked(most, 1000)
    with pytest.raises(Fault) as found:
        body.walk(DATA, 0, len(DATA))
    assert found.value.condition == RESOURCE_LIMIT_EXCEEDED


def test_no_name_of_a_type_is_gathered_without_end() -> None:
    with pytest.raises(Fault, match=str(NAME_MAX)):
        walked(b"\x00\xb3\x7f\xff\xff\xff", 1)


def annotations(size: int) -> bytes:
    """Return a message-annotations section of `size` bytes."""
    text = size - 3 - 9 - 3 - 5
    return (
        b"\x00\x53\x72\xd1"
        + (size - 3 - 5).to_bytes(4, "big")
        + b"\x00\x00\x00\x02\xa3\x01x"
        + b"\xb1"
        + text.to_bytes(4, "big")
        + b"y" * text
    )


def test_the_body_is_found_behind_everything_else() -> None:
    head = b"\x00\x53\x70\x45" + annotations(1000) + b"\x00\x53\x73\xc0\x02\x01\x40"
    data = b"?" + head + DATA + b"\xa0\x01a"
    assert find_body(data, 1, len(data)) == 1 + len(head)
    assert find_body(DATA, 0, 3) == 0


@pytest.mark.parametrize("size", [SECTIONS_BEFORE_BODY_MAX, SECTIONS_BEFORE_BODY_MAX + 1])
def test_the_body_begins_within_so_many_bytes(size: int) -> None:
    data = annotations(size) + DATA + b"\xb0\x00\xff\xff\xff"
    if size <= SECTIONS_BEFORE_BODY_MAX:
        assert find_body(data, 0, len(data)) == size
        return
    with pytest.raises(Fault) as found:
        find_body(data, 0, len(data))
    assert found.value.condition == RESOURCE_LIMIT_EXCEEDED


@pytest.mark.parametrize("kind", [DATA, b"\x00\xa3\x10amqp:data:binary"], ids=["code", "name"])
@pytest.mark.parametrize("size", range(SECTIONS_BEFORE_BODY_MAX - 3, SECTIONS_BEFORE_BODY_MAX + 3))
def test_enough_is_enough(kind: bytes, size: int) -> None:
    """The first ENOUGH bytes suffice to decide whether the body begins too late."""
    data = (annotations(size) + kind + b"\xb0\x7f\xff\xff\xff" + bytes(1000))[:ENOUGH]
    if size <= SECTIONS_BEFORE_BODY_MAX:
        assert find_body(data, 0, len(data)) == size
        return
    with pytest.raises(Fault) as found:
        find_body(data, 0, len(data))
    assert found.value.condition == RESOURCE_LIMIT_EXCEEDED


def test_a_section_that_is_larger_than_what_is_at_hand_is_too_large() -> None:
    data = annotations(2 * SECTIONS_BEFORE_BODY_MAX)[: SECTIONS_BEFORE_BODY_MAX + 100]
    with pytest.raises(Fault) as found:
        find_body(data, 0, len(data))
    assert found.value.condition == RESOURCE_LIMIT_EXCEEDED


def test_a_section_of_another_type_is_malformed() -> None:
    with pytest.raises(Fault) as found:
        find_body(b"\x00\x53\x72\xa0\x00", 0, 5)
    assert found.value.condition == DECODE_ERROR
