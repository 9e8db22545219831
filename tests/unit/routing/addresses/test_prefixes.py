"""Prefixes of addresses: the kind that each means, the node it names, and refusals."""

import pytest

from broker.routing.addresses.prefixes import KINDS, Prefixes
from broker.routing.errors import InvalidAddress, NoSuchNode, RoutingError
from broker.routing.queues.node import Node
from broker.settings import PREFIXES
from tests.support.routing import Routing

MEANT = [
    pytest.param("topic://news", "", "topic", "news", id="a topic"),
    pytest.param("topic://news", "topic", "topic", "news", id="a topic, with its capability"),
    pytest.param("topic://news/sport", "", "topic", "news", id="a topic with a key"),
    pytest.param("queue://a", "", "queue", "a", id="a queue"),
    pytest.param("queue://a/b", "queue", "queue", "a/b", id="a queue whose name has a slash"),
    pytest.param("queue:///durable/queue/a", "", "queue", "/queue/durable/a", id="a class"),
    pytest.param("topic:///topic/durable/t/k", "", "topic", "/topic/durable/t", id="its topic"),
    pytest.param("queue://http://x", "", "queue", "http://x", id="no prefix behind it"),
    pytest.param("http://x", "", "queue", "http://x", id="no prefix"),
    pytest.param("a topic://b", "", "queue", "a topic://b", id="not at the beginning"),
]


def resolve(routing: Routing, address: str, kind: str = "") -> Node:
    return routing.router.resolve(routing.router.parse(address, kind), routing.batch)


@pytest.mark.requirement("DST-01")
@pytest.mark.parametrize(("address", "asked", "kind", "name"), MEANT)
def test_an_address_with_a_prefix_means(address: str, asked: str, kind: str, name: str) -> None:
    routing = Routing()
    assert routing.router.kind_of(routing.router.parse(address, asked)) == kind
    node = resolve(routing, address, asked)
    assert (node.kind, node.address) == (kind, name)
    assert resolve(routing, name, kind) is node
    assert routing.router.find_named(name, kind) is node


def test_a_prefix_finds_its_own_kind_alone() -> None:
    routing = Routing()
    topic, queue = routing.topic("a"), routing.queue("a")
    router = routing.router
    assert router.find_named("topic://a", "") is topic
    assert router.find_named("queue://a", "") is queue
    assert router.find_named("topic://a", "queue") is None
    assert router.find_named("queue://a", "topic") is None


def test_a_key_is_what_follows_the_name_behind_the_prefix() -> None:
    routing = Routing()
    topic = routing.topic("news")
    assert (
        routing.router.publishing_key(routing.router.parse("topic://news/sport"), topic) == "sport"
    )
    assert routing.router.publishing_key(routing.router.parse("topic://news"), topic) == ""


REFUSED = [
    pytest.param("topic://a", "queue", InvalidAddress, "capability says queue", id="another kind"),
    pytest.param("queue://a", "topic", InvalidAddress, "capability says topic", id="the other"),
    pytest.param("temp-queue://$tmp/x", "topic", InvalidAddress, "says topic", id="a temporary"),
    pytest.param("queue:///topic/durable/a", "", InvalidAddress, "is no queue", id="its class"),
    pytest.param("topic://", "", InvalidAddress, "the name of one topic", id="no name"),
    pytest.param("topic://queue://a", "", InvalidAddress, "of one topic", id="two prefixes"),
    pytest.param("topic://a.*", "", InvalidAddress, "is a pattern", id="a pattern to publish to"),
    pytest.param("temp-queue://a", "", NoSuchNode, "no temporary queue a", id="temp-queue"),
    pytest.param("temp-topic://a", "topic", NoSuchNode, "no temporary topic a", id="temp-topic"),
    pytest.param("temp-queue://$tmp/queue/a", "", NoSuchNode, "no temporary", id="a guess"),
    pytest.param("queue://$x", "", NoSuchNode, "begin with \\$", id="a reserved name"),
]


@pytest.mark.parametrize(("address", "kind", "error", "told"), REFUSED)
def test_refused(address: str, kind: str, error: type[RoutingError], told: str) -> None:
    routing = Routing()
    with pytest.raises(error, match=told):
        resolve(routing, address, kind)
    assert routing.router.names("queue") == routing.router.names("topic") == []


@pytest.mark.parametrize("name", ["a", "temp-queue://a"])
def test_a_temporary_prefix_names_no_other_node(name: str) -> None:
    """An existing queue that is not temporary is not found by such a prefix, whatever its name."""
    routing = Routing()
    routing.queue("a")
    with pytest.raises(NoSuchNode):
        resolve(routing, f"temp-queue://{name}" if name == "a" else name)


def test_a_temporary_prefix_names_a_temporary_node() -> None:
    routing = Routing()
    queue = routing.temporary_queue()
    assert resolve(routing, f"temp-queue://{queue.address}") is queue
    assert resolve(routing, f"queue://{queue.address}") is queue


def test_a_prefix_that_is_not_understood_is_part_of_the_name() -> None:
    routing = Routing(prefixes=Prefixes(("topic://",)))
    assert resolve(routing, "queue://a").address == "queue://a"
    assert resolve(routing, "topic://a").address == "a"
    off = Routing(prefixes=Prefixes(()))
    assert resolve(off, "queue://a").address == "queue://a"
    assert resolve(off, "topic://a", "topic").address == "topic:"


def test_an_address_that_is_literal_has_no_prefix() -> None:
    prefixes = Prefixes()
    prefixes.literal.add("queue://a")
    assert prefixes.canonical("queue://a") == "queue://a"
    assert prefixes.kind_meant("queue://a", "topic") == "topic"
    assert prefixes.canonical("queue://b") == "b"


def test_the_settings_know_every_prefix() -> None:
    assert tuple(KINDS) == PREFIXES


# -- reserved names


@pytest.mark.parametrize("kind", ["queue", "topic"])
@pytest.mark.parametrize("name", ["$cbs", "$x", "$management", "$"])
def test_a_reserved_name_is_not_found_and_not_made(name: str, kind: str) -> None:
    routing = Routing()
    with pytest.raises(NoSuchNode, match="broker's own"):
        resolve(routing, name, kind)
    assert routing.router.find_named(name, kind) is None


def test_a_stored_node_with_a_reserved_name_stays_usable() -> None:
    routing = Routing()
    made = routing.router.create(routing.router.parse("$cbs", "queue"), routing.batch)
    assert resolve(routing, "$cbs") is made
