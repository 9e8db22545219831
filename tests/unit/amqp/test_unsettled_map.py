"""The unsettled map of an attach: what is read of a peer's, and what a frame has room for."""

import pytest

from broker.amqp.encode import BytesWriter
from broker.amqp.errors import (
    INVALID_FIELD,
    RESOURCE_LIMIT_EXCEEDED,
    ConnectionFault,
    LinkFault,
)
from broker.amqp.limits import UNSETTLED_MAP_MAX
from broker.amqp.outcomes import ACCEPTED, Rejected, State
from broker.amqp.performatives import SENDER, Attach
from broker.amqp.unsettled_map import put_unsettled_map, read_unsettled_map
from tests.conformance.resuming import unsettled_map
from tests.support.unsettled_maps import EMPTY, told


def answer() -> Attach:
    return Attach(name="link", handle=0, role=SENDER, initial_delivery_count=0)


def size_of(attach: Attach) -> int:
    out = BytesWriter()
    attach.write(out)
    return len(out)


def test_without_a_map_there_are_no_states() -> None:
    assert read_unsettled_map(None) is None
    assert read_unsettled_map(EMPTY) == {}


def test_states_are_read_by_their_tags() -> None:
    read = read_unsettled_map(unsettled_map({b"1": None, b"2" * 32: ACCEPTED}))
    assert read == {b"1": None, b"2" * 32: ACCEPTED}


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(b"\xc1\x05\x02\xa1\x01t\x40", id="a text"),
        pytest.param(b"\xc1\x03\x02\x40\x40", id="null"),
        pytest.param(unsettled_map({b"t" * 33: None}), id="33 bytes"),
    ],
)
def test_a_key_is_a_tag(encoded: bytes) -> None:
    with pytest.raises(LinkFault) as caught:
        read_unsettled_map(encoded)
    assert caught.value.condition == INVALID_FIELD


def test_a_state_that_is_not_known_counts_as_null() -> None:
    assert read_unsettled_map(b"\xc1\x08\x02\xa0\x01t\x00\x53\x77\x45") == {b"t": None}


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(b"\xc1\x05\x02\xa0\x09t\x40", id="a tag beyond the map"),
        pytest.param(b"\xc1\x04\x02\xa0\x01t", id="no state"),
        pytest.param(b"\xc1\x05\x03\xa0\x01t\x40", id="an odd number of values"),
        pytest.param(b"\xc1\x06\x02\xa0\x01t\x40\x40", id="more than its count"),
    ],
)
def test_a_malformed_map_is_a_fault(encoded: bytes) -> None:
    with pytest.raises(ConnectionFault):
        read_unsettled_map(encoded)


def test_a_map_has_only_so_many_tags() -> None:
    states: dict[bytes, State | None] = {
        number.to_bytes(4, "big"): None for number in range(UNSETTLED_MAP_MAX)
    }
    read = read_unsettled_map(unsettled_map(states))
    assert read is not None
    assert len(read) == UNSETTLED_MAP_MAX
    states[b"more"] = None
    states[b"still"] = None
    with pytest.raises(LinkFault) as caught:
        read_unsettled_map(unsettled_map(states))
    assert caught.value.condition == RESOURCE_LIMIT_EXCEEDED


def test_a_map_with_room_is_complete() -> None:
    attach = answer()
    assert put_unsettled_map(attach, [(b"1", None), (b"2", Rejected())], 512)
    assert told(attach) == {b"1": None, b"2": "rejected"}
    assert not attach.incomplete_unsettled


@pytest.mark.parametrize("frame_size", [512, 513, 600, 1000, 5000])
def test_a_map_fills_the_frame_and_says_that_it_is_incomplete(frame_size: int) -> None:
    attach = answer()
    tags = [number.to_bytes(8, "big") for number in range(1000)]
    assert not put_unsettled_map(attach, [(tag, None) for tag in tags], frame_size)
    assert attach.incomplete_unsettled
    assert frame_size - 64 < size_of(attach) + 8 <= frame_size
    listed = list(told(attach) or {})
    assert listed == tags[: len(listed)]
