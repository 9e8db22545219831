"""Output: its order, its limits, frames that are too large for the peer, and slow readers."""

import pytest

from broker.amqp.errors import FRAME_SIZE_TOO_SMALL, ConnectionFault, LinkFault
from broker.amqp.events import ConnectionOwner
from broker.amqp.frames import EMPTY_FRAME
from broker.amqp.incoming_link import IncomingLink
from broker.amqp.limits import FRAME_SIZE_MIN
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.output import OUTPUT_FULL, WRITER_KEPT, Output
from broker.amqp.performatives import Attach, Close, Detach, End, Open
from broker.amqp.session import Session
from tests.support.broker import Broker
from tests.support.frames import Transfer, attach_receiver, body_of, frame, message, opening


class Listener(ConnectionOwner):
    """A connection owner that counts calls of `output_ready`; an output calls nothing else."""

    def __init__(self) -> None:
        self.told = 0

    def transaction_failed(self, txn_id: bytes, fault: LinkFault) -> None: ...

    def output_ready(self) -> None:
        self.told += 1

    def deadline_changed(self) -> None:
        raise NotImplementedError

    def authenticate(self, mechanism: str, response: bytes | None) -> None:
        raise NotImplementedError

    def challenge_answered(self, response: bytes) -> None:
        raise NotImplementedError

    def input_rests(self) -> None:
        raise NotImplementedError

    def opened(self, open: Open) -> None:  # noqa: A002 - the specification's word
        raise NotImplementedError

    def incoming_attached(self, link: IncomingLink, attach: Attach) -> None:
        raise NotImplementedError

    def outgoing_attached(self, link: OutgoingLink, attach: Attach) -> None:
        raise NotImplementedError

    def session_ended(self, session: Session) -> None:
        raise NotImplementedError

    def sessions_dropped(self) -> None:
        raise NotImplementedError

    def ended(self) -> None:
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        raise NotImplementedError


def split(payload: bytes, size: int) -> list[Transfer]:
    """Return the frames of one settled delivery, each with at most `size` bytes of `payload`."""
    ends = range(size, len(payload) + size, size)
    return [
        Transfer(settled=True, more=end < len(payload), payload=payload[end - size : end])
        for end in ends
    ]


# -- order


def test_the_owner_is_told_once_between_two_takes() -> None:
    owner = Listener()
    output = Output(owner)
    for told in (1, 2):
        output.writer().write(b"a")
        output.put(0, End())
        output.touch()
        output.put_reference(b"b")
        assert owner.told == told
        assert b"".join(output.take(0)) == b"a" + frame(End()) + b"b"


def test_the_owner_may_be_told_though_nothing_is_written() -> None:
    owner = Listener()
    output = Output(owner)
    output.touch()
    output.touch()
    assert owner.told == 1
    assert b"".join(output.take(0)) == b""


def test_what_is_written_comes_out_in_order_and_once() -> None:
    output = Output(Listener())
    output.put(1, End())
    output.writer().write(b"head")
    output.put_reference(b"payload")
    output.put_reference(b"another")
    output.put(2, End())
    assert b"".join(output.take(0)) == frame(End(), 1) + b"headpayloadanother" + frame(End(), 2)
    assert b"".join(output.take(0)) == b""


def test_a_payload_that_is_referenced_is_not_copied() -> None:
    output = Output(Listener())
    payload = bytes(5000)
    output.writer().write(b"head")
    output.put_reference(payload)
    chunks = output.take(0)
    assert chunks[0] == b"head"
    assert chunks[1] is payload


@pytest.mark.parametrize(
    ("size", "same"),
    [
        pytest.param(WRITER_KEPT, True, id="one of ordinary size is used again"),
        pytest.param(WRITER_KEPT + 1, False, id="one that has grown is given back"),
    ],
)
def test_of_writers(size: int, same: bool) -> None:
    output = Output(Listener())
    before = output.writer()
    before.write(bytes(size))
    assert output.take(0) == [bytes(size)]
    after = output.writer()
    assert (after is before) is same
    after.write(b"next")
    assert output.take(0) == [b"next"]


# -- frames that are too large for the peer


def test_a_frame_as_large_as_the_peer_takes_is_written() -> None:
    output = Output(Listener())
    assert output.frame_size_max == FRAME_SIZE_MIN, "until the peer's open says more (2.7.1)"
    attach = Attach(name="n" * 460, handle=0, role=False)
    assert len(frame(attach)) < FRAME_SIZE_MIN
    output.frame_size_max = len(frame(attach))
    output.put(0, End())
    output.put(0, attach)
    assert b"".join(output.take(0)) == frame(End()) + frame(attach)


def test_a_frame_larger_than_the_peer_takes_leaves_nothing_behind() -> None:
    output = Output(Listener())
    attach = Attach(name="n" * 460, handle=0, role=False)
    output.frame_size_max = len(frame(attach)) - 1
    output.put(0, End())
    with pytest.raises(ConnectionFault) as caught:
        output.put(0, attach)
    assert caught.value.condition == FRAME_SIZE_TOO_SMALL
    output.put(0, Close())
    assert b"".join(output.take(0)) == frame(End()) + frame(Close())


def test_an_answer_larger_than_the_peers_max_frame_size_is_not_sent() -> None:
    broker = Broker()
    client = broker.session(max_frame_size=512)
    client.send(attach_receiver(name="n" * 600, kind="queue"))
    client.expect_close("amqp:frame-size-too-small")
    assert broker.container.link_count() == 0
    assert broker.queue().consumers.attached == []


