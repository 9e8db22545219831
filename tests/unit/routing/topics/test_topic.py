"""Topics: one message for every subscription that exists when it is published."""

import pytest

from broker.routing.addresses.policy import REJECT, AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import QueueFull
from broker.routing.queues.queue import Queue
from broker.routing.topics.binding import Binding
from broker.routing.topics.topic import Topic
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, new_message

pytestmark = pytest.mark.requirement("SUB-01")


def subscribe(routing: Routing, topic: Topic, credit: int = 0) -> tuple[RecordingConsumer, Queue]:
    consumer = RecordingConsumer()
    queue = routing.subscribe(topic, consumer)
    routing.give(queue, consumer, credit)
    return consumer, queue


def test_every_subscriber_gets_what_is_published_after_it_came() -> None:
    routing = Routing()
    topic = routing.topic()
    routing.put(topic, b"nobody is there")
    early, _ = subscribe(routing, topic, 10)
    routing.put(topic, b"a")
    late, _ = subscribe(routing, topic, 10)
    routing.put(topic, b"b")
    routing.pump()
    assert (early.taken, late.taken) == ([b"a", b"b"], [b"b"])
    assert topic.published == 3


def test_subscribers_share_the_message_but_not_what_happens_to_it() -> None:
    routing = Routing()
    topic = routing.topic()
    one, _ = subscribe(routing, topic, 1)
    other, _ = subscribe(routing, topic, 1)
    routing.put(topic, b"a")
    routing.pump()
    assert one.entries[0].message is other.entries[0].message
    returned = one.dispose(Disposal.FAIL, routing.batch)
    assert (returned.delivery_count, other.entries[0].delivery_count) == (1, 0)


def test_messages_of_subscriptions_are_not_kept_in_the_store() -> None:
    routing = Routing()
    topic = routing.topic()
    consumer, _ = subscribe(routing, topic, 1)
    topic.put(new_message(b"a", durable=True), routing.batch)
    routing.pump()
    consumer.dispose(Disposal.FAIL, routing.batch)
    assert routing.stored("t") == []


def test_a_subscription_ends_with_its_consumer_and_frees_its_messages() -> None:
    routing = Routing()
    topic = routing.topic()
    consumer, queue = subscribe(routing, topic, 1)
    routing.put(topic, b"a", b"b", b"c")
    routing.pump()
    consumer.dispose(Disposal.RELEASE, routing.batch)
    routing.unsubscribe(queue, consumer)
    assert (queue.backlogs.waiting, queue.state.acquired, queue.state.bytes) == (0, 0, 0)
    assert topic.backlog() == 0
    routing.unsubscribe(queue, consumer)
    assert not consumer.lost_its_node, "it left of its own accord"


def test_a_deleted_topic_tells_its_subscribers() -> None:
    routing = Routing()
    topic = routing.topic()
    consumer, queue = subscribe(routing, topic, 1)
    routing.put(topic, b"a", b"b")
    routing.pump()
    routing.router.delete(topic, routing.batch)
    assert consumer.lost_its_node
    assert not topic.subscriptions
    assert (queue.backlogs.waiting, queue.state.acquired, queue.state.bytes) == (0, 1, 1)
    consumer.dispose(Disposal.RELEASE, routing.batch)
    assert (queue.backlogs.waiting, queue.state.acquired, queue.state.bytes) == (0, 0, 0)


LIMITS = {
    "messages": AddressPolicy(max_messages=1),
    "bytes": AddressPolicy(max_bytes=1, full=REJECT),
}


@pytest.mark.parametrize("policy", LIMITS.values(), ids=LIMITS.keys())
def test_a_full_subscription_refuses_the_message_for_all(policy: AddressPolicy) -> None:
    routing = Routing(policy=policy)
    topic = routing.topic()
    fast, _ = subscribe(routing, topic, 10)
    slow, queue = subscribe(routing, topic)
    routing.put(topic, b"a")
    routing.pump()
    fast.dispose(Disposal.REMOVE, routing.batch)
    with pytest.raises(QueueFull):
        routing.put(topic, b"b")
    routing.pump()
    assert (fast.taken, queue.backlogs.waiting, topic.published) == ([b"a"], 1, 1)
    assert not slow.taken


def test_the_backlog_of_a_topic_is_what_all_subscribers_together_are_behind() -> None:
    routing = Routing()
    topic = routing.topic()
    subscribe(routing, topic, 2)
    subscribe(routing, topic)
    routing.put(topic, b"a", b"b", b"c")
    routing.pump()
    assert topic.backlog() == 1 + 3


def test_a_subscription_nobody_consumes_from_holds_no_producer_back() -> None:
    routing = Routing()
    topic = routing.topic()
    consumer, queue = subscribe(routing, topic)
    queue.detach_consumer(consumer, queue, routing.batch)
    routing.put(topic, b"a")
    assert (queue.backlogs.waiting, topic.backlog()) == (1, 0)


def test_a_queue_knows_the_topics_it_is_bound_to() -> None:
    routing = Routing()
    one, other = routing.topic("one"), routing.topic("other")
    _, queue = subscribe(routing, one)
    other.bind(Binding(queue))
    routing.put(one, b"a")
    routing.put(other, b"b")
    assert (queue.backlogs.waiting, list(queue.topics)) == (2, [one, other])
    one.unbind(queue)
    one.unbind(queue)
    routing.put(one, b"c")
    assert (queue.backlogs.waiting, list(queue.topics)) == (2, [other])


@pytest.mark.requirement("RCV-02")
def test_what_a_subscriber_rejects_goes_to_the_dead_letter_queue() -> None:
    routing = Routing(policy=AddressPolicy(dead_letter="t"))
    topic = routing.topic("t")
    consumer, _ = subscribe(routing, topic, 1)
    routing.put(topic, b"a")
    routing.pump()
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    assert routing.consumer(routing.queue("t"), 1).taken == [b"a"], "a queue named as the topic"
    assert routing.stats.dead_lettered == 1


@pytest.mark.requirement("RCV-02")
def test_what_a_subscriber_of_a_temporary_topic_rejects_is_dropped() -> None:
    routing = Routing()
    topic = routing.router.create_temporary("topic", 1)
    assert isinstance(topic, Topic)
    consumer, _ = subscribe(routing, topic, 1)
    routing.put(topic, b"a")
    routing.pump()
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    assert (routing.stats.dead_lettered, routing.stats.dropped) == (0, 1)
    assert "DLQ" not in routing.router.queues
