"""Dynamic nodes: the end of a node after its creating link, by lifetime policy."""

from __future__ import annotations

import pytest

from broker.routing.entries.redelivery import Disposal
from broker.routing.topics.dynamic import DeletePolicy, is_over
from broker.routing.topics.lifetime import Ending
from broker.routing.topics.topic import Topic
from tests.support.parties import RecordingConsumer, RecordingProducer
from tests.support.routing import Routing, new_message

ON_CLOSE = DeletePolicy.ON_CLOSE
NO_LINKS = DeletePolicy.ON_NO_LINKS
NO_MESSAGES = DeletePolicy.ON_NO_MESSAGES
NEITHER = DeletePolicy.ON_NO_LINKS_OR_MESSAGES

# policy, and whether the node is over if it has: nothing, links, messages, both
OVER = [
    (ON_CLOSE, (True, True, True, True)),
    (NO_LINKS, (True, False, True, False)),
    (NO_MESSAGES, (True, True, False, False)),
    (NEITHER, (True, False, False, False)),
]


@pytest.mark.requirement("TMP-02")
@pytest.mark.parametrize(
    ("policy", "links", "messages", "expected"),
    [
        pytest.param(policy, links, messages, row[links + 2 * messages], id=f"{policy.name} {text}")
        for policy, row in OVER
        for links, messages, text in [
            (0, 0, "with nothing"),
            (1, 0, "with a link"),
            (0, 1, "with a message"),
            (1, 1, "with both"),
        ]
    ],
)
def test_a_node_is_over(policy: DeletePolicy, links: int, messages: int, expected: bool) -> None:
    assert is_over(policy, links=links, messages=messages) is expected


@pytest.mark.requirement("TMP-02")
def test_without_its_creator_a_node_waits_for_the_last_message() -> None:
    routing = Routing()
    queue = routing.temporary_queue()
    routing.put(queue, b"one", b"two")
    consumer = routing.consumer(queue, credit=10)
    routing.router.outlive(queue, NO_MESSAGES, routing.batch)
    consumer.dispose(Disposal.REMOVE, routing.batch)
    consumer.dispose(Disposal.RELEASE, routing.batch)
    routing.pump()
    assert list(routing.router.queues) == [queue.address]
    consumer.dispose(Disposal.REMOVE, routing.batch)
    assert list(routing.router.queues) == [queue.address], "whoever settles may not be done"
    routing.pump()
    assert consumer.lost_its_node
    assert routing.router.queues == {}


@pytest.mark.requirement("TMP-02")
def test_without_its_creator_a_node_waits_for_the_last_link() -> None:
    routing = Routing()
    queue = routing.temporary_queue()
    routing.put(queue, b"unread")
    producer, consumer, browser = RecordingProducer(), RecordingConsumer(), routing.browser(queue)
    queue.producers.append(producer)
    queue.attach_consumer(consumer)
    routing.router.outlive(queue, NO_LINKS, routing.batch)
    queue.leave(producer)
    queue.note_use_ended()
    queue.detach_consumer(consumer, queue, routing.batch)
    queue.note_use_ended()
    routing.pump()
    assert routing.router.find_named(queue.address, "queue") is queue
    queue.detach_consumer(browser, queue, routing.batch)
    queue.note_use_ended()
    routing.pump()
    assert routing.router.find_named(queue.address, "queue") is None


@pytest.mark.requirement("TMP-02")
def test_a_message_may_come_before_the_node_is_looked_at() -> None:
    routing = Routing()
    queue = routing.temporary_queue()
    routing.put(queue, b"one")
    consumer = routing.consumer(queue, credit=1)
    routing.router.outlive(queue, NO_MESSAGES, routing.batch)
    consumer.dispose(Disposal.REMOVE, routing.batch)
    routing.put(queue, b"two")
    routing.pump()
    assert routing.router.find_named(queue.address, "queue") is queue


@pytest.mark.requirement("TMP-02")
def test_an_expired_message_may_be_the_last() -> None:
    routing = Routing()
    queue = routing.temporary_queue()
    queue.put(new_message(expires_at_ms=routing.clock.wall_ms() + 500), routing.batch)
    routing.router.outlive(queue, NO_MESSAGES, routing.batch)
    routing.advance(1000)
    routing.pump()
    assert routing.router.queues == {}


@pytest.mark.requirement("TMP-02")
@pytest.mark.parametrize(("policy", "stays"), [(NO_MESSAGES, False), (NO_LINKS, True)])
def test_a_topic_holds_no_messages_of_its_own(policy: DeletePolicy, stays: bool) -> None:
    routing = Routing()
    topic = routing.router.create_temporary("topic", 1)
    subscriber = RecordingConsumer()
    assert isinstance(topic, Topic)
    queue = routing.subscribe(topic, subscriber)
    topic.put(new_message(), routing.batch)
    routing.router.outlive(topic, policy, routing.batch)
    assert (routing.router.find_named(topic.address, "topic") is topic) is stays
    assert subscriber.lost_its_node is not stays
    routing.unsubscribe(queue, subscriber)
    topic.note_use_ended()
    routing.pump()
    assert routing.router.topics == {}


@pytest.mark.requirement("TMP-03")
def test_a_connection_takes_its_nodes_along_whatever_they_wait_for() -> None:
    routing = Routing()
    queues = [routing.temporary_queue(owner) for owner in (1, 1, 2)]
    ordinary = routing.queue("ordinary")
    for queue in queues:
        routing.put(queue, b"unread")
        routing.router.outlive(queue, NEITHER, routing.batch)
    routing.router.connection_ended(1, Ending.CONNECTION_LOST, routing.batch)
    assert list(routing.router.queues.values()) == [queues[2], ordinary]
    routing.router.connection_ended(2, Ending.CONNECTION_CLOSED, routing.batch)
    assert list(routing.router.queues.values()) == [ordinary]
