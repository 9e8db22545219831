"""Held entries, which could not be moved, and the limit beyond which their queue stops."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.dead_letter import DELIVERY_LIMIT, EXPIRED, REJECTED_UNSAID
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.held_entries import (
    HELD_BYTES_MAX,
    HELD_MAX,
    HeldEntries,
)
from broker.routing.queues.queue import Queue
from tests.support.clock import WALL_START_MS
from tests.support.notices import notice_texts
from tests.support.routing import Routing, bodies, new_message


def entry(position: int, body: bytes = b"x") -> QueueEntry:
    return QueueEntry(Routing().queue(), new_message(body), position)


def test_entries_are_kept_in_the_order_in_which_they_came() -> None:
    held = HeldEntries()
    first, second, third = entry(7), entry(3), entry(5)
    held.add(first, REJECTED_UNSAID)
    held.add(second, EXPIRED)
    held.add(third, DELIVERY_LIMIT)
    assert held.entries() == [first, second, third]
    assert [each for each, _ in held.some(9, expired=False)] == [first, third]
    assert held.some(9, expired=True) == [(second, EXPIRED)]
    assert len(held.some(1, expired=False)) == 1
    assert held.get(34) is second
    assert held.remove(34) is second
    assert (held.remove(34), held.get(34), held.cause_of(second)) == (None, None, None)
    assert (held.drain(1), held.drain(2)) == ([third], [first])
    assert (held.size(), held.bytes) == (0, 0)


def test_an_entry_in_the_place_of_another_is_not_held() -> None:
    held = HeldEntries()
    held.add(entry(1), EXPIRED)
    assert held.cause_of(entry(1)) is None


FULL = {
    "so many messages": (HELD_MAX, b""),
    "so many bytes": (4, bytes(HELD_BYTES_MAX // 4)),
}


@pytest.mark.parametrize(("count", "body"), FULL.values(), ids=FULL.keys())
def test_what_is_held_has_a_limit(count: int, body: bytes) -> None:
    held = HeldEntries()
    queue = Routing().queue()
    for position in range(count):
        assert not held.is_full()
        held.add(QueueEntry(queue, new_message(body), position), EXPIRED)
    assert held.is_full()
    held.remove(4)
    assert not held.is_full()


def filled(routing: Routing) -> Queue:
    """Return a queue that holds as much as it may: rejected messages that cannot be moved."""
    queue = routing.queue()
    for _ in range(4):
        routing.put(queue, bytes(HELD_BYTES_MAX // 4))
    consumer = routing.consumer(queue, 4)
    while consumer.entries:
        consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    queue.detach_consumer(consumer, queue, routing.batch)
    return queue


def test_a_queue_that_holds_too_much_delivers_nothing_until_it_holds_less() -> None:
    routing = Routing(nodes_max=1)
    queue = filled(routing)
    routing.put(queue, b"good")
    consumer = routing.consumer(queue, 9)
    assert (consumer.taken, queue.backlogs.waiting) == ([], 1)
    assert any("delivers nothing more" in notice for notice in notice_texts(routing.router.notices))
    routing.give(queue, consumer, 9, drain=True)
    assert consumer.drains == 1, "a drain ends all the same"
    routing.give(queue, consumer, 9)
    queue.withdraw(queue.state.held_for_move()[0], routing.batch)
    routing.pump()
    assert consumer.taken == [b"good"]


@pytest.mark.parametrize(("expiry", "waiting"), [("late", 1), ("", 0)])
def test_what_expires_meanwhile_waits_if_it_would_be_held(expiry: str, waiting: int) -> None:
    routing = Routing(nodes_max=1, policy=AddressPolicy(expiry=expiry))
    queue = filled(routing)
    queue.put(new_message(b"late", expires_at_ms=WALL_START_MS + 10), routing.batch)
    routing.advance(1000)
    assert (queue.backlogs.waiting, len(queue.state.held_for_move())) == (waiting, 4)
    queue.withdraw(queue.state.held_for_move()[0], routing.batch)
    assert routing.consumer(queue, 9).taken == []
    assert (queue.backlogs.waiting, len(queue.state.held_for_move())) == (0, 3 + waiting)


def test_a_dispatch_ends_where_too_much_is_held() -> None:
    routing = Routing(nodes_max=1, policy=AddressPolicy(expiry="late"))
    queue = routing.queue()
    for _ in range(4):
        message = new_message(bytes(HELD_BYTES_MAX // 4), expires_at_ms=WALL_START_MS + 10)
        queue.put(message, routing.batch)
    routing.put(queue, b"good")
    routing.clock.advance(10)
    consumer = routing.consumer(queue, 9)
    assert (consumer.taken, len(queue.state.held_for_move()), queue.backlogs.waiting) == ([], 4, 1)


def test_what_is_let_go_is_held_no_longer() -> None:
    routing = Routing(nodes_max=1)
    queue = routing.queue()
    routing.put(queue, b"bad")
    rejected = routing.consumer(queue, 1).dispose(Disposal.DEAD_LETTER, routing.batch)
    assert (bodies(queue.state.held_for_move()), queue.state.cause_of(rejected)) == (
        [b"bad"],
        REJECTED_UNSAID,
    )
    assert (queue.let_go(rejected), queue.let_go(rejected), queue.state.cause_of(rejected)) == (
        True,
        False,
        None,
    )
