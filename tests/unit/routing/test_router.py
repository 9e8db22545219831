"""The router: nodes by address, temporary nodes, rounds, and the ends of messages."""

import pytest

from broker.routing.addresses.policy import AddressPolicy, Policies
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import (
    HeldExclusively,
    InvalidAddress,
    LimitReached,
    NoSuchNode,
    RoutingError,
)
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from broker.routing.topics.topic import Topic
from tests.support.clock import WALL_START_MS
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, new_message

CLOSED = AddressPolicy(auto_create=False)


def resolve(routing: Routing, address: str, kind: str) -> Node:
    return routing.router.resolve(routing.router.parse(address, kind), routing.batch)


# -- resolve

KINDS = {
    "a queue where a queue is asked for": ("", "queue", "queue", "queue"),
    "a topic where a topic is asked for": ("", "topic", "queue", "topic"),
    "the default kind where nothing is said": ("", "", "queue", "queue"),
    "the configured default kind": ("", "", "topic", "topic"),
    "the existing queue": ("queue", "", "topic", "queue"),
    "the existing topic": ("topic", "", "queue", "topic"),
    "the queue of two": ("queue topic", "", "topic", "queue"),
    "a queue beside the topic of that name": ("topic", "queue", "queue", "queue"),
    "a topic beside the queue of that name": ("queue", "topic", "queue", "topic"),
}


@pytest.mark.requirement("DST-01", "DST-02")
@pytest.mark.parametrize(
    ("existing", "asked", "default", "expected"), KINDS.values(), ids=KINDS.keys()
)
def test_an_address_leads_to(existing: str, asked: str, default: str, expected: str) -> None:
    routing = Routing(default_kind=default)
    before = {kind: resolve(routing, "a", kind) for kind in existing.split()}
    node = resolve(routing, "a", asked)
    assert (node.address, node.kind) == ("a", expected)
    assert before.get(expected, node) is node
    assert resolve(routing, "a", asked) is node


@pytest.mark.requirement("DST-01")
def test_a_queue_and_a_topic_of_one_name_are_two_nodes() -> None:
    routing = Routing()
    queue, topic = routing.queue("a"), routing.topic("a")
    routing.put(topic, b"x")
    assert queue.backlogs.waiting == 0
    routing.router.delete(topic, routing.batch)
    assert routing.router.find_named("a", "queue") is queue
    assert routing.router.find_named("a", "topic") is None


@pytest.mark.requirement("DST-02")
def test_what_may_not_be_created_is_not_found() -> None:
    routing = Routing(patterns=[("closed.*", CLOSED)])
    for kind in ("queue", "topic", ""):
        with pytest.raises(NoSuchNode, match=r"closed\.x"):
            resolve(routing, "closed.x", kind)
    assert resolve(routing, "open.x", "") is routing.router.find_named("open.x", "")
    routing.router.create(routing.router.parse("closed.x", "queue"), routing.batch)
    assert resolve(routing, "closed.x", "").kind == "queue"


@pytest.mark.requirement("DST-02")
def test_a_client_may_ask_for_an_existing_node_alone() -> None:
    routing = Routing()
    for kind in ("queue", "topic", ""):
        with pytest.raises(NoSuchNode, match="a"):
            routing.router.resolve(routing.router.parse("a", kind), routing.batch, create=False)
    with pytest.raises(NoSuchNode, match="topic a"):
        routing.router.topic_of(routing.router.parse("a/key"), routing.batch, create=False)
    assert routing.router.topic_of(routing.router.parse("a.*"), routing.batch, create=False) is None
    assert routing.batch.is_empty()
    queue = routing.queue("a")
    assert (
        routing.router.resolve(routing.router.parse("a", ""), routing.batch, create=False) is queue
    )
    topic = routing.router.create(routing.router.parse("a", "topic"), routing.batch)
    assert (
        routing.router.topic_of(routing.router.parse("a/key"), routing.batch, create=False) is topic
    )


REFUSED = {
    "no name": ("", "queue", InvalidAddress),
    "too long a name": ("x" * 256, "queue", InvalidAddress),
    "a control character": ("a\n", "topic", InvalidAddress),
    "a guessed temporary queue": ("$tmp/queue/x", "queue", NoSuchNode),
    "a guessed temporary node": ("$tmp/queue/x", "", NoSuchNode),
    "an unknown kind": ("a", "exchange", InvalidAddress),
}


