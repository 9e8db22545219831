import pytest

from broker.amqp.descriptors import OPEN
from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME, TLS_HEADER
from broker.amqp.limits import BUFFER_BEFORE_OPEN, FRAME_BEFORE_OPEN, Limits
from broker.amqp.outcomes import Error
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Flow, Open
from broker.links.peer import Peer
from tests.support.broker import Broker, Client, RecordingWatcher
from tests.support.frames import (
    Disposition,
    Header,
    Transfer,
    attach_receiver,
    attach_sender,
    flow,
    frame,
    message,
    opening,
    raw_frame,
)

BEGIN = Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10)


def closed_with(client: Client) -> str:
    """The condition of the close that is all that comes; the socket stays open for the answer."""
    close = client.expect_last(Close)
    assert close.error is not None
    assert not client.is_closed()
    return close.error.condition


# -- open


def test_the_open_tells_what_we_are() -> None:
    limits = Limits(max_frame_size=4096, channel_max=7, idle_time_out_ms=30_000)
    client = Broker(limits=limits).dial()
    client.send_bytes(opening())
    assert client.expect(Header).data == AMQP_HEADER
    ours = client.expect_last(Open)
    assert ours.container_id == "broker"
    assert ours.max_frame_size == 4096
    assert ours.channel_max == 7
    assert ours.idle_time_out == 15_000  # half of what we bear
    assert ours.offered_capabilities == ["ANONYMOUS-RELAY", "sole-connection-for-container"]


def test_without_an_idle_time_out_none_is_announced() -> None:
    client = Broker(limits=Limits(idle_time_out_ms=0)).dial()
    client.send_bytes(opening())
    client.expect(Header)
    assert client.expect(Open).idle_time_out == -1


def test_everything_may_be_sent_before_any_of_our_answers() -> None:
    client = Broker().dial()
    client.send_bytes(
        opening()
        + frame(BEGIN)
        + frame(attach_receiver(handle=1))
        + frame(flow(handle=1, credit=1, delivery_count=0))
        + frame(attach_sender())
        + frame(Transfer(settled=True, payload=message(b"early")))
        + frame(Close())
    )
    kinds = [type(body) for body in client.bodies()]
    assert kinds == [Header, Open, Begin, Attach, Attach, Flow, Close]
    assert client.is_closed()


@pytest.mark.parametrize("size", [1, 3, 7, 8, 64])
def test_input_may_be_cut_anywhere(size: int) -> None:
    data = (
        opening()
        + frame(BEGIN)
        + frame(attach_receiver(handle=1))
        + frame(attach_sender())
        + frame(Transfer(settled=True, payload=message(b"x" * 300)))
        + frame(flow(handle=1, credit=1, delivery_count=0, next_outgoing_id=1))
    )
    client = Broker().dial()
    for at in range(0, len(data), size):
        client.send_bytes(data[at : at + size])
    kinds = [type(body) for body in client.bodies()]
    assert kinds == [Header, Open, Begin, Attach, Attach, Flow, Transfer]


def test_an_extended_frame_header_is_skipped() -> None:
    client = Broker().session()
    attach = frame(attach_receiver())
    body = attach[8:]
    client.send_bytes(
        (len(body) + 12).to_bytes(4) + b"\x03\x00\x00\x00" + b"????" + body,
    )
    client.expect_last(Attach)


def test_an_empty_frame_is_not_answered() -> None:
    client = Broker().connect()
    client.send_bytes(EMPTY_FRAME)
    client.expect_nothing()


