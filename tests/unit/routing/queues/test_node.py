"""Common behaviour of queues and topics: producers, and holding them back."""

from collections.abc import Callable

import pytest

from broker.routing.credit.pacing import TRIES
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from tests.support.parties import RecordingConsumer, RecordingProducer
from tests.support.routing import Routing

MARK = 10


def held_back(node: Node) -> RecordingProducer:
    """Return a producer of `node` that was not granted credit."""
    producer = RecordingProducer()
    node.producers.append(producer)
    assert not node.request_credit(producer)
    return producer


Slow = tuple[Routing, Node, RecordingConsumer, Queue]


def slow_queue() -> Slow:
    """Return a queue above the mark, and the consumer that is behind."""
    routing = Routing(pacing_mark=MARK)
    queue = routing.queue()
    consumer = routing.consumer(queue)
    routing.put(queue, *[b"x"] * (MARK + 1))
    return routing, queue, consumer, queue


def slow_topic() -> Slow:
    """Return a topic with a fast subscriber, and one whose queue is above the mark."""
    routing = Routing(pacing_mark=MARK)
    topic = routing.topic()
    fast, slow = RecordingConsumer(), RecordingConsumer()
    routing.give(routing.subscribe(topic, fast), fast, 1000)
    queue = routing.subscribe(topic, slow)
    routing.put(topic, *[b"x"] * (MARK + 1))
    routing.pump()
    return routing, topic, slow, queue


SLOW = pytest.mark.parametrize(
    "slow",
    [
        pytest.param(slow_queue, id="queue"),
        pytest.param(slow_topic, id="topic, with one fast subscriber"),
    ],
)


@SLOW
def test_a_producer_waits_for_slow_consumers_ten_milliseconds_at_most(
    slow: Callable[[], Slow],
) -> None:
    routing, node, _, _ = slow()
    producer = held_back(node)
    routing.advance(9)
    assert producer.resumed == 0
    routing.advance(1)
    assert producer.resumed == 1
    for _ in range(TRIES - 1):
        assert not node.request_credit(producer)
        routing.advance(10)
    assert node.request_credit(producer), "it did not help, so it is off"


@SLOW
def test_a_producer_goes_on_as_soon_as_consumers_have_caught_up(
    slow: Callable[[], Slow],
) -> None:
    routing, node, consumer, queue = slow()
    producer = held_back(node)
    routing.give(queue, consumer, 1)
    assert producer.resumed == 1
    routing.advance(10)
    assert producer.resumed == 1


@SLOW
def test_a_producer_goes_on_when_the_slow_consumer_leaves(slow: Callable[[], Slow]) -> None:
    routing, node, consumer, queue = slow()
    producer = held_back(node)
    routing.unsubscribe(queue, consumer)
    routing.pump()
    assert producer.resumed == 1


def test_waiting_producers_cost_one_deadline() -> None:
    routing, queue, _, _ = slow_queue()
    first, second = held_back(queue), held_back(queue)
    routing.advance(10)
    assert (first.resumed, second.resumed) == (1, 1)
    assert routing.router.timer_queue.next_deadline_ms() == -1


def test_a_producer_of_a_queue_without_consumers_never_waits() -> None:
    routing = Routing(pacing_mark=MARK)
    queue = routing.queue()
    routing.put(queue, *[b"x"] * (10 * MARK))
    assert queue.request_credit(RecordingProducer())


def test_a_producer_that_has_left_is_told_nothing() -> None:
    routing, queue, _, _ = slow_queue()
    producer = held_back(queue)
    queue.leave(producer)
    queue.leave(producer)
    routing.advance(10)
    routing.router.delete(queue, routing.batch)
    assert (producer.resumed, producer.lost_its_node) == (0, False)


@pytest.mark.requirement("TMP-03")
def test_producers_are_told_that_the_node_is_gone() -> None:
    routing = Routing()
    queue, topic = routing.temporary_queue(), routing.topic()
    to_queue, to_topic = RecordingProducer(), RecordingProducer()
    queue.producers.append(to_queue)
    topic.producers.append(to_topic)
    routing.router.delete(queue, routing.batch)
    routing.router.delete(topic, routing.batch)
    assert to_queue.lost_its_node
    assert to_topic.lost_its_node
    assert not queue.producers
