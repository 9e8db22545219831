"""A connection as its peer sees it: frames in, frames out, and its end."""

import pytest

from broker.amqp.descriptors import OPEN
from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME
from broker.amqp.limits import FRAME_BEFORE_OPEN, Limits
from broker.amqp.outcomes import Error
from broker.amqp.performatives import Attach, Begin, Close, Detach, End, Flow, Open
from broker.links.peer import Peer
from tests.support.broker import Broker, RecordingWatcher
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


# -- open, and frames


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
    client.expect_close(condition)
    assert broker.watcher.errors == []


def test_an_unknown_performative_closes_the_connection() -> None:
    client = Broker().session()
    client.send_bytes(raw_frame(b"\x00\x53\x1f\x45"))
    client.expect_close("amqp:not-implemented")


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
    client.expect_close("amqp:connection:framing-error")


def test_a_frame_of_exactly_our_max_frame_size_is_taken() -> None:
    client = Broker(limits=Limits(max_frame_size=4096)).session()
    client.attach_sender()
    whole = frame(Transfer(settled=True))
    payload = message(b"x" * (4096 - len(whole) - 8))
    assert len(frame(Transfer(settled=True, payload=payload))) == 4096
    client.send(Transfer(settled=True, payload=payload))
    client.expect_nothing()
    assert client.broker.queue().backlogs.waiting == 1


def test_a_peer_may_not_ask_for_frames_below_the_minimum() -> None:
    client = Broker().dial()
    client.send_bytes(opening(max_frame_size=511))
    client.expect(Header)
    client.expect(Open)
    client.expect_close("amqp:frame-size-too-small")


# -- sessions


@pytest.mark.parametrize(
    ("frame_in", "condition"),
    [
        pytest.param(frame(Transfer(handle=9)), "amqp:session:unattached-handle", id="transfer"),
        pytest.param(frame(flow(handle=9)), "amqp:session:unattached-handle", id="flow"),
        pytest.param(frame(Detach(handle=9)), "amqp:session:unattached-handle", id="detach"),
        pytest.param(frame(attach_sender()), "amqp:session:handle-in-use", id="attach"),
    ],
)
def test_a_mistake_within_a_session_ends_only_that(frame_in: bytes, condition: str) -> None:
    client = Broker().session()
    client.begin(1)
    client.attach_sender()
    client.send_bytes(frame_in)
    channel, ended = client.expect_frame(End)
    client.expect_nothing()
    assert channel == 0
    assert ended.error is not None
    assert ended.error.condition == condition
    assert client.broker.container.link_count() == 0
    client.send(attach_sender(), channel=1)
    assert client.expect_frame(Attach)[0] == 1


def test_deliveries_that_come_together_are_accepted_together() -> None:
    """Each session gets one disposition for its deliveries, after all other output."""
    client = Broker().session()
    client.begin(1)
    for channel in (0, 1):
        client.attach(attach_sender(name=f"of {channel}"), channel=channel)
        client.expect_last(Flow)
    client.send_bytes(
        b"".join(
            frame(Transfer(delivery_id=number, payload=message()), channel)
            for number in range(3)
            for channel in (0, 1)
        )
        + frame(flow(echo=True, next_outgoing_id=3))
    )
    client.expect(Flow)
    accepted = [client.expect_frame(Disposition) for _ in range(2)]
    client.expect_nothing()
    assert [channel for channel, _ in accepted] == [0, 1]
    assert [(each.first, each.last) for _, each in accepted] == [(0, 2), (0, 2)]


def test_what_is_not_accepted_parts_those_that_are() -> None:
    client = Broker().session()
    client.attach_sender()
    client.send(
        *[
            Transfer(delivery_id=number, settled=number == 1, payload=message())
            for number in range(4)
        ]
    )
    ranges = [client.expect(Disposition) for _ in range(2)]
    client.expect_nothing()
    assert [(each.first, each.last) for each in ranges] == [(0, 0), (2, 3)]