@pytest.mark.parametrize(
    ("frame_in", "condition"),
    [
        pytest.param(frame(Open(container_id="x")), "amqp:illegal-state", id="a second open"),
        pytest.param(frame(End()), "amqp:not-allowed", id="end without a session"),
        pytest.param(frame(attach_sender()), "amqp:not-allowed", id="attach without a session"),
        pytest.param(frame(Transfer()), "amqp:not-allowed", id="transfer without a session"),
        pytest.param(frame(Disposition()), "amqp:not-allowed", id="disposition without a session"),
        pytest.param(frame(flow()), "amqp:not-allowed", id="flow without a session"),
        pytest.param(frame(Detach(handle=0)), "amqp:not-allowed", id="detach without a session"),
        pytest.param(
            frame(
                Begin(remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
            ),
            "amqp:not-allowed",
            id="an answer to a begin that was never sent",
        ),
        pytest.param(
            raw_frame(b"\x00\x53\x41\xc0\x03\x01\xa3\x00", kind=1),
            "amqp:connection:framing-error",
            id="a SASL frame",
        ),
        pytest.param(raw_frame(b"", kind=7), "amqp:connection:framing-error", id="a strange frame"),
        pytest.param(raw_frame(b"\x00"), "amqp:decode-error", id="a body of one byte"),
        pytest.param(raw_frame(b"\x00\x53"), "amqp:decode-error", id="a body of two bytes"),
        pytest.param(raw_frame(b"\x00\x53\x18"), "amqp:decode-error", id="a body without a list"),
        pytest.param(raw_frame(b"\x45"), "amqp:decode-error", id="a body that is not described"),
        pytest.param(
            raw_frame(b"\x00\x53\x11\x45"), "amqp:invalid-field", id="a begin without its fields"
        ),
    ],
)
def test_a_frame_that_cannot_be_closes_the_connection(frame_in: bytes, condition: str) -> None:
    broker = Broker()
    client = broker.connect()
    client.send_bytes(frame_in)
    assert closed_with(client) == condition
    assert broker.watcher.errors == []


def test_an_unknown_performative_closes_the_connection() -> None:
    client = Broker().session()
    client.send_bytes(raw_frame(b"\x00\x53\x1f\x45"))
    assert closed_with(client) == "amqp:not-implemented"


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"\xff\xff\xff\xff\x02\x00\x00\x00", id="size 2^32-1"),
        pytest.param(b"\x80\x00\x00\x00\x02\x00\x00\x00", id="size 2^31"),
        pytest.param(b"\x00\x00\x10\x01\x02\x00\x00\x00", id="one more than our max-frame-size"),
        pytest.param(b"\x00\x00\x00\x00\x02\x00\x00\x00", id="size 0"),
        pytest.param(b"\x00\x00\x00\x07\x02\x00\x00\x00", id="size 7"),
        pytest.param(b"\x00\x00\x00\x08\x00\x00\x00\x00", id="data offset 0"),
        pytest.param(b"\x00\x00\x00\x08\x01\x00\x00\x00", id="data offset within the header"),
        pytest.param(b"\x00\x00\x00\x08\x03\x00\x00\x00", id="data offset behind the frame"),
    ],
)
def test_an_impossible_frame_header_closes_the_connection(head: bytes) -> None:
    client = Broker(limits=Limits(max_frame_size=4096)).connect()
    client.send_bytes(head)
    assert closed_with(client) == "amqp:connection:framing-error"


def test_a_frame_of_exactly_our_max_frame_size_is_taken() -> None:
    client = Broker(limits=Limits(max_frame_size=4096)).session()
    client.attach_sender()
    whole = frame(Transfer(settled=True))
    payload = message(b"x" * (4096 - len(whole) - 8))
    assert len(frame(Transfer(settled=True, payload=payload))) == 4096
    client.send(Transfer(settled=True, payload=payload))
    client.expect_nothing()
    assert client.broker.queue().waiting == 1


def test_a_peer_may_not_ask_for_frames_below_the_minimum() -> None:
    client = Broker().dial()
    client.send_bytes(opening(max_frame_size=511))
    client.expect(Header)
    client.expect(Open)
    assert closed_with(client) == "amqp:not-allowed"


def test_an_answer_larger_than_the_peers_max_frame_size_is_not_sent() -> None:
    broker = Broker()
    client = broker.session(max_frame_size=512)
    client.send(attach_receiver(name="n" * 600, kind="queue"))
    assert closed_with(client) == "amqp:frame-size-too-small"
    assert broker.container.link_count() == 0
    assert broker.queue().consumers == []


def test_our_frames_fit_into_the_least_max_frame_size() -> None:
    """The longest texts of peers that we repeat in errors are cut."""
    broker = Broker()
    long = "é" * 2000
    exclusive = ["sole-connection-for-container"]
    broker.connect(long, desired_capabilities=exclusive)
    second = broker.dial()
    second.send_bytes(opening(long, desired_capabilities=exclusive, max_frame_size=512))
    assert all(each.size <= 512 for each in second.frames())
    third = broker.session("third", max_frame_size=512)
    third.send(attach_receiver("$tmp/" + "é" * 120))
    third.expect_refusal("amqp:not-found")


# -- before open


def test_no_frame_but_open_may_come_first() -> None:
    client = Broker().dial()
    client.send_bytes(AMQP_HEADER + frame(BEGIN))
    assert [type(body) for body in client.bodies()] == [Header, Open, Close]


