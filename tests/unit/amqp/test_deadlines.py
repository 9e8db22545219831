"""Deadlines: idle peers, heartbeats, slow handshakes and frames, the wait for a close."""

import pytest

from broker.amqp.deadlines import (
    CLOSE_GRACE_MS,
    HEARTBEAT_MIN_MS,
    NO_DEADLINE,
    Deadlines,
    earlier,
    is_due,
)
from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME, SASL_HEADER
from broker.amqp.limits import Limits
from broker.amqp.performatives import Close, End, Flow, Open
from broker.amqp.sasl import ANONYMOUS
from broker.amqp.sasl_frames import SaslInit, SaslMechanisms
from tests.support.broker import Broker, Doorman
from tests.support.frames import Header, attach_receiver, flow, frame, opening, sasl_frame

BEGUN_MS = 1000


def opened(*, patience: int = 0, peer_idle_time_out: int = -1) -> Deadlines:
    """Return the deadlines of a connection opened at `BEGUN_MS`, without one for the handshake.

    `patience` is the broker's own idle time-out in ms, 0 for none.
    """
    times = Deadlines(Limits(idle_time_out_ms=patience), BEGUN_MS)
    times.handshake_ms = NO_DEADLINE
    times.opened(peer_idle_time_out)
    return times


# -- the arithmetic


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(NO_DEADLINE, NO_DEADLINE, NO_DEADLINE, id="neither is one"),
        pytest.param(5, NO_DEADLINE, 5, id="only the first is one"),
        pytest.param(NO_DEADLINE, 5, 5, id="only the second is one"),
        pytest.param(5, 7, 5, id="the first is earlier"),
        pytest.param(7, 5, 5, id="the second is earlier"),
        pytest.param(0, NO_DEADLINE, 0, id="the clock starts at 0"),
    ],
)
def test_the_earlier_of_two_deadlines(one: int, other: int, expected: int) -> None:
    assert earlier(one, other) == expected


@pytest.mark.parametrize(
    ("deadline", "now", "due"),
    [
        pytest.param(NO_DEADLINE, 10**9, False, id="there is none"),
        pytest.param(5, 4, False, id="it is yet to come"),
        pytest.param(5, 5, True, id="it comes"),
        pytest.param(5, 6, True, id="it has passed"),
    ],
)
def test_a_deadline_is_due(deadline: int, now: int, *, due: bool) -> None:
    assert is_due(deadline, now) is due


@pytest.mark.parametrize(
    ("peer_idle_time_out", "interval"),
    [
        pytest.param(30_000, 15_000, id="half of the peer's idle time-out"),
        pytest.param(2 * HEARTBEAT_MIN_MS, HEARTBEAT_MIN_MS, id="half of it, at the least"),
        pytest.param(1, HEARTBEAT_MIN_MS, id="not more often than is reasonable"),
        pytest.param(2**32 - 1, 2**31 - 1, id="half of the longest"),
    ],
)
def test_a_heartbeat_is_owed_after(peer_idle_time_out: int, interval: int) -> None:
    times = opened(peer_idle_time_out=peer_idle_time_out)
    assert times.earliest() == BEGUN_MS + interval
    assert not times.owes_heartbeat(BEGUN_MS + interval - 1)
    assert times.owes_heartbeat(BEGUN_MS + interval)
    times.last_output_ms = BEGUN_MS + 10
    assert not times.owes_heartbeat(BEGUN_MS + interval)
    assert times.earliest() == BEGUN_MS + interval + 10


@pytest.mark.parametrize(
    "idle_time_out", [pytest.param(-1, id="names none"), pytest.param(0, id="names zero")]
)
def test_no_heartbeat_is_owed_to_a_peer_that(idle_time_out: int) -> None:
    times = opened(peer_idle_time_out=idle_time_out)
    assert not times.owes_heartbeat(10**12)
    assert times.earliest() == NO_DEADLINE


