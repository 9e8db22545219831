"""Flows of a session (core 2.5.6, 2.7.4): windows in both directions."""

from typing import Final

from broker.amqp.limits import Limits
from broker.amqp.performatives import Attach, Flow
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, attach_receiver, flow, message

LAST: Final = 0xFFFF_FFFF
PAYLOAD: Final = message()


# -- what the peer may send: the broker's incoming window


def test_the_window_is_opened_again_when_half_is_used_up() -> None:
    client = Broker(limits=Limits(incoming_window=4)).session()
    client.attach_sender()
    client.transfer(0, settled=True)
    client.expect_nothing()
    client.transfer(1, settled=True)
    told = client.expect_last(Flow)
    assert (told.next_incoming_id, told.incoming_window, told.handle) == (2, 4, -1)


def test_every_frame_of_a_message_uses_the_window() -> None:
    client = Broker(limits=Limits(incoming_window=4)).session()
    client.attach_sender()
    pieces = [Transfer(more=True, payload=PAYLOAD), *[Transfer(more=True)] * 6, Transfer()]
    for piece in pieces:
        client.send(piece)
    told = [body for body in client.bodies() if isinstance(body, Flow)]
    assert [(each.next_incoming_id, each.incoming_window) for each in told] == [
        (2, 4),
        (4, 4),
        (6, 4),
        (8, 4),
    ]
    assert client.broker.queue().backlogs.waiting == 1


def test_a_window_of_one_is_enough() -> None:
    client = Broker(limits=Limits(incoming_window=1)).session()
    client.attach_sender()
    for number in range(3):
        client.transfer(number, settled=True)
        assert client.expect_last(Flow).next_incoming_id == number + 1


def test_any_flow_of_ours_opens_the_whole_window() -> None:
    client = Broker(limits=Limits(incoming_window=8)).session()
    client.attach_sender()
    client.transfer(0, settled=True)
    client.flow(echo=True)
    told = client.expect_last(Flow)
    assert (told.next_incoming_id, told.incoming_window) == (1, 8)
    for number in (1, 2, 3):
        client.transfer(number, settled=True)
    client.expect_nothing()


def test_transfers_are_counted_over_the_wrap() -> None:
    client = Broker(limits=Limits(incoming_window=4)).connect()
    client.begin(next_outgoing_id=LAST)
    client.attach_sender()
    client.send(Transfer(settled=True, payload=PAYLOAD))
    client.send(Transfer(delivery_id=1, settled=True, payload=PAYLOAD))
    assert client.expect_last(Flow).next_incoming_id == 1


def test_the_peer_says_where_its_transfers_stand() -> None:
    """The announced number counts, as after transfers lost with a forgotten session (2.5.6)."""
    client = Broker().session()
    client.send(flow(next_outgoing_id=10, echo=True))
    assert client.expect_last(Flow).next_incoming_id == 10


def test_a_transfer_id_may_not_go_back() -> None:
    client = Broker().session()
    client.attach_sender()
    client.transfer(settled=True)
    client.send(flow(next_outgoing_id=0))
    client.expect_end("amqp:session:window-violation")


# -- what the broker may send: the peer's window


def windowed(window: int, *, count: int = 5, credit: int = 10) -> Client:
    """Return a client that offers this window and credit to a queue of `count` messages."""
    broker = Broker()
    broker.fill(count=count)
    client = broker.connect()
    client.begin(incoming_window=window)
    client.attach_receiver(credit=0)
    client.send(flow(handle=0, credit=credit, delivery_count=0, incoming_window=window))
    return client


def test_no_more_is_sent_than_the_window_lets() -> None:
    client = windowed(2)
    client.expect_deliveries(b"0", b"1")
    client.flow(incoming_window=2)
    client.expect_deliveries(b"2", b"3")
    client.flow(incoming_window=0)
    client.expect_nothing()
    client.flow(incoming_window=2000)
    client.expect_deliveries(b"4")


def test_a_session_may_begin_with_its_window_shut() -> None:
    client = windowed(0)
    client.expect_nothing()
    client.flow(incoming_window=1)
    client.expect_deliveries(b"0")


def test_without_an_incoming_id_the_window_counts_from_our_first_transfer() -> None:
    client = windowed(0)
    client.send(flow(next_incoming_id=None, incoming_window=2))
    client.expect_deliveries(b"0", b"1")
    client.send(flow(next_incoming_id=None, incoming_window=3))
    client.expect_deliveries(b"2")


def test_transfers_on_the_wire_use_the_window_up() -> None:
    client = windowed(3)
    client.expect_deliveries(b"0", b"1", b"2")
    client.send(flow(next_incoming_id=1, incoming_window=3))
    client.expect_deliveries(b"3")
    client.send(flow(next_incoming_id=1, incoming_window=1))  # three transfers are on the wire
    client.expect_nothing()
    client.send(flow(next_incoming_id=4, incoming_window=1))
    client.expect_deliveries(b"4")


def test_a_peer_cannot_have_seen_what_was_never_sent() -> None:
    client = windowed(2)
    client.expect_deliveries(b"0", b"1")
    client.send(flow(next_incoming_id=3, incoming_window=2))
    client.expect_end("amqp:session:window-violation")


def test_a_shut_window_holds_every_link_of_the_session_and_no_other() -> None:
    client = windowed(1)
    client.expect_deliveries(b"0")
    client.attach_receiver(name="second", handle=1)
    client.send(flow(handle=1, credit=9, delivery_count=0, next_incoming_id=1, incoming_window=0))
    client.expect_nothing()
    client.begin(1, incoming_window=9)
    client.send(attach_receiver(name="third"), channel=1)
    client.expect(Attach)
    client.flow(channel=1, handle=0, credit=1, delivery_count=0)
    assert client.expect_frame(Transfer)[0] == 1
    client.flow(incoming_window=3)
    told = [body.handle for body in client.bodies() if isinstance(body, Transfer)]
    assert len(told) == 3
    assert set(told) == {0, 1}


def test_a_drain_waits_for_the_window() -> None:
    client = windowed(1, count=2)
    client.expect_deliveries(b"0")
    client.send(
        flow(
            handle=0, credit=9, delivery_count=1, next_incoming_id=1, incoming_window=0, drain=True
        )
    )
    client.expect_nothing()
    client.flow(incoming_window=5)
    assert client.expect(Transfer).delivery_id == 1
    told = client.expect_last(Flow)
    assert (told.delivery_count, told.link_credit, told.drain) == (10, 0, True)