def test_a_frame_before_open_is_small() -> None:
    client = Broker().dial()
    client.send_bytes(AMQP_HEADER)
    client.expect(Header)
    client.send_bytes((FRAME_BEFORE_OPEN + 1).to_bytes(4) + b"\x02\x00\x00\x00")
    client.expect(Open)
    assert closed_with(client) == "amqp:connection:framing-error"


def test_an_open_of_the_largest_size_is_taken() -> None:
    client = Broker().dial()
    room = FRAME_BEFORE_OPEN - len(frame(Open(container_id="x" * 300))) + 300
    data = frame(Open(container_id="x" * room))
    assert len(data) == FRAME_BEFORE_OPEN
    client.send_bytes(AMQP_HEADER + data)
    client.expect(Header)
    client.expect_last(Open)


def test_little_is_kept_of_a_peer_that_has_not_opened() -> None:
    """Frames are taken one by one: only those behind an unanswered SASL init wait."""
    broker = Broker()
    client = broker.dial()
    client.send_bytes(AMQP_HEADER + b"\x00\x00\x20\x00\x02\x00\x00\x00" + bytes(4000))
    client.expect(Header)
    for _ in range(BUFFER_BEFORE_OPEN // 4000 + 2):
        client.send_bytes(bytes(4000))
    client.expect(Open)
    client.expect_last(Close)


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(TLS_HEADER, id="TLS"),
        pytest.param(b"AMQP\x00\x00\x09\x01", id="AMQP 0-9-1"),
        pytest.param(b"AMQP\x00\x01\x00\x01", id="AMQP 1.0.1"),
        pytest.param(b"GET / HT", id="HTTP"),
    ],
)
def test_a_header_that_we_do_not_speak_is_answered_with_ours(header: bytes) -> None:
    client = Broker().dial()
    client.send_bytes(header + b"whatever comes behind it")
    assert client.expect_last(Header).data == AMQP_HEADER
    assert client.is_closed()


def test_whatever_comes_after_the_end_is_ignored() -> None:
    client = Broker().dial()
    client.send_bytes(TLS_HEADER)
    client.frames()
    client.send_bytes(opening())
    client.expect_nothing()


# -- close


def test_a_close_is_answered_and_the_socket_closed() -> None:
    broker = Broker()
    client = broker.session()
    client.send(Close())
    assert client.expect_last(Close).error is None
    assert client.is_closed()
    assert broker.watcher.events[-1] == "closed client: closed by the peer"


def test_frames_behind_a_close_are_ignored() -> None:
    broker = Broker()
    client = broker.session()
    client.send_bytes(frame(Close()) + frame(attach_receiver()) + b"\xff" * 20)
    client.expect_last(Close)
    assert broker.container.link_count() == 0
    assert broker.watcher.errors == []


def test_the_peers_reason_is_kept_for_the_log() -> None:
    broker = Broker()
    client = broker.connect()
    client.send(Close(error=Error(condition="amqp:resource-limit-exceeded")))
    client.expect(Close)
    reason = "closed by the peer: amqp:resource-limit-exceeded"
    assert broker.watcher.events[-1] == f"closed client: {reason}"


def test_our_close_waits_for_the_answer() -> None:
    broker = Broker()
    client = broker.session()
    broker.container.close_all(ConnectionFault(CONNECTION_FORCED, "stopping"))
    broker.container.run_round()
    assert closed_with(client) == "amqp:connection:forced"
    client.send(attach_receiver(), flow(), Transfer(), Disposition(), channel=0)
    client.send_bytes(frame(End(), 99))
    client.expect_nothing()
    client.send(Close())
    client.expect_nothing()
    assert client.is_closed()


def test_a_peer_that_does_not_answer_our_close_is_left() -> None:
    broker = Broker()
    client = broker.session()
    broker.advance(30_000)
    client.frames()
    broker.container.close_all(ConnectionFault(CONNECTION_FORCED, "stopping"))
    broker.container.run_round()
    assert closed_with(client) == "amqp:connection:forced"
    broker.advance(1999)
    assert not client.is_closed()
    broker.advance(1)
    assert client.is_closed()
    client.expect_nothing()


def test_garbage_while_we_close_changes_nothing() -> None:
    broker = Broker()
    client = broker.connect()
    client.send(End())
    assert closed_with(client) == "amqp:not-allowed"
    client.send_bytes(b"\x00\x00\x00\x01garbage")
    client.send_bytes(b"\x00\x00\x00")  # never to be completed
    client.expect_nothing()
    broker.advance(2000)
    assert client.is_closed()