def test_a_peer_is_idle_from_its_last_input_on() -> None:
    times = opened(patience=60_000)
    assert times.earliest() == BEGUN_MS + 60_000
    times.last_input_ms = BEGUN_MS + 5
    assert not times.is_idle(BEGUN_MS + 60_004)
    assert times.is_idle(BEGUN_MS + 60_005)
    assert times.earliest() == BEGUN_MS + 60_005


def test_before_open_only_the_handshake_has_a_deadline() -> None:
    times = Deadlines(Limits(handshake_timeout_ms=10_000, idle_time_out_ms=10), BEGUN_MS)
    assert times.earliest() == BEGUN_MS + 10_000
    assert not times.is_idle(10**12)
    assert not times.owes_heartbeat(10**12)


def test_who_is_not_read_from_is_neither_idle_nor_slow() -> None:
    times = opened(patience=100, peer_idle_time_out=500)
    times.frame_begun(BEGUN_MS)
    times.hold()
    late = BEGUN_MS + 60_000
    assert not times.is_idle(late)
    assert not times.is_slow(late)
    assert times.earliest() == BEGUN_MS + 250, "heartbeats are still owed"
    times.release(late)
    assert not times.is_idle(late + 99)
    assert times.is_idle(late + 100)
    assert times.partial_ms == late + Limits().handshake_timeout_ms
    assert not times.is_slow(times.partial_ms - 1)
    assert times.is_slow(times.partial_ms)


def test_the_earliest_of_all_is_next() -> None:
    times = opened(patience=60_000, peer_idle_time_out=30_000)
    assert times.earliest() == BEGUN_MS + 15_000
    times.frame_begun(BEGUN_MS + 1)
    assert times.earliest() == BEGUN_MS + 10_001
    times.partial_ms = NO_DEADLINE
    times.last_output_ms = BEGUN_MS + 59_000
    assert times.earliest() == BEGUN_MS + 60_000


def test_a_close_that_is_written_in_pieces_does_not_get_more_time() -> None:
    times = opened()
    times.close_written(BEGUN_MS)
    times.close_written(BEGUN_MS + 1999)
    assert times.close_ms == BEGUN_MS + CLOSE_GRACE_MS


# -- idle time-outs


def test_an_idle_peer_is_told_and_left() -> None:
    broker = Broker(limits=Limits(idle_time_out_ms=60_000))
    client = broker.session()
    broker.advance(59_999)
    client.expect_nothing()
    broker.advance(1)
    close = client.expect_last(Close)
    assert close.error is not None
    assert close.error.condition == "amqp:resource-limit-exceeded"
    assert close.error.description == "local-idle-timeout expired"
    assert not client.is_closed()
    broker.advance(2000)
    assert client.is_closed()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(EMPTY_FRAME, id="an empty frame"),
        pytest.param(EMPTY_FRAME[:1], id="part of a frame"),
    ],
)
def test_any_byte_keeps_a_connection_alive(data: bytes) -> None:
    broker = Broker(limits=Limits(idle_time_out_ms=9_000))
    client = broker.connect()
    broker.advance(8_000)
    client.send_bytes(data)
    broker.advance(8_000)
    client.expect_nothing()


def test_a_peer_with_an_idle_time_out_hears_of_us_at_half_of_it() -> None:
    broker = Broker(limits=Limits(idle_time_out_ms=0))
    client = broker.connect(idle_time_out=30_000)
    for _ in range(3):
        broker.advance(14_999)
        client.expect_nothing()
        broker.advance(1)
        assert client.bodies() == [None]


def test_other_output_stands_in_for_a_heartbeat() -> None:
    broker = Broker(limits=Limits(idle_time_out_ms=0))
    client = broker.connect(idle_time_out=30_000)
    broker.advance(10_000)
    client.begin()
    broker.advance(14_999)
    client.expect_nothing()
    broker.advance(1)
    assert client.bodies() == [None]


def test_nobody_makes_us_send_heartbeats_without_pause() -> None:
    broker = Broker(limits=Limits(idle_time_out_ms=0))
    client = broker.connect(idle_time_out=1)
    for _ in range(100):
        broker.advance(1)
    assert client.bodies() == [None, None]


