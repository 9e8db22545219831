"""The record of an unsuccessful delivery attempt, and the cost of a release loop."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from tests.support.routing import Routing, bodies, counts


@pytest.mark.requirement("RCV-08")
def test_an_entry_released_ten_times_waits_for_that_link_and_for_no_other() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"looping", b"next")
    consumer = routing.consumer(queue)
    for _ in range(10):
        routing.give(queue, consumer, 1)
        consumer.dispose(Disposal.RELEASE, routing.batch)
    routing.give(queue, consumer, 9)
    assert bodies(consumer.entries) == [b"next"]
    routing.advance(99)
    assert bodies(consumer.entries) == [b"next"]
    routing.advance(1)
    assert bodies(consumer.entries) == [b"next", b"looping"]
    consumer.dispose(Disposal.RELEASE, routing.batch, index=1)
    routing.advance(199)
    assert bodies(consumer.entries) == [b"next"]
    assert routing.consumer(queue, 1).taken == [b"looping"]


@pytest.mark.requirement("RCV-06", "RCV-08")
def test_what_is_released_behind_a_failure_keeps_its_place_however_often() -> None:
    """A JMS client that rolls back a message releases the messages prefetched after it."""
    routing = Routing(policy=AddressPolicy(max_delivery_count=0))
    queue = routing.queue()
    routing.put(queue, b"failing", b"prefetched")
    consumer = routing.consumer(queue)
    for _ in range(30):
        routing.give(queue, consumer, 2)
        assert bodies(consumer.entries) == [b"failing", b"prefetched"]
        consumer.dispose(Disposal.FAIL, routing.batch)
        consumer.dispose(Disposal.RELEASE, routing.batch)


@pytest.mark.requirement("RCV-02", "RCV-08")
def test_only_failures_are_held_against_the_redelivery_limit() -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=2))
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue)
    routing.give(queue, consumer, 1)
    entry = consumer.entries[0]
    for disposal in (Disposal.COUNT, Disposal.RELEASE, Disposal.COUNT, Disposal.FAIL):
        routing.give(queue, consumer, 1)
        consumer.dispose(disposal, routing.batch)
    assert (queue.backlogs.waiting, entry.delivery_count, entry.failures) == (1, 3, 1)
    routing.give(queue, consumer, 1)
    consumer.dispose(Disposal.FAIL, routing.batch)
    assert counts(queue) == (0, 0, 0)
    assert routing.stats.dead_lettered == 1
    assert routing.consumer(routing.queue("DLQ"), 1).entries[0].delivery_count == 0
