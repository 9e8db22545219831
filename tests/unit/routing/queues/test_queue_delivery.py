"""Delivery of a queue: what a consumer that begins anew gets, and what others get instead."""

from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.redelivery import Disposal
from broker.routing.selector import parse_selector
from tests.support.routing import Routing, bodies


def test_a_consumer_with_another_filter_begins_at_the_start_of_the_queue() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"low", priority=1)
    routing.put(queue, b"high", priority=8)
    consumer = routing.consumer(queue)
    consumer.filter = ConsumerFilter(parse_selector("JMSPriority > 9"))
    queue.delivery.start_over(consumer)
    routing.give(queue, consumer, 9)
    assert consumer.taken == []
    consumer.filter = ConsumerFilter(parse_selector("JMSPriority < 5"))
    queue.delivery.start_over(consumer)
    routing.give(queue, consumer, 9)
    assert consumer.taken == [b"low"]
    consumer.filter = None
    queue.delivery.start_over(consumer)
    routing.give(queue, consumer, 9)
    assert consumer.taken == [b"low", b"high"]


def test_groups_of_a_consumer_that_gives_them_up_go_to_another() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put_grouped(queue, "a1")
    first = routing.consumer(queue, 1)
    first.dispose(Disposal.REMOVE, routing.batch)
    second = routing.consumer(queue, 9)
    routing.give(queue, first, 9)
    queue.delivery.free_groups(first)
    first.credit = 0
    routing.put_grouped(queue, "a2", "a3")
    assert (bodies(first.entries), bodies(second.entries)) == ([], [b"a2", b"a3"])


def test_the_consumers_of_a_deleted_queue_are_told() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer, browser = routing.consumer(queue, 1), routing.browser(queue, 1)
    routing.router.delete(queue, routing.batch)
    assert (consumer.lost_its_node, browser.lost_its_node) == (True, True)
    assert queue.consumers.count() == 0