def test_our_frames_fit_into_the_least_max_frame_size() -> None:
    """Errors that repeat texts of a peer cut the longest of them."""
    broker = Broker()
    long = "é" * 2000
    exclusive = ["sole-connection-for-container"]
    broker.connect(long, desired_capabilities=exclusive)
    second = broker.dial()
    second.send_bytes(opening(long, desired_capabilities=exclusive, max_frame_size=512))
    frames = second.frames()
    assert isinstance(frames[-1].body, Close)
    assert all(each.size <= 512 for each in frames)
    third = broker.session("third", max_frame_size=512)
    third.send(attach_receiver("$tmp/" + "é" * 120))
    third.expect_refusal("amqp:not-found")


# -- when to stop writing


@pytest.mark.parametrize(
    ("written", "referenced", "may"),
    [
        pytest.param(0, 0, True, id="nothing waits"),
        pytest.param(OUTPUT_FULL - 1, 0, True, id="less than a mebibyte"),
        pytest.param(OUTPUT_FULL, 0, False, id="a mebibyte of small frames"),
        pytest.param(0, OUTPUT_FULL - 1, True, id="less than a mebibyte by reference"),
        pytest.param(0, OUTPUT_FULL, False, id="a mebibyte by reference"),
        pytest.param(OUTPUT_FULL // 2, OUTPUT_FULL // 2, False, id="half of it each"),
        pytest.param(1, 3 * OUTPUT_FULL, False, id="one large message"),
    ],
)
def test_deliveries_may_be_written_while(written: int, referenced: int, may: bool) -> None:
    output = Output(Listener())
    output.writer().write(bytes(written))
    if referenced:
        output.put_reference(bytes(referenced))
    assert output.request_room() is may
    output.take(0)
    assert output.request_room(), "what was taken does not wait any more"


def test_what_is_written_behind_a_reference_counts_too() -> None:
    output = Output(Listener())
    output.writer()
    output.put_reference(bytes(OUTPUT_FULL - 8))
    assert output.request_room()
    output.writer().write(EMPTY_FRAME)
    assert not output.request_room()


def test_whoever_was_held_up_may_go_on_once() -> None:
    output = Output(Listener())
    output.writer().write(bytes(OUTPUT_FULL))
    assert not output.request_room()
    output.take(0)
    assert output.resume()
    assert not output.resume()


def test_where_nobody_was_held_up_nobody_is_told() -> None:
    output = Output(Listener())
    output.writer().write(bytes(OUTPUT_FULL))
    output.take(0)
    assert not output.resume()


def test_a_blocked_output_has_no_room_until_it_is_unblocked() -> None:
    output = Output(Listener())
    output.block()
    assert not output.request_room()
    assert not output.resume()
    output.unblock()
    assert output.resume()
    assert output.request_room()


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


def test_a_reader_that_stands_still_does_not_hold_up_others() -> None:
    broker = Broker()
    slow, quick = broker.session("slow"), broker.session("quick")
    slow.attach_receiver(credit=10)
    quick.attach_receiver(credit=10)
    slow.peer.connection.output_blocked()
    broker.fill(count=3)
    slow.expect_nothing()
    quick.expect_deliveries(b"0", b"1", b"2")
    slow.peer.output_drained()
    slow.expect_nothing()


def test_the_rest_of_a_large_message_waits_for_the_socket() -> None:
    broker = Broker()
    sender = broker.session("sender")
    sender.attach_sender()
    body = bytes(range(256)) * 8
    sender.transfer(0, body, settled=True)
    client = broker.session(max_frame_size=512)
    client.attach_receiver()
    client.peer.connection.output_blocked()
    client.flow(handle=0, credit=1, delivery_count=0)
    client.expect_nothing()
    client.peer.output_drained()
    pieces = [each for each in client.bodies() if isinstance(each, Transfer)]
    assert [each.more for each in pieces] == [True] * (len(pieces) - 1) + [False]
    assert body_of(b"".join(each.payload for each in pieces)) == body


def test_a_message_larger_than_a_mebibyte_goes_out_in_parts() -> None:
    broker = Broker()
    sender = broker.session("sender")
    sender.attach_sender()
    body = bytes(3 * OUTPUT_FULL)
    for part in split(message(body), 1024 * 1000):
        sender.send(part)
    client = broker.session(max_frame_size=64 * 1024)
    client.attach_receiver()
    writes = client.transport.writes
    client.flow(handle=0, credit=1, delivery_count=0)
    pieces = [each for each in client.bodies() if isinstance(each, Transfer)]
    assert body_of(b"".join(each.payload for each in pieces)) == body
    assert client.transport.writes - writes == 3  # each of 17 frames, more than a mebibyte


def test_room_is_no_reason_to_write_to_a_link_that_has_gone() -> None:
    broker = Broker()
    broker.fill(count=1)
    client = broker.session()
    client.attach_receiver()
    client.peer.connection.output_blocked()
    client.flow(handle=0, credit=1, delivery_count=0)
    client.send(Detach(handle=0, closed=True))
    client.expect_last(Detach)
    client.begin(1)
    client.send(End(), channel=1)
    client.expect_last(End)
    client.peer.output_drained()
    client.expect_nothing()
    assert broker.queue().backlogs.waiting == 1


def test_no_more_than_a_mebibyte_waits_for_a_socket() -> None:
    broker = Broker()
    sender = broker.session("sender")
    sender.attach_sender()
    for number in range(40):
        sender.transfer(number, b"x" * 100_000, settled=True)
    client = broker.session()
    client.attach_receiver()
    writes = client.transport.writes
    client.flow(handle=0, credit=40, delivery_count=0)
    assert len([each for each in client.bodies() if isinstance(each, Transfer)]) == 40
    assert client.transport.writes - writes == 4  # each of 11 messages, the last of the rest