def test_both_ends_may_close_at_once() -> None:
    broker = Broker()
    client = broker.connect()
    client.peer.connection.close(ConnectionFault(CONNECTION_FORCED, "stopping"))
    client.send(Close())
    client.expect_last(Close)
    assert client.is_closed()


def test_a_lost_socket_ends_everything_in_silence() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    client.hang_up()
    client.expect_nothing()
    assert broker.container.peer_count() == 0
    assert broker.container.link_count() == 0
    assert broker.watcher.events[-1] == "closed client: connection lost"


# -- a bug


class Careless(RecordingWatcher):
    """Fails when a certain connection opens: the bug."""

    def opened(self, peer: Peer) -> None:
        if peer.container_id == "unlucky":
            raise RuntimeError("with a secret in it")
        super().opened(peer)


def test_a_bug_closes_the_connection_and_tells_nothing() -> None:
    broker = Broker(watcher=Careless())
    other = broker.session("other")
    client = broker.dial()
    client.send_bytes(opening("unlucky") + frame(BEGIN))
    client.expect(Header)
    client.expect(Open)
    close = client.expect_last(Close)
    assert close.error is not None
    assert close.error.condition == "amqp:internal-error"
    assert close.error.description is None
    assert close.error.info == {}
    assert [str(error) for error in broker.watcher.errors] == ["with a secret in it"]
    other.attach_receiver("another")
    other.expect_nothing()


# -- time


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


def test_a_frame_has_to_come_whole_in_time_however_it_trickles() -> None:
    broker = Broker(limits=Limits(handshake_timeout_ms=10_000))
    client = broker.session()
    data = frame(attach_receiver(name="n" * 100))
    for at in range(10):
        client.send_bytes(data[at : at + 1])
        client.expect_nothing()
        broker.advance(1000)
    assert closed_with(client) == "amqp:resource-limit-exceeded"
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


def test_deadlines_that_move_leave_nothing_behind_in_the_agenda() -> None:
    """Heartbeats, echoes and cut frames set new deadlines all the time."""
    broker = Broker(limits=Limits(idle_time_out_ms=60_000))
    client = broker.session(idle_time_out=20_000)
    for step in range(2000):
        client.send(flow(echo=True), flow(echo=True))
        client.send_bytes(EMPTY_FRAME[:5])
        broker.advance(7 + step % 5)
        client.send_bytes(EMPTY_FRAME[5:])
        broker.advance(step % 3 * 1000)
    deadlines = 0
    while broker.router.agenda.next_deadline_ms() >= 0:
        deadlines += 1
        client.hang_up()
        at = broker.router.agenda.next_deadline_ms()
        broker.router.agenda.tick(at)
    assert deadlines < 10


# -- slow readers


def test_a_blocked_socket_stops_deliveries_and_nothing_else() -> None:
    broker = Broker()
    broker.fill(count=3)
    client = broker.session()
    client.attach_receiver(credit=1)
    client.expect_deliveries(b"0")
    client.peer.connection.output_blocked()
    client.flow(handle=0, credit=2, delivery_count=1)
    client.expect_nothing()
    client.begin(1)
    client.peer.output_drained()
    client.expect_deliveries(b"1", b"2")


def test_no_more_than_a_mebibyte_waits_for_a_socket() -> None:
    broker = Broker()
    sender = broker.session("sender")
    sender.attach_sender()
    for number in range(40):
        sender.transfer(number, b"x" * 100_000, settled=True)
    client = broker.session()
    client.attach_receiver()
    writes = client.outlet.writes
    client.flow(handle=0, credit=40, delivery_count=0)
    assert len([each for each in client.bodies() if isinstance(each, Transfer)]) == 40
    assert client.outlet.writes - writes == 4  # each of 11 messages, the last of the rest


def test_the_descriptor_of_a_performative_may_be_written_in_any_form() -> None:
    body = frame(BEGIN)[8:]
    assert body.startswith(b"\x00\x53\x11")
    for descriptor in (b"\x00\x80" + (0x11).to_bytes(8), b"\x00\xa3\x0famqp:begin:list"):
        client = Broker().connect()
        client.send_bytes(raw_frame(descriptor + body[3:]))
        client.expect_last(Begin)


def test_an_open_may_have_its_descriptor_in_any_form() -> None:
    assert OPEN == 0x10
    body = frame(Open(container_id="x"))[8:]
    client = Broker().dial()
    client.send_bytes(AMQP_HEADER + raw_frame(b"\x00\xa3\x0eamqp:open:list" + body[3:]))
    client.expect(Header)
    client.expect_last(Open)