@pytest.mark.parametrize(("address", "kind", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_and_nothing_is_created(address: str, kind: str, error: type[RoutingError]) -> None:
    routing = Routing()
    with pytest.raises(error):
        resolve(routing, address, kind)
    assert not routing.router.queues
    assert not routing.router.topics
    assert routing.batch.is_empty()


def test_there_is_a_limit_to_all_nodes_together() -> None:
    routing = Routing(nodes_max=3)
    queue = routing.queue("a")
    routing.topic("a")
    routing.temporary_queue()
    for kind in ("queue", "topic"):
        with pytest.raises(LimitReached, match="3"):
            resolve(routing, "b", kind)
    with pytest.raises(LimitReached):
        routing.router.create_temporary("topic", 1)
    assert resolve(routing, "a", "queue") is queue, "what exists is not refused"
    routing.router.delete(queue, routing.batch)
    assert resolve(routing, "b", "topic").address == "b"


@pytest.mark.requirement("DST-02")
def test_ordinary_nodes_are_stored_until_they_are_deleted() -> None:
    routing = Routing()
    queue = routing.queue("a")
    routing.topic("a")
    routing.temporary_queue()
    assert routing.stored_nodes() == [("queue", "a"), ("topic", "a")]
    routing.router.delete(queue, routing.batch)
    assert routing.stored_nodes() == [("topic", "a")]


# -- temporary nodes


@pytest.mark.requirement("TMP-01")
@pytest.mark.parametrize(("kind", "expected"), [("queue", Queue), ("topic", Topic)])
def test_a_temporary_node_is_found_by_its_address(kind: str, expected: type[Node]) -> None:
    routing = Routing(policy=CLOSED)
    node = routing.router.create_temporary(kind, 7)
    assert isinstance(node, expected)
    assert node.is_temporary
    assert resolve(routing, node.address, kind) is node
    assert resolve(routing, node.address, "") is node


@pytest.mark.requirement("TMP-03")
def test_a_deleted_temporary_node_cannot_be_had_again() -> None:
    routing = Routing()
    node = routing.temporary_queue()
    routing.router.delete(node, routing.batch)
    routing.router.delete(node, routing.batch)
    assert routing.batch.is_empty()
    with pytest.raises(NoSuchNode):
        resolve(routing, node.address, "queue")


@pytest.mark.requirement("TMP-04")
def test_only_its_owner_may_consume_from_a_temporary_node() -> None:
    routing = Routing()
    node = routing.temporary_queue(owner=7)
    routing.router.check_consumable(node, 7)
    with pytest.raises(HeldExclusively):
        routing.router.check_consumable(node, 8)
    routing.router.check_consumable(routing.queue(), 8)


# -- rounds


def test_a_queue_is_dispatched_once_however_often_it_was_woken() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = RecordingConsumer(10)
    queue.attach_consumer(consumer)
    queue.consumer_ready(consumer, drain=False)
    routing.put(queue, b"a", b"b")
    assert consumer.taken == [], "nothing is dispatched while messages come in"
    routing.pump()
    assert consumer.taken == [b"a", b"b"]
    assert not queue.is_woken
    routing.pump()


def test_a_pump_goes_on_until_no_queue_is_awake() -> None:
    routing = Routing(patterns=[("q", AddressPolicy(expiry="late"))])
    late = routing.consumer(routing.queue("late"), 1)
    queue = routing.queue()
    queue.put(new_message(b"a", expires_at_ms=WALL_START_MS - 1), routing.batch)
    routing.consumer(queue, 1)
    assert late.taken == [b"a"]


# -- ends of messages


def rejected(routing: Routing, queue: Queue, body: bytes = b"a", *, durable: bool = False) -> None:
    """Put a message into `queue`, and reject it."""
    queue.put(new_message(body, durable=durable), routing.batch)
    consumer = routing.consumer(queue, 1)
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    queue.detach_consumer(consumer, queue, routing.batch)


@pytest.mark.requirement("RCV-02")
def test_the_dead_letter_queue_is_created_when_first_needed_even_where_policy_is_off() -> None:
    routing = Routing(patterns=[("DLQ", CLOSED)])
    queue = routing.queue()
    assert "DLQ" not in routing.router.queues
    rejected(routing, queue, durable=True)
    assert [each.encoded for each in routing.stored("DLQ")] == [b"a"]
    assert routing.stored("q") == []
    assert ("queue", "DLQ") in routing.stored_nodes()
    assert (routing.stats.dead_lettered, routing.stats.dropped) == (1, 0)


DROPPED = {
    "where no dead-letter queue is configured": (AddressPolicy(dead_letter=""), "q"),
    "in the dead-letter queue itself": (AddressPolicy(), "DLQ"),
}


@pytest.mark.requirement("RCV-02")
@pytest.mark.parametrize(("policy", "address"), DROPPED.values(), ids=DROPPED.keys())
def test_rejected_messages_are_dropped_and_counted(policy: AddressPolicy, address: str) -> None:
    routing = Routing(policy=policy)
    rejected(routing, routing.queue(address))
    assert (routing.stats.dead_lettered, routing.stats.dropped) == (0, 1)


@pytest.mark.requirement("RCV-02")
def test_rejected_messages_of_temporary_nodes_are_dropped() -> None:
    routing = Routing()
    rejected(routing, routing.temporary_queue())
    assert (routing.stats.dead_lettered, routing.stats.dropped) == (0, 1)


@pytest.mark.requirement("RCV-02")
def test_dead_letter_queues_may_have_dead_letter_queues() -> None:
    routing = Routing(patterns=[("DLQ", AddressPolicy(dead_letter="DLQ2"))])
    rejected(routing, routing.queue())
    dead = routing.queue("DLQ")
    routing.consumer(dead, 1).dispose(Disposal.DEAD_LETTER, routing.batch)
    assert (dead.backlogs.waiting, dead.state.acquired, dead.state.bytes) == (0, 0, 0)
    assert routing.queue("DLQ2").backlogs.waiting == 1
    assert routing.stats.dead_lettered == 2


EXPIRED = {
    "dropped where no node is configured": (AddressPolicy(), "q", 0),
    "moved where one is": (AddressPolicy(expiry="late"), "q", 1),
    "dropped in that node itself": (AddressPolicy(expiry="late"), "late", 0),
}


@pytest.mark.requirement("RCV-02", "PRD-04")
@pytest.mark.parametrize(("policy", "address", "kept"), EXPIRED.values(), ids=EXPIRED.keys())
def test_an_expired_message_is(policy: AddressPolicy, address: str, kept: int) -> None:
    routing = Routing(policy=policy)
    queue = routing.queue(address)
    queue.put(new_message(b"a", expires_at_ms=WALL_START_MS + 1), routing.batch)
    routing.clock.advance(1)
    consumer = routing.consumer(queue, 1)
    assert consumer.taken == []
    assert routing.stats.expired == 1
    assert routing.queue("late").backlogs.waiting == kept


@pytest.mark.requirement("RCV-02")
def test_an_expired_message_of_a_temporary_queue_is_dropped() -> None:
    routing = Routing(policy=AddressPolicy(expiry="late"))
    queue = routing.temporary_queue()
    queue.put(new_message(expires_at_ms=WALL_START_MS - 1), routing.batch)
    routing.consumer(queue, 1)
    assert routing.stats.expired == 1
    assert "late" not in routing.router.queues


def test_an_expired_message_that_was_moved_does_not_expire_again() -> None:
    routing = Routing(patterns=[("q", AddressPolicy(expiry="late"))])
    queue = routing.queue()
    queue.put(new_message(b"a", expires_at_ms=WALL_START_MS - 1), routing.batch)
    routing.consumer(queue, 1)
    routing.advance(10**9)
    assert routing.consumer(routing.queue("late"), 1).taken == [b"a"]


def test_policies_whose_nodes_have_no_room_change_nothing() -> None:
    """A reload of the settings takes all of them, or none."""
    routing = Routing(nodes_max=2)
    routing.queue("there")
    before = routing.router.policies
    declared = {("queue", name): AddressPolicy() for name in ("there", "one", "other")}
    after = Policies([], AddressPolicy(), "queue", declared=declared)
    with pytest.raises(LimitReached):
        routing.router.adopt(after, routing.batch)
    assert routing.router.policies is before
    assert sorted(routing.router.queues) == ["there"]
