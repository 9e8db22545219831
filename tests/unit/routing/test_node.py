"""What queues and topics have in common: producers, and holding them back."""

import pytest

from broker.routing.node import Node
from tests.support.parties import RecordingConsumer, RecordingProducer
from tests.support.routing import Routing

MARK = 10


def held_back(routing: Routing, node: Node) -> RecordingProducer:
    """A producer of `node` that was not granted credit."""
    producer = RecordingProducer()
    node.producers.append(producer)
    assert not node.may_grant(producer, routing.router)
    return producer


def slow_queue() -> tuple[Routing, Node, RecordingConsumer]:
    routing = Routing(pacing_mark=MARK)
    queue = routing.queue()
    consumer = routing.consumer(queue)
    routing.put(queue, *[b"x"] * (MARK + 1))
    return routing, queue, consumer


def slow_topic() -> tuple[Routing, Node, RecordingConsumer]:
    routing = Routing(pacing_mark=MARK)
    topic = routing.topic()
    fast = RecordingConsumer(1000)
    topic.attach_consumer(fast).consumer_ready(fast, drain=False)
    consumer = RecordingConsumer()
    topic.attach_consumer(consumer)
    routing.put(topic, *[b"x"] * (MARK + 1))
    routing.pump()
    return routing, topic, consumer


KINDS = {"queue": slow_queue, "topic, by its slowest subscriber": slow_topic}


@pytest.mark.parametrize("slow", KINDS.values(), ids=KINDS.keys())
def test_a_producer_waits_for_slow_consumers_ten_milliseconds_at_most(slow: object) -> None:
    assert callable(slow)
    routing, node, _ = slow()
    producer = held_back(routing, node)
    routing.advance(9)
    assert producer.resumed == 0
    routing.advance(1)
    assert producer.resumed == 1
    assert node.may_grant(producer, routing.router), "it did not help, so it is off"


@pytest.mark.parametrize("slow", KINDS.values(), ids=KINDS.keys())
def test_a_producer_goes_on_as_soon_as_consumers_have_caught_up(slow: object) -> None:
    assert callable(slow)
    routing, node, consumer = slow()
    producer = held_back(routing, node)
    queue = node if node.kind == "queue" else node.subscriptions[1]
    routing.give(queue, consumer, 1)
    assert producer.resumed == 1
    routing.advance(10)
    assert producer.resumed == 1


@pytest.mark.parametrize("slow", KINDS.values(), ids=KINDS.keys())
def test_a_producer_goes_on_when_the_slow_consumer_leaves(slow: object) -> None:
    assert callable(slow)
    routing, node, consumer = slow()
    producer = held_back(routing, node)
    queue = node if node.kind == "queue" else node.subscriptions[1]
    node.detach_consumer(consumer, queue, routing.batch)
    assert producer.resumed == 1


def test_waiting_producers_cost_one_deadline() -> None:
    routing, queue, _ = slow_queue()
    first, second = held_back(routing, queue), held_back(routing, queue)
    routing.advance(10)
    assert (first.resumed, second.resumed) == (1, 1)
    assert routing.router.agenda.next_deadline_ms() == -1


def test_a_producer_of_a_queue_without_consumers_never_waits() -> None:
    routing = Routing(pacing_mark=MARK)
    queue = routing.queue()
    routing.put(queue, *[b"x"] * (10 * MARK))
    assert queue.may_grant(RecordingProducer(), routing.router)


def test_a_producer_that_has_left_is_told_nothing() -> None:
    routing, queue, _ = slow_queue()
    producer = held_back(routing, queue)
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