def test_without_idle_time_outs_silence_lasts_for_ever() -> None:
    broker = Broker(limits=Limits(idle_time_out_ms=0))
    client = broker.connect()
    broker.advance(10**9)
    client.expect_nothing()
    assert not client.is_closed()


def test_heartbeats_and_echoes_have_their_times_whatever_the_channels() -> None:
    broker = Broker(limits=Limits(idle_time_out_ms=0))
    client = broker.connect(idle_time_out=30_000)
    client.begin(3)
    client.send(flow(echo=True), flow(echo=True), channel=3)
    client.expect_last(Flow)
    broker.advance(9)
    client.expect_nothing()
    broker.advance(1)
    assert client.expect_frame(Flow)[0] == 3
    broker.advance(14_999)
    client.expect_nothing()
    broker.advance(1)
    assert client.bodies() == [None]


# -- handshakes and frames that take their time


@pytest.mark.attack("A1")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(AMQP_HEADER[:7], id="part of a header"),
    ],
)
def test_a_peer_that_does_not_begin_is_left(data: bytes) -> None:
    broker = Broker(limits=Limits(handshake_timeout_ms=10_000))
    client = broker.dial()
    broker.advance(6_000)
    client.send_bytes(data)
    broker.advance(3_999)
    assert not client.is_closed()
    broker.advance(1)
    client.expect_nothing()
    assert client.is_closed()


def test_between_header_and_open_a_peer_may_take_its_time() -> None:
    broker = Broker()
    client = broker.dial()
    client.send_bytes(AMQP_HEADER)
    client.expect(Header)
    broker.advance(10**9)
    client.send(Open(container_id="late"))
    client.expect_last(Open)


@pytest.mark.attack("A1")
def test_a_frame_has_to_come_whole_in_time_however_it_trickles() -> None:
    broker = Broker(limits=Limits(handshake_timeout_ms=10_000))
    client = broker.session()
    data = frame(attach_receiver(name="n" * 100))
    for at in range(10):
        client.send_bytes(data[at : at + 1])
        client.expect_nothing()
        broker.advance(1000)
    client.expect_close("amqp:resource-limit-exceeded")
    client.send_bytes(data[10:11])
    broker.advance(1999)
    assert not client.is_closed()
    broker.advance(1)
    assert client.is_closed()


def test_each_frame_has_its_own_deadline() -> None:
    broker = Broker(limits=Limits(handshake_timeout_ms=10_000, idle_time_out_ms=0))
    client = broker.connect()
    client.send_bytes(EMPTY_FRAME[:4])
    for _ in range(5):
        broker.advance(9_000)
        client.send_bytes(EMPTY_FRAME[4:] + EMPTY_FRAME[:4])
    client.send_bytes(EMPTY_FRAME[4:])
    broker.advance(10**9)
    client.expect_nothing()


@pytest.mark.attack("A1")
def test_authentication_has_to_end_in_time_however_it_trickles() -> None:
    broker = Broker(limits=Limits(handshake_timeout_ms=10_000))
    client = broker.dial()
    client.send_bytes(SASL_HEADER)
    client.expect(Header)
    client.expect_last(SaslMechanisms)
    data = sasl_frame(SaslInit(mechanism=ANONYMOUS, initial_response=bytes(30)))
    for at in range(10):
        assert not client.is_closed()
        client.send_bytes(data[at : at + 1])
        broker.advance(1000)
    client.expect_nothing()
    assert client.is_closed()


def test_an_authenticator_that_does_not_answer_in_time_is_not_waited_for() -> None:
    doorman = Doorman(slow=True)
    broker = Broker(limits=Limits(handshake_timeout_ms=10_000), authenticator=doorman)
    client = broker.dial()
    client.send_bytes(SASL_HEADER + sasl_frame(SaslInit(mechanism=ANONYMOUS)) + opening())
    client.frames()
    broker.advance(10_000)
    assert client.is_closed()
    doorman.answer()
    client.expect_nothing()
    assert broker.watcher.events == []