def test_an_outcome_reaches_the_link_that_sent() -> None:
    broker = Broker()
    broker.fill(count=2)
    client = broker.session()
    client.attach_receiver(credit=2)
    client.expect_deliveries(b"0", b"1")
    assert broker.queue().state.acquired == 2
    client.send(Disposition(first=0, last=1))
    client.expect_nothing()
    assert broker.queue().state.acquired == 0


def test_unfinished_deliveries_of_all_links_share_a_limit() -> None:
    client = Broker(limits=Limits(partial_bytes_max=1000)).session()
    for handle in (0, 1):
        client.attach_sender(name=f"link {handle}", handle=handle)
    first, second = (
        Transfer(handle=handle, delivery_id=handle, more=True, payload=bytes(500))
        for handle in (0, 1)
    )
    client.send(first, second)
    client.expect_nothing()
    client.send(Transfer(handle=0, delivery_id=None, tag=None, more=True, payload=bytes(1)))
    client.expect_close("amqp:resource-limit-exceeded")


def test_a_delivery_that_is_finished_or_aborted_makes_room_for_others() -> None:
    client = Broker(limits=Limits(partial_bytes_max=1000)).session()
    client.attach_sender()
    for number in range(5):
        client.transfer(number, bytes(800), settled=True, more=True)
        client.send(Transfer(delivery_id=None, tag=None, aborted=number % 2 == 0))
    client.expect_nothing()
    assert client.broker.queue().backlogs.waiting == 2


# -- before open


def test_no_frame_but_open_may_come_first() -> None:
    client = Broker().dial()
    client.send_bytes(AMQP_HEADER + frame(BEGIN))
    assert [type(body) for body in client.bodies()] == [Header, Open, Close]


def test_a_frame_before_open_is_small() -> None:
    client = Broker().dial()
    client.send_bytes(AMQP_HEADER)
    client.expect(Header)
    client.send_bytes(int(FRAME_BEFORE_OPEN + 1).to_bytes(4) + b"\x02\x00\x00\x00")
    client.expect(Open)
    client.expect_close("amqp:connection:framing-error")


def test_an_open_of_the_largest_size_is_taken() -> None:
    client = Broker().dial()
    room = FRAME_BEFORE_OPEN - len(frame(Open(container_id="x" * 300))) + 300
    data = frame(Open(container_id="x" * room))
    assert len(data) == FRAME_BEFORE_OPEN
    client.send_bytes(AMQP_HEADER + data)
    client.expect(Header)
    client.expect_last(Open)


def test_an_open_of_ours_that_is_too_large_is_sent_without_its_properties() -> None:
    """A peer cannot read a close that is not preceded by an open (2.4.3)."""
    client = Broker(product={"product": "x" * 600}).dial()
    client.send_bytes(opening(max_frame_size=512))
    client.expect(Header)
    assert client.expect(Open).container_id == "broker"
    client.expect_close("amqp:frame-size-too-small")


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
    client.expect_close("amqp:connection:forced")
    client.send(attach_receiver(), flow(), Transfer(), Disposition(), channel=0)
    client.send_bytes(frame(End(), 99))
    client.expect_nothing()
    client.send(Close())
    client.expect_nothing()
    assert client.is_closed()


def test_garbage_while_we_close_changes_nothing() -> None:
    broker = Broker()
    client = broker.connect()
    client.send(End())
    client.expect_close("amqp:not-allowed")
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


def test_a_socket_that_is_lost_behind_the_end_changes_nothing() -> None:
    broker = Broker()
    client = broker.connect()
    client.send(Close())
    client.expect_last(Close)
    events = list(broker.watcher.events)
    client.hang_up()
    client.expect_nothing()
    assert broker.watcher.events == events


# -- a bug


class Careless(RecordingWatcher):
    """A watcher with a bug: it fails when the container "unlucky" opens its connection."""

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
