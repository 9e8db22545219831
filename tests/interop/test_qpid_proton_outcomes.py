"""Outcomes, counts and positions, as python-qpid-proton settles and sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from proton import Delivery, Link, Message, Receiver

from tests.interop.broker_process import Broker
from tests.interop.proton_peer import Peer

pytestmark = [pytest.mark.slow, pytest.mark.requirement("RCV-02")]

Settle = Callable[[Delivery], None]


def accepted(delivery: Delivery) -> None:
    delivery.update(Delivery.ACCEPTED)
    delivery.settle()


def rejected(delivery: Delivery) -> None:
    delivery.update(Delivery.REJECTED)
    delivery.settle()


def released(delivery: Delivery) -> None:
    delivery.update(Delivery.RELEASED)
    delivery.settle()


def modified(*, failed: bool, undeliverable: bool) -> Settle:
    def settle(delivery: Delivery) -> None:
        delivery.local.failed = failed
        delivery.local.undeliverable = undeliverable
        delivery.update(Delivery.MODIFIED)
        delivery.settle()

    return settle


FAILED: Final = modified(failed=True, undeliverable=False)
NOT_HERE: Final = modified(failed=False, undeliverable=True)
FAILED_HERE: Final = modified(failed=True, undeliverable=True)
MODIFIED: Final = modified(failed=False, undeliverable=False)


def take_all(peer: Peer, receiver: Receiver, count: int) -> list[tuple[Delivery, Message]]:
    receiver.flow(count)
    return [peer.take(receiver) for _ in range(count)]


@pytest.mark.requirement("RCV-01")
@pytest.mark.parametrize(
    ("settle", "left"),
    [
        pytest.param(accepted, [("b", 0)], id="accepted: gone"),
        pytest.param(rejected, [("b", 0)], id="rejected: gone from here"),
        pytest.param(released, [("a", 0), ("b", 0)], id="released: in its place, not counted"),
        pytest.param(MODIFIED, [("a", 0), ("b", 0)], id="modified: in its place, not counted"),
        pytest.param(FAILED, [("a", 1), ("b", 0)], id="failed: in its place, counted"),
        pytest.param(NOT_HERE, [("a", 0), ("b", 0)], id="undeliverable here: not counted"),
        pytest.param(FAILED_HERE, [("a", 1), ("b", 0)], id="failed here: counted"),
    ],
)
def test_an_outcome_decides_what_the_next_receiver_finds(
    broker: Broker, address: str, settle: Settle, left: list[tuple[str, int]]
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a", "b")
        ((delivery, message),) = take_all(peer, peer.receiver(address), 1)
        assert (message.body, message.delivery_count) == ("a", 0)
        settle(delivery)
        peer.round_trip()
        found = peer.drain(peer.receiver(address))
        assert [(message.body, message.delivery_count) for _, message in found] == left


@pytest.mark.parametrize("settle", [NOT_HERE, FAILED_HERE])
def test_undeliverable_here_is_never_sent_to_that_link_again(
    broker: Broker, address: str, settle: Settle
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a", "b")
        receiver = peer.receiver(address)
        ((delivery, _),) = take_all(peer, receiver, 1)
        settle(delivery)
        assert [message.body for _, message in peer.drain(receiver)] == ["b"]
        assert [message.body for _, message in peer.drain(peer.receiver(address))] == ["a"]
        assert peer.drain(receiver) == []


def test_rejected_goes_to_the_dead_letter_queue_as_it_came(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, Message(body="broken", id=address, subject="why"))
        ((delivery, _),) = take_all(peer, peer.receiver(address), 1)
        rejected(delivery)
        dead = peer.receiver("DLQ", credit=1000)
        message = Message()
        while message.id != address:
            delivery, message = peer.take(dead)
            peer.accept(delivery)
        assert (message.body, message.subject) == ("broken", "why")


@pytest.mark.parametrize("settle", [released, FAILED])
def test_messages_return_to_their_places_in_whatever_order_they_come_back(
    broker: Broker, address: str, settle: Settle
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *"abcde")
        receiver = peer.receiver(address)
        taken = [delivery for delivery, _ in take_all(peer, receiver, 4)]
        accepted(taken[1])
        for index in (2, 0, 3):
            settle(taken[index])
            peer.round_trip()
        assert peer.bodies(address) == ["a", "c", "d", "e"]


def test_a_returned_message_comes_before_the_ones_behind_it_for_the_same_link(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, *"abc")
        receiver = peer.receiver(address)
        ((delivery, _),) = take_all(peer, receiver, 1)
        released(delivery)
        assert [message.body for _, message in take_all(peer, receiver, 3)] == ["a", "b", "c"]


@pytest.mark.requirement("RCV-01")
def test_every_failed_delivery_is_counted(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a")
        receiver = peer.receiver(address)
        for count in range(10):
            ((delivery, message),) = take_all(peer, receiver, 1)
            assert message.delivery_count == count
            FAILED(delivery)


@pytest.mark.requirement("RCV-08")
def test_a_message_released_again_and_again_is_slowed_down_but_never_counted(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a")
        receiver = peer.receiver(address)
        for _ in range(12):
            ((delivery, message),) = take_all(peer, receiver, 1)
            assert message.delivery_count == 0
            released(delivery)
        ((_, message),) = take_all(peer, peer.receiver(address), 1)
        assert (message.body, message.delivery_count) == ("a", 0)


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize("ending", ["detach", "close", "end", "close connection", "cut socket"])
def test_deliveries_without_an_outcome_return_in_order_when_their_link_ends(
    broker: Broker, address: str, ending: str
) -> None:
    """The source names no default outcome, so each delivery is released: not counted."""
    with Peer(broker.url) as peer, Peer(broker.url) as other:
        other.fill(address, *"abcd")
        session = peer.session()
        receiver = peer.receiver(address, session=session)
        first, *_ = take_all(peer, receiver, 3)
        accepted(first[0])
        peer.round_trip()
        waiting = other.receiver(address, credit=10)
        _, message = other.take(waiting)
        assert message.body == "d"
        match ending:
            case "detach":
                receiver.detach()
            case "close":
                receiver.close()
            case "end":
                session.close()
            case "close connection":
                peer.connection.close()
            case "cut socket":
                peer.cut()
        if not peer.eof:
            peer.flush()
        for body in "bc":
            _, message = other.take(waiting)
            assert message.body == body


@pytest.mark.requirement("RCV-08")
def test_a_settlement_that_comes_after_the_detach_changes_nothing(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a", "b")
        session = peer.session()
        receiver = peer.receiver(address, session=session)
        taken = take_all(peer, receiver, 2)
        receiver.close()
        peer.flush()
        for delivery, _ in taken:
            released(delivery)
        peer.round_trip()
        found = peer.drain(peer.receiver(address, session=session))
        assert [(message.body, message.delivery_count) for _, message in found] == [
            ("a", 0),
            ("b", 0),
        ]


def test_a_receiver_that_settles_second_is_answered_with_the_brokers_settlement(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a", "b", "c")
        receiver = peer.new_receiver(address)
        receiver.rcv_settle_mode = Link.RCV_SECOND
        peer.attach(receiver)
        assert receiver.remote_rcv_settle_mode == Link.RCV_SECOND
        taken = [delivery for delivery, _ in take_all(peer, receiver, 3)]
        outcomes = [Delivery.ACCEPTED, Delivery.RELEASED, Delivery.ACCEPTED]
        for delivery, outcome in zip(taken, outcomes, strict=True):
            delivery.update(outcome)
        for delivery in taken:
            peer.outcome(delivery)
        peer.close(receiver)
        assert peer.bodies(address) == ["b"]


def test_a_receiver_that_settles_second_may_settle_at_once(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        peer.fill(address, "a", "b")
        receiver = peer.new_receiver(address)
        receiver.rcv_settle_mode = Link.RCV_SECOND
        peer.attach(receiver)
        ((delivery, _),) = take_all(peer, receiver, 1)
        accepted(delivery)
        peer.close(receiver)
        assert peer.bodies(address) == ["b"]


def test_the_broker_settles_second_where_the_sender_asks_for_it(
    broker: Broker, address: str
) -> None:
    """The outcome is sent unsettled; the broker forgets it once the sender has settled."""
    with Peer(broker.url) as peer:
        sender = peer.new_sender(address)
        sender.rcv_settle_mode = Link.RCV_SECOND
        peer.attach(sender)
        assert sender.remote_rcv_settle_mode == Link.RCV_SECOND
        posted = [peer.post(sender, body) for body in "abc"]
        peer.until(lambda: all(each.remote_state == Delivery.ACCEPTED for each in posted))
        for delivery in posted:
            assert not delivery.settled
            delivery.settle()
        peer.round_trip()
        assert peer.bodies(address) == ["a", "b", "c"]


def test_a_mixed_sender_sends_settled_and_unsettled(broker: Broker, address: str) -> None:
    with Peer(broker.url) as peer:
        sender = peer.new_sender(address)
        sender.snd_settle_mode = Link.SND_MIXED
        peer.attach(sender)
        unsettled = []
        for n in range(10):
            delivery = peer.post(sender, str(n))
            if n % 2:
                delivery.settle()
            else:
                unsettled.append(delivery)
        for delivery in unsettled:
            assert peer.outcome(delivery) == Delivery.ACCEPTED
        assert peer.bodies(address) == [str(n) for n in range(10)]


def test_outcomes_of_many_deliveries_arrive_whatever_their_order(
    broker: Broker, address: str
) -> None:
    count = 1000
    with Peer(broker.url) as peer:
        sender = peer.sender(address)
        peer.send(sender, *(str(n) for n in range(count)))
        taken = [delivery for delivery, _ in take_all(peer, peer.receiver(address), count)]
        for delivery in [*taken[::-2], *taken[::2]]:
            accepted(delivery)
        peer.round_trip()
        assert peer.bodies(address) == []


def test_a_delivery_tag_may_be_used_again_once_its_delivery_is_settled(
    broker: Broker, address: str
) -> None:
    with Peer(broker.url) as peer:
        sender = peer.sender(address)
        for n in range(5):
            delivery = sender.delivery("same")
            sender.stream(Message(body=str(n)).encode())
            sender.advance()
            assert peer.outcome(delivery) == Delivery.ACCEPTED
        assert peer.bodies(address) == [str(n) for n in range(5)]