def test_between_authentication_and_open_a_peer_may_take_its_time() -> None:
    broker = Broker()
    client = broker.dial()
    client.send_bytes(SASL_HEADER + sasl_frame(SaslInit(mechanism=ANONYMOUS)))
    client.frames()
    broker.advance(10**9)
    client.send_bytes(AMQP_HEADER)
    client.expect_last(Header)
    broker.advance(10**9)
    client.send(Open(container_id="late"))
    client.expect_last(Open)


def test_what_waits_for_an_authenticator_begins_when_that_answers() -> None:
    """The time for a frame runs from when the broker could read it, not from its first bytes."""
    doorman = Doorman(slow=True)
    limits = Limits(handshake_timeout_ms=10_000, idle_time_out_ms=0)
    broker = Broker(limits=limits, authenticator=doorman)
    client = broker.dial()
    client.send_bytes(SASL_HEADER + sasl_frame(SaslInit(mechanism=ANONYMOUS)))
    client.send_bytes(opening() + EMPTY_FRAME[:7])
    broker.advance(9_999)
    doorman.answer()
    client.frames()
    broker.advance(9_999)
    client.expect_nothing()
    broker.advance(1)
    client.expect_close("amqp:resource-limit-exceeded")


# -- a close by the broker


def test_a_peer_that_answers_our_close_is_left_at_once() -> None:
    broker = Broker()
    client = broker.connect()
    client.send(End())
    client.expect_close("amqp:not-allowed")
    broker.advance(1000)
    client.send(Close())
    client.expect_nothing()
    assert client.is_closed()
    broker.advance(10**9)
    client.expect_nothing()


def test_while_we_close_nothing_else_is_due() -> None:
    """Heartbeats, the end of a frame and the idle time-out no longer count."""
    broker = Broker(limits=Limits(handshake_timeout_ms=1000, idle_time_out_ms=1000))
    client = broker.connect(idle_time_out=1000)
    client.send_bytes(frame(End()) + EMPTY_FRAME[:3])
    client.expect_close("amqp:not-allowed")
    for _ in range(1999):
        broker.advance(1)
    client.expect_nothing()
    assert not client.is_closed()
    broker.advance(1)
    client.expect_nothing()
    assert client.is_closed()


def test_a_peer_that_does_not_answer_our_close_is_left() -> None:
    broker = Broker()
    client = broker.session()
    broker.advance(30_000)
    client.frames()
    broker.container.close_all(ConnectionFault(CONNECTION_FORCED, "stopping"))
    broker.container.run_round()
    client.expect_close("amqp:connection:forced")
    broker.advance(1999)
    assert not client.is_closed()
    broker.advance(1)
    assert client.is_closed()
    client.expect_nothing()


def test_a_connection_that_is_over_has_no_deadlines() -> None:
    broker = Broker()
    client = broker.connect(idle_time_out=1000)
    client.send(Close())
    client.expect_last(Close)
    connection = client.peer.connection
    connection.tick(connection.next_deadline_ms + 10**9)
    assert connection.next_deadline_ms == NO_DEADLINE
    client.expect_nothing()


# -- the timer queue


def test_deadlines_that_move_leave_nothing_behind_in_the_timer_queue() -> None:
    """Heartbeats, echoes and cut frames replace deadlines; the timer queue does not grow by it."""
    broker = Broker(limits=Limits(idle_time_out_ms=60_000))
    client = broker.session(idle_time_out=20_000)
    for step in range(500):
        client.send(flow(echo=True), flow(echo=True))
        client.send_bytes(EMPTY_FRAME[:5])
        broker.advance(7 + step % 5)
        client.send_bytes(EMPTY_FRAME[5:])
        broker.advance(step % 3 * 1000)
    deadlines = 0
    while broker.router.timer_queue.next_deadline_ms() >= 0:
        deadlines += 1
        client.hang_up()
        at = broker.router.timer_queue.next_deadline_ms()
        broker.router.timer_queue.tick(at)
    assert deadlines < 10
