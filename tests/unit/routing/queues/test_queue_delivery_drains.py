"""Drains: when a consumer is told that no more messages are ready for it."""

from broker.routing.entries.redelivery import Disposal
from tests.support.routing import Routing


def test_a_drain_ends_when_nothing_more_waits() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue)
    routing.give(queue, consumer, 5, drain=True)
    assert (consumer.taken, consumer.drains) == ([b"a"], 1)
    routing.pump()
    assert consumer.drains == 1


def test_a_drain_that_takes_all_credit_needs_no_word() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    consumer = routing.consumer(queue)
    routing.give(queue, consumer, 1, drain=True)
    assert (consumer.taken, consumer.drains) == ([b"a"], 0)


def test_a_drain_waits_for_room() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue)
    consumer.held = True
    routing.give(queue, consumer, 2, drain=True)
    assert consumer.drains == 0
    consumer.held = False
    routing.give(queue, consumer, 2, drain=True)
    assert (consumer.taken, consumer.drains) == ([b"a"], 1)


def test_a_drain_ends_without_room_where_nothing_waits() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue)
    consumer.held = True
    routing.give(queue, consumer, 2, drain=True)
    assert consumer.drains == 1


def test_a_drain_ends_where_the_consumer_may_have_nothing_that_waits() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue, 1)
    consumer.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, consumer, 5, drain=True)
    assert (consumer.drains, queue.backlogs.waiting) == (1, 1)


def test_a_drain_may_be_called_off() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue)
    consumer.held = True
    routing.give(queue, consumer, 5, drain=True)
    consumer.held = False
    routing.give(queue, consumer, 5)
    assert (consumer.taken, consumer.drains, consumer.credit) == ([b"a"], 0, 4)
