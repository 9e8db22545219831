"""Topics by address: with a key, by a pattern, and while topics are created and deleted."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.errors import InvalidAddress, LimitReached, NoSuchNode, RoutingError
from broker.routing.queues.queue import Queue
from tests.support.routing import Routing, bind, new_message

CLOSED = AddressPolicy(auto_create=False)


def subscribe(routing: Routing, address: str) -> Queue:
    """Return the queue of a subscription to `address`."""
    queue = Queue(
        address=address,
        policy=AddressPolicy(),
        context=routing.router.context,
        is_subscription=True,
    )
    bind(routing.router, address, queue, routing.batch)
    return queue


def publish(routing: Routing, address: str) -> None:
    """Publish a message to `address` as a sending link does."""
    node = routing.router.resolve(routing.router.parse(address, "topic"), routing.batch)
    key = routing.router.publishing_key(routing.router.parse(address), node)
    node.put(new_message(address.encode(), key=key), routing.batch)


def held(routing: Routing, queue: Queue) -> list[str]:
    consumer = routing.consumer(queue, 99)
    return [body.decode() for body in consumer.taken]


# -- what an address means

MEANINGS = {
    "a topic's, with a key": ("", "t/k", "topic", "topic", "t", "k"),
    "a topic's, with a key with a slash": ("", "t/k/l", "topic", "topic", "t", "k/l"),
    "a topic's, with an empty key": ("", "t/", "topic", "topic", "t", ""),
    "a queue's name has slashes": ("", "t/k", "queue", "queue", "t/k", ""),
    "an unknown name is a queue's": ("", "t/k", "", "queue", "t/k", ""),
    "an existing topic's, with a key": ("topic t", "t/k", "", "topic", "t", "k"),
    "an existing queue comes first": ("topic t,queue t/k", "t/k", "", "queue", "t/k", ""),
    "a queue beside the topic": ("topic t", "t/k", "queue", "queue", "t/k", ""),
    "a queue is no exchange": ("queue t", "t/k", "", "queue", "t/k", ""),
    "a queue's name may be a pattern": ("", "a.*.#", "queue", "queue", "a.*.#", ""),
    "an unknown pattern is a queue's name": ("", "a.*.#", "", "queue", "a.*.#", ""),
    "a queue may be named *": ("queue *", "*", "", "queue", "*", ""),
}


@pytest.mark.requirement("DST-05", "DST-06")
@pytest.mark.parametrize(
    ("existing", "address", "kind", "expected_kind", "name", "key"),
    MEANINGS.values(),
    ids=MEANINGS.keys(),
)
def test_an_address_means(
    existing: str, address: str, kind: str, expected_kind: str, name: str, key: str
) -> None:
    routing = Routing()
    for each in filter(None, existing.split(",")):
        of_kind, of_name = each.split()
        routing.router.create(routing.router.parse(of_name, of_kind), routing.batch)
    assert routing.router.kind_of(routing.router.parse(address, kind)) == expected_kind
    node = routing.router.resolve(routing.router.parse(address, kind), routing.batch)
    assert (node.kind, node.address) == (expected_kind, name)
    assert routing.router.resolve(routing.router.parse(address, kind), routing.batch) is node
    assert routing.router.publishing_key(routing.router.parse(address), node) == key


@pytest.mark.requirement("DST-05")
def test_a_temporary_topic_may_have_a_key_too() -> None:
    routing = Routing()
    topic = routing.router.create_temporary("topic", 1)
    assert (
        routing.router.resolve(routing.router.parse(f"{topic.address}/k", "topic"), routing.batch)
        is topic
    )
    assert routing.router.publishing_key(routing.router.parse(f"{topic.address}/k"), topic) == "k"


REFUSED_TO_PUBLISHERS = {
    "a star for a topic": "a.*",
    "a hash for a topic": "#",
    "a star in the key": "t/a.*",
    "a hash in the key": "t/#",
    "no topic before the key": "/k",
    "a key of too many words": "t/" + "." * 32,
    "a topic of too many words": "." * 32,
    "a key too long": "t/" + "k" * 254,
    "a control character in the key": "t/\n",
}


@pytest.mark.requirement("DST-06")
@pytest.mark.parametrize("exists", [True, False], ids=["an existing topic", "a new topic"])
@pytest.mark.parametrize(
    "address", REFUSED_TO_PUBLISHERS.values(), ids=REFUSED_TO_PUBLISHERS.keys()
)
def test_nobody_publishes_to(address: str, exists: bool) -> None:
    routing = Routing()
    if exists:
        routing.topic()
    with pytest.raises(InvalidAddress):
        publish(routing, address)


@pytest.mark.requirement("DST-06")
def test_a_topic_cannot_be_made_with_a_name_that_means_something_else() -> None:
    routing = Routing()
    for name in ("t/k", "a.*", "#", "." * 32):
        with pytest.raises(InvalidAddress):
            routing.router.create(routing.router.parse(name, "topic"), routing.batch)
    assert not routing.router.topics


@pytest.mark.requirement("DST-05")
@pytest.mark.parametrize("address", ["closed", "closed/k", "closed/#"])
def test_a_topic_that_may_not_be_made_is_not_found(address: str) -> None:
    routing = Routing(patterns=[("closed", CLOSED)])
    with pytest.raises(NoSuchNode):
        subscribe(routing, address)
    with pytest.raises(NoSuchNode):
        publish(routing, "closed/k")


REFUSED_TO_SUBSCRIBERS: dict[str, tuple[str, type[RoutingError]]] = {
    "three hashes": ("#.a.#.b.#", InvalidAddress),
    "three hashes in the key": ("t/#.a.#.b.#", InvalidAddress),
    "three hashes in the key of a pattern": ("a.*/#.a.#.b.#", InvalidAddress),
    "too many words": ("*" + "." * 32, InvalidAddress),
    "no topic before the key": ("/#", InvalidAddress),
    "too long": ("t/" + "k" * 254, InvalidAddress),
    "temporary topics": ("$tmp/topic/x.#", NoSuchNode),
    "a temporary topic that is not there": ("$tmp/topic/x/k", NoSuchNode),
}


@pytest.mark.requirement("DST-06")
@pytest.mark.parametrize(
    ("address", "expected"),
    REFUSED_TO_SUBSCRIBERS.values(),
    ids=REFUSED_TO_SUBSCRIBERS.keys(),
)
def test_nobody_subscribes_to(address: str, expected: type[RoutingError]) -> None:
    routing = Routing()
    with pytest.raises(expected):
        subscribe(routing, address)
    assert (routing.router.bindings, len(routing.router.topics)) == (0, 0)


# -- keys


@pytest.mark.requirement("DST-05", "DST-06")
def test_a_binding_key_takes_what_it_stands_for() -> None:
    routing = Routing()
    exact, all_keys = subscribe(routing, "t/a.b"), subscribe(routing, "t")
    star, hashed = subscribe(routing, "t/a.*"), subscribe(routing, "t/#.c")
    for address in ("t/a.b", "t/a.b.c", "t", "u/a.b"):
        publish(routing, address)
    assert held(routing, exact) == ["t/a.b"]
    assert held(routing, all_keys) == ["t/a.b", "t/a.b.c", "t"]
    assert held(routing, star) == ["t/a.b"]
    assert held(routing, hashed) == ["t/a.b.c"]


# -- patterns


@pytest.mark.requirement("DST-06")
def test_a_pattern_meets_the_topics_there_are_and_those_to_come() -> None:
    routing = Routing()
    publish(routing, "news.eu")
    queue = subscribe(routing, "news.*")
    for address in ("news.eu", "news.us", "news", "news.eu.fr", "olds.eu"):
        publish(routing, address)
    assert held(routing, queue) == ["news.eu", "news.us"]


@pytest.mark.requirement("DST-06")
def test_a_pattern_may_have_a_key_behind_it() -> None:
    routing = Routing()
    queue = subscribe(routing, "news.#/sport.*")
    for address in ("news/sport.ball", "news.eu/sport.ball", "news.eu/weather", "news.eu"):
        publish(routing, address)
    assert held(routing, queue) == ["news/sport.ball", "news.eu/sport.ball"]


@pytest.mark.requirement("DST-06")
def test_a_pattern_makes_no_topic_and_needs_none() -> None:
    routing = Routing(policy=CLOSED)
    queue = subscribe(routing, "news.*")
    assert not routing.router.topics
    routing.router.create(routing.router.parse("news.eu", "topic"), routing.batch)
    publish(routing, "news.eu")
    assert held(routing, queue) == ["news.eu"]


@pytest.mark.requirement("DST-06", "TMP-04")
def test_a_pattern_never_meets_a_temporary_topic() -> None:
    routing = Routing()
    before = routing.router.create_temporary("topic", 1)
    queue = subscribe(routing, "#")
    after = routing.router.create_temporary("topic", 1)
    publish(routing, before.address)
    publish(routing, after.address)
    publish(routing, "t")
    assert held(routing, queue) == ["t"]


@pytest.mark.requirement("DST-06")
def test_a_subscription_by_pattern_outlives_the_topics_it_has_met() -> None:
    routing = Routing()
    queue = subscribe(routing, "news.*")
    consumer = routing.consumer(queue)
    publish(routing, "news.eu")
    routing.router.delete(routing.topic("news.eu"), routing.batch)
    assert not queue.state.is_deleted
    assert not consumer.lost_its_node
    publish(routing, "news.eu")
    routing.give(queue, consumer, 9)
    assert consumer.taken == [b"news.eu", b"news.eu"]


@pytest.mark.requirement("DST-06")
def test_what_is_unbound_gets_nothing_more() -> None:
    routing = Routing()
    by_pattern, by_name = subscribe(routing, "#"), subscribe(routing, "a/k")
    publish(routing, "a/k")
    for queue in (by_pattern, by_name):
        routing.router.unbind(queue)
        routing.router.unbind(queue)
    publish(routing, "a/k")
    publish(routing, "b")
    assert held(routing, by_pattern) == held(routing, by_name) == ["a/k"]
    assert (routing.router.bindings, routing.router.wildcards.count()) == (0, 0)
    assert not by_pattern.topics


def test_bindings_are_limited_and_those_of_patterns_too() -> None:
    routing = Routing(bindings_max=3)
    subscribe(routing, "a")
    subscribe(routing, "*")
    assert routing.router.bindings == 3
    for address in ("a", "b", "#", "x.*"):
        with pytest.raises(LimitReached, match="3 bindings"):
            subscribe(routing, address)
    with pytest.raises(LimitReached):
        routing.topic("b")
    assert list(routing.router.topics) == ["a"]
    assert routing.router.bindings == 3
    routing.router.delete(routing.topic("a"), routing.batch)
    assert routing.router.bindings == 1
    subscribe(routing, "*")


# -- limits of several queues


@pytest.mark.requirement("DST-06")
def test_a_full_subscription_refuses_the_message_for_all_it_would_go_to() -> None:
    routing = Routing()
    others = subscribe(routing, "a.b")
    small = Queue(
        address="small",
        policy=AddressPolicy(max_messages=1),
        context=routing.router.context,
        is_subscription=True,
    )
    bind(routing.router, "a.*/k", small, routing.batch)
    publish(routing, "a.b/k")
    with pytest.raises(RoutingError, match="holds its 1 messages"):
        publish(routing, "a.b/k")
    publish(routing, "a.b/other")
    assert (others.backlogs.waiting, small.backlogs.waiting) == (2, 1)
    routing.router.unbind(small)
    publish(routing, "a.b/k")
    assert others.backlogs.waiting == 3


def test_the_backlog_of_a_topic_counts_what_its_subscribers_have_from_others() -> None:
    routing = Routing()
    queue = subscribe(routing, "*")
    routing.consumer(queue)
    publish(routing, "a")
    publish(routing, "b")
    publish(routing, "b")
    assert (routing.topic("a").backlog(), routing.topic("b").backlog()) == (3, 3)
