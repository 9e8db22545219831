"""The six classes of RFC012: their spelling, the nodes they name, and what these guarantee."""

from __future__ import annotations

import pytest

from broker.message import NEVER
from broker.routing.addresses import durability
from broker.routing.addresses.durability import Durability
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import HeldExclusively, InvalidAddress, NoSuchNode
from broker.routing.queues.queue import Queue
from broker.routing.topics.lifetime import Ending
from tests.support.routing import Routing, bind, new_message

CLASSES = [
    ("/queue/durable/a", "/queue/durable/a", "queue", Durability.DURABLE),
    ("/durable/queue/a", "/queue/durable/a", "queue", Durability.DURABLE),
    ("/topic/durable/a", "/topic/durable/a", "topic", Durability.DURABLE),
    ("/topic/transient/a", "/topic/transient/a", "topic", Durability.TRANSIENT),
    ("/transient/queue/a", "/queue/transient/a", "queue", Durability.TRANSIENT),
    ("/tmp/queue/a", "/queue/tmp/a", "queue", Durability.TMP),
    ("/topic/tmp/a", "/topic/tmp/a", "topic", Durability.TMP),
    ("/queue/durable/a/b//c", "/queue/durable/a/b//c", "queue", Durability.DURABLE),
]

PLAIN = ["", "a", "queue/durable/a", "/a", "/queue", "/queue/a", "/queue/other/a", "/tmp/a/b"]


@pytest.mark.requirement("DST-10")
@pytest.mark.parametrize(("written", "address", "kind", "promise"), CLASSES)
def test_a_class_is_written(written: str, address: str, kind: str, promise: Durability) -> None:
    assert durability.canonical(written) == address
    assert durability.canonical(address) == address
    assert durability.kind_in(address) == kind
    assert durability.durability_of(address) is promise
    assert durability.beginning(address) == "/".join(address.split("/")[:3]) + "/"


@pytest.mark.requirement("DST-10", "DST-14")
@pytest.mark.parametrize("address", PLAIN)
def test_any_other_address_is_plain(address: str) -> None:
    assert durability.canonical(address) == address
    assert durability.kind_in(address) == ""
    assert durability.beginning(address) == ""
    assert durability.durability_of(address) is Durability.PLAIN


@pytest.mark.requirement("DST-10")
@pytest.mark.parametrize("address", ["/queue/durable", "/durable/queue/", "/topic/tmp/"])
def test_a_class_needs_a_name(address: str) -> None:
    with pytest.raises(InvalidAddress, match="lacks a name"):
        durability.canonical(address)


# -- nodes


def resolve(routing: Routing, address: str, kind: str = "", owner: int = 1) -> Queue:
    node = routing.router.resolve(routing.router.parse(address, kind), routing.batch, owner=owner)
    assert isinstance(node, Queue)
    return node


@pytest.mark.requirement("DST-10")
def test_both_orders_name_one_node_and_the_name_alone_another() -> None:
    routing = Routing()
    queue = resolve(routing, "/queue/durable/a")
    assert resolve(routing, "/durable/queue/a", "queue") is queue
    assert routing.router.find_named("/durable/queue/a", "queue") is queue
    others = [resolve(routing, address) for address in ("a", "/queue/transient/a", "/queue/tmp/a")]
    assert len({queue, *others}) == 4


@pytest.mark.requirement("DST-10")
@pytest.mark.parametrize(
    ("address", "kind"), [("/queue/durable/a", "topic"), ("/transient/topic/a", "queue")]
)
def test_the_kind_is_in_the_address(address: str, kind: str) -> None:
    routing = Routing(default_kind=kind)
    with pytest.raises(InvalidAddress, match="is no"):
        routing.router.resolve(routing.router.parse(address, kind), routing.batch)
    made = routing.router.resolve(routing.router.parse(address, ""), routing.batch)
    assert made.kind != kind


@pytest.mark.requirement("DST-10", "DST-05")
def test_behind_the_name_of_a_topic_is_a_key() -> None:
    routing = Routing()
    topic = routing.router.resolve(
        routing.router.parse("/durable/topic/prices/eu.gold", ""), routing.batch
    )
    assert topic.address == "/topic/durable/prices"
    key = routing.router.publishing_key(
        routing.router.parse("/durable/topic/prices/eu.gold"), topic
    )
    assert key == "eu.gold"


@pytest.mark.requirement("DST-10", "DST-06")
def test_a_pattern_stands_for_topics_of_its_own_class() -> None:
    routing = Routing()
    names = ["a.b", "/topic/durable/a.b", "/topic/transient/a.b", "/topic/durable/b"]
    for name in names[:2]:
        routing.topic(name)
    found = {}
    for pattern in ("#", "/durable/topic/#", "/topic/transient/a.*", "/topic/durable/a.#"):
        queue = Queue(
            address="s",
            policy=routing.queue().policy,
            context=routing.router.context,
            is_subscription=True,
        )
        bind(routing.router, pattern, queue, routing.batch)
        found[pattern] = queue
    for name in names[2:]:
        routing.topic(name)
    assert {
        pattern: [topic.address for topic in queue.topics] for pattern, queue in found.items()
    } == {
        "#": ["a.b"],
        "/durable/topic/#": ["/topic/durable/a.b", "/topic/durable/b"],
        "/topic/transient/a.*": ["/topic/transient/a.b"],
        "/topic/durable/a.#": ["/topic/durable/a.b"],
    }


