"""Session windows: how many transfers each side may send, also if their numbers wrap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp import serial
from broker.amqp.errors import WINDOW_VIOLATION, SessionFault
from broker.amqp.window import IncomingWindow, OutgoingWindow

NUMBERS = st.integers(0, 2**32 - 1) | st.integers(2**32 - 60, 2**32 - 1)
FEW = st.integers(0, 60)
WINDOWS = st.integers(0, 2**32 - 1) | FEW


def sent(count: int, *, offered: int = 2**32 - 1, start: int = 0) -> OutgoingWindow:
    """Return the window of a session that has sent `count` transfers, numbered from `start`."""
    window = OutgoingWindow(offered)
    window.next_id = start
    for _ in range(count):
        window.send()
    return window


# -- the incoming window


def test_a_peer_may_send_as_many_transfers_as_the_window_has() -> None:
    window = IncomingWindow(3, 0)
    for _ in range(3):
        window.take()
    with pytest.raises(SessionFault) as caught:
        window.take()
    assert caught.value.condition == WINDOW_VIOLATION
    assert window.next_id == 3, "a transfer too many is not counted"


@pytest.mark.parametrize(
    ("size", "taken", "wants"),
    [
        pytest.param(10, 0, False, id="nothing has come"),
        pytest.param(10, 4, False, id="less than half has come"),
        pytest.param(10, 5, True, id="half has come"),
        pytest.param(10, 10, True, id="everything has come"),
        pytest.param(1, 0, False, id="a window of one is open"),
        pytest.param(1, 1, True, id="a window of one is shut"),
        pytest.param(3, 1, False, id="an odd window is more than half open"),
        pytest.param(3, 2, True, id="an odd window is less than half open"),
    ],
)
def test_the_peer_is_told_before_it_stalls(size: int, taken: int, wants: bool) -> None:
    window = IncomingWindow(size, 0)
    for _ in range(taken):
        window.take()
    assert window.wants_refill() is wants


def test_a_refill_opens_the_whole_window() -> None:
    window = IncomingWindow(2, 0)
    window.take()
    window.take()
    assert window.refill() == 2
    assert not window.wants_refill()
    window.take()
    window.take()
    with pytest.raises(SessionFault):
        window.take()


@given(start=NUMBERS, count=FEW)
def test_each_transfer_that_comes_has_the_next_number(start: int, count: int) -> None:
    window = IncomingWindow(60, start)
    for _ in range(count):
        window.take()
    assert window.next_id == (start + count) % 2**32
    assert window.left == 60 - count


@given(start=NUMBERS, taken=FEW, skipped=FEW)
def test_what_the_peer_announces_is_next(start: int, taken: int, skipped: int) -> None:
    window = IncomingWindow(60, start)
    for _ in range(taken):
        window.take()
    announced = serial.add(start, taken + skipped)
    window.announced(announced)
    assert window.next_id == announced
    assert window.left == 60 - taken, "the window is of transfers that came, not of numbers"


@given(start=NUMBERS, taken=st.integers(1, 60), back=st.integers(1, 60))
def test_the_peer_may_not_go_back(start: int, taken: int, back: int) -> None:
    window = IncomingWindow(60, start)
    for _ in range(taken):
        window.take()
    with pytest.raises(SessionFault) as caught:
        window.announced(serial.add(start, taken - back))
    assert caught.value.condition == WINDOW_VIOLATION
    assert window.next_id == serial.add(start, taken)


# -- the outgoing window


@pytest.mark.parametrize(
    ("count", "seen", "window", "left"),
    [
        pytest.param(0, 0, 10, 10, id="nothing was sent"),
        pytest.param(4, 4, 10, 10, id="everything sent has come"),
        pytest.param(4, 1, 10, 7, id="three are on the wire"),
        pytest.param(4, 0, 3, 0, id="more is on the wire than there is room for"),
        pytest.param(4, 4, 0, 0, id="the peer has no room"),
        pytest.param(4, -1, 10, 6, id="the peer has not seen our begin, and counts from 0"),
        pytest.param(1, 1, 2**32 - 1, 2**32 - 1, id="as much room as can be"),
    ],
)
def test_room_for_transfers(count: int, seen: int, window: int, left: int) -> None:
    ours = sent(count)
    ours.offered(seen, window)
    assert ours.left == left
    assert ours.next_id == count


@pytest.mark.parametrize(
    ("start", "count", "seen"),
    [
        pytest.param(0, 4, 5, id="one that was not sent"),
        pytest.param(2**32 - 2, 1, 0, id="one that was not sent, across the wrap"),
        pytest.param(0, 0, 2**31, id="half the ring away, either way"),
    ],
)
def test_a_peer_cannot_expect(start: int, count: int, seen: int) -> None:
    window = sent(count, start=start)
    left = window.left
    with pytest.raises(SessionFault) as caught:
        window.offered(seen, 1000)
    assert caught.value.condition == WINDOW_VIOLATION
    assert window.left == left


@given(start=NUMBERS, count=FEW, lost=FEW, room=WINDOWS)
def test_no_transfer_goes_beyond_what_the_peer_offered(
    start: int, count: int, lost: int, room: int
) -> None:
    """The limit is next-incoming-id + incoming-window, for all values of the numbers (2.5.6)."""
    ours = sent(count, start=start)
    on_the_wire = min(lost, count)
    ours.offered(serial.add(ours.next_id, -on_the_wire), room)
    assert ours.left >= 0
    assert on_the_wire + ours.left == max(room, on_the_wire)


@given(start=NUMBERS, count=FEW)
def test_each_transfer_that_goes_uses_up_a_number_and_room(start: int, count: int) -> None:
    ours = sent(count, offered=100, start=start)
    assert ours.next_id == (start + count) % 2**32
    assert ours.left == 100 - count