# -- what the nodes guarantee


@pytest.mark.requirement("DST-11", "DST-12", "DST-14")
@pytest.mark.parametrize(
    ("address", "durable", "stored"),
    [
        pytest.param("/queue/durable/q", True, True, id="durable, durable message"),
        pytest.param("/queue/durable/q", False, True, id="durable, other message"),
        pytest.param("/queue/transient/q", True, False, id="transient, durable message"),
        pytest.param("/queue/transient/q", False, False, id="transient, other message"),
        pytest.param("/queue/tmp/q", True, False, id="tmp, durable message"),
        pytest.param("q", True, True, id="plain, durable message"),
        pytest.param("q", False, False, id="plain, other message"),
    ],
)
def test_a_message_is_stored(address: str, durable: bool, stored: bool) -> None:
    routing = Routing()
    queue = resolve(routing, address)
    queue.put(new_message(durable=durable), routing.batch)
    assert [each.durable for each in routing.stored(address)] == [durable] * stored
    consumer = routing.consumer(queue, credit=1)
    consumer.dispose(Disposal.REMOVE, routing.batch)
    assert routing.stored(address) == []


@pytest.mark.requirement("DST-11")
def test_a_durable_queue_never_gives_a_message_up_for_its_failures() -> None:
    routing = Routing()
    queue = resolve(routing, "/queue/durable/q")
    queue.put(new_message(b"bad"), routing.batch)
    consumer = routing.consumer(queue, credit=1000)
    for _ in range(int(queue.policy.max_delivery_count) + 5):
        consumer.dispose(Disposal.FAIL, routing.batch)
        routing.pump()
    (entry,) = consumer.entries
    assert int(entry.failures) > queue.policy.max_delivery_count
    assert "DLQ" not in routing.router.queues


@pytest.mark.requirement("DST-11")
def test_a_ttl_is_the_senders_wish_in_a_durable_queue_too() -> None:
    routing = Routing()
    queue = resolve(routing, "/queue/durable/q")
    queue.put(new_message(expires_at_ms=routing.clock.wall_ms() + 100), routing.batch)
    queue.put(new_message(expires_at_ms=NEVER), routing.batch)
    routing.advance(2000)
    assert queue.backlogs.waiting == 1
    assert len(routing.stored(queue.address)) == 1


@pytest.mark.requirement("DST-10", "RCV-02")
@pytest.mark.parametrize(
    ("target", "kept"),
    [
        pytest.param("/durable/queue/dead", 2, id="a class in either order"),
        pytest.param("/queue/tmp/dead", 0, id="no connection's own"),
        pytest.param("/topic/durable/dead", 0, id="no topic"),
        pytest.param("/queue/durable/", 0, id="no name"),
    ],
)
def test_dead_letters_may_go_to_a_class(target: str, kept: int) -> None:
    routing = Routing(policy=AddressPolicy(dead_letter=target))
    queue = routing.queue()
    routing.put(queue, b"one", b"two")
    consumer = routing.consumer(queue, credit=2)
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    consumer.dispose(Disposal.DEAD_LETTER, routing.batch)
    assert len(routing.stored("/queue/durable/dead")) == kept
    assert (routing.stats.dead_lettered, queue.state.held()) == (kept, 2 - kept)
    assert routing.stats.dropped == 0, "what cannot be moved is held back"


@pytest.mark.requirement("DST-13")
def test_a_tmp_node_is_its_makers_and_ends_with_that_connection() -> None:
    routing = Routing()
    queue = resolve(routing, "/tmp/queue/mine", owner=1)
    assert routing.stored_nodes() == []
    assert resolve(routing, "/queue/tmp/mine", owner=2) is queue, "others may send"
    with pytest.raises(HeldExclusively):
        routing.router.check_consumable(queue, 2)
    routing.router.connection_ended(1, Ending.CONNECTION_LOST, routing.batch)
    assert queue.state.is_deleted
    again = resolve(routing, "/queue/tmp/mine", owner=3)
    routing.router.check_consumable(again, 3)
    assert again is not queue


@pytest.mark.requirement("DST-13")
@pytest.mark.parametrize("address", ["/queue/tmp/q", "/tmp/topic/t"])
def test_nobody_makes_a_tmp_node_for_another(address: str) -> None:
    routing = Routing()
    with pytest.raises(NoSuchNode):
        routing.router.resolve(routing.router.parse(address, ""), routing.batch)


@pytest.mark.requirement("DST-13", "TMP-04")
@pytest.mark.parametrize("pattern", ["/topic/tmp/#", "#"])
def test_no_pattern_finds_a_tmp_topic(pattern: str) -> None:
    routing = Routing()
    topic = routing.router.resolve(routing.router.parse("/topic/tmp/t", ""), routing.batch, owner=1)
    queue = Queue(
        address="s",
        policy=routing.queue().policy,
        context=routing.router.context,
        is_subscription=True,
    )
    if pattern == "#":
        bind(routing.router, pattern, queue, routing.batch)
    else:
        with pytest.raises(NoSuchNode):
            bind(routing.router, pattern, queue, routing.batch)
    assert topic not in queue.topics
