"""Limits on nodes, and the deletion of unused nodes that clients created."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker.restore import restore
from broker.routing import population
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.errors import LimitReached
from broker.routing.population import IDS_AT_ONCE
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from broker.routing.topics.topic import Topic
from tests.support.notices import notice_texts
from tests.support.parties import RecordingConsumer, RecordingProducer
from tests.support.routing import Routing, encoded, new_message
from tests.unit.routing.queues.test_duplicates import send, window_of

AFTER_MS = 60_000
DELETING = AddressPolicy(auto_delete_after_ms=AFTER_MS)


def made(routing: Routing, address: str = "a", kind: str = "queue") -> Node:
    """Return a node that a client creates by naming it."""
    return routing.router.resolve(routing.router.parse(address, kind), routing.batch)


def wait(routing: Routing, milliseconds: int) -> None:
    """Let time pass, second by second, and run the timer queue each time."""
    for _ in range(milliseconds // 1000):
        routing.clock.advance(1000)
        routing.router.timer_queue.tick(routing.clock.now_ms())
        routing.router.pump(routing.batch)


# -- the limit


@pytest.mark.requirement("DST-02")
def test_clients_make_so_many_nodes_and_no_more() -> None:
    routing = Routing(auto_create_max=2)
    made(routing, "a")
    made(routing, "t", "topic")
    for kind in ("queue", "topic"):
        with pytest.raises(LimitReached, match="auto_create_max"):
            made(routing, "b", kind)
    assert made(routing, "a").address == "a"
    assert routing.temporary_queue().is_temporary
    assert made_by_operator(routing, "b").address == "b"
    routing.router.delete(routing.router.topics["t"], routing.batch)
    made(routing, "c")
    with pytest.raises(LimitReached):
        made(routing, "d")


def made_by_operator(routing: Routing, address: str) -> Node:
    return routing.router.create(routing.router.parse(address, "queue"), routing.batch)


def test_a_connections_own_nodes_do_not_count() -> None:
    routing = Routing(auto_create_max=1)
    for name in ("x", "y"):
        routing.router.resolve(
            routing.router.parse(f"/queue/tmp/{name}", ""), routing.batch, owner=1
        )
    assert not routing.router.population.auto_created


def test_the_limit_counts_over_a_restart() -> None:
    old = Routing(auto_create_max=2)
    made(old, "a")
    made_by_operator(old, "b")
    new = restarted(old, auto_create_max=2)
    made(new, "c")
    with pytest.raises(LimitReached):
        made(new, "d")


@pytest.mark.requirement("SEC-05")
def test_creators_count_over_a_restart() -> None:
    old = Routing()
    for address, creator in (("a", "ada"), ("b", "ada"), ("c", ""), ("d", None)):
        old.router.resolve(old.router.parse(address, "queue"), old.batch, creator=creator)
    old.router.resolve(old.router.parse("/queue/tmp/x", ""), old.batch, owner=1, creator="ada")
    old.router.create_temporary("queue", 1, creator="ada")
    old.router.queues["a"].put(new_message(encoded(b"kept"), durable=True), old.batch)
    assert old.router.population.created("ada") == 4
    size = old.router.population.created_bytes("ada")
    new = restarted(old)
    population = new.router.population
    assert (population.created("ada"), population.created("")) == (2, 1)
    assert population.created_bytes("ada") == size > 0
    new.router.delete(new.router.queues["b"], new.batch)
    assert population.created("ada") == 1


def restarted(
    old: Routing, *, auto_create_max: int = 0, policy: AddressPolicy | None = None
) -> Routing:
    old.commit()
    new = Routing(store=old.store, auto_create_max=auto_create_max, policy=policy)
    asyncio.run(restore(old.store, new.router, new.batch))
    return new


# -- deletion


def test_an_unused_node_is_deleted_once_it_has_been_so_for_long_enough() -> None:
    routing = Routing(policy=DELETING)
    made(routing, "a")
    made(routing, "t", "topic")
    made_by_operator(routing, "kept")
    wait(routing, AFTER_MS)
    assert sorted(routing.router.queues) == ["a", "kept"]
    wait(routing, 1000)
    assert sorted(routing.router.queues) == ["kept"]
    assert not routing.router.topics
    assert routing.stats.auto_deleted == 2
    assert notice_texts(routing.router.notices) == [
        "unused for auto_delete_after_ms, deleted: queue a, topic t"
    ]
    routing.commit()
    assert [node.address for node in asyncio.run(routing.store.nodes())] == ["kept"]


def test_by_default_none_is_ever_deleted_and_no_timer_runs() -> None:
    routing = Routing()
    idle = routing.router.timer_queue.next_deadline_ms()
    made(routing)
    assert routing.router.timer_queue.next_deadline_ms() == idle
    wait(routing, 10 * AFTER_MS)
    assert list(routing.router.queues) == ["a"]


def test_each_address_has_its_own_time() -> None:
    patterns = [("short.*", AddressPolicy(auto_delete_after_ms=5000))]
    routing = Routing(patterns=patterns, policy=DELETING)
    made(routing, "short.a")
    made(routing, "long")
    wait(routing, 10_000)
    assert list(routing.router.queues) == ["long"]


def consumer(routing: Routing, queue: Queue) -> None:
    routing.consumer(queue)


def browser(routing: Routing, queue: Queue) -> None:
    routing.browser(queue)


def producer(routing: Routing, queue: Queue) -> None:  # noqa: ARG001 - signature of all uses
    queue.producers.append(RecordingProducer())


def waiting(routing: Routing, queue: Queue) -> None:
    routing.put(queue, b"x")


def held(routing: Routing, queue: Queue) -> None:
    routing.put(queue, b"x")
    taker = routing.consumer(queue, 1)
    assert len(taker.entries) == 1


def scheduled(routing: Routing, queue: Queue) -> None:
    queue.put(new_message(deliver_at_ms=routing.clock.wall_ms() + 10**9), routing.batch)


def staged(routing: Routing, queue: Queue) -> None:  # noqa: ARG001 - signature of all uses
    queue.staged += 1


def leased(routing: Routing, queue: Queue) -> None:
    routing.router.leases.open(
        "job",
        queue,
        subscription=None,
        selector=None,
        ttl_ms=10**9,
        batch=routing.batch,
    )


USES: list[Callable[[Routing, Queue], None]] = [
    consumer,
    browser,
    producer,
    waiting,
    held,
    scheduled,
    staged,
    leased,
]


@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_node_in_use_is_not_deleted(use: Callable[[Routing, Queue], None]) -> None:
    routing = Routing(policy=DELETING)
    queue = made(routing)
    assert isinstance(queue, Queue)
    use(routing, queue)
    made(routing, "unused")
    wait(routing, 3 * AFTER_MS)
    assert list(routing.router.queues) == ["a"]


def test_remembered_ids_keep_a_node() -> None:
    policy = AddressPolicy(auto_delete_after_ms=AFTER_MS, duplicate_window=5)
    routing = Routing(policy=policy)
    queue = made(routing)
    assert isinstance(queue, Queue)
    assert queue.duplicates is not None
    queue.duplicates.put(new_message(with_id(), durable=False), routing.batch)
    routing.consumer(queue, 1, settles=True)
    queue.detach_consumer(queue.consumers.attached[0], queue, routing.batch)
    assert queue.contents() == 0
    wait(routing, 3 * AFTER_MS)
    assert list(routing.router.queues) == ["a"]
    queue.duplicates.clear(routing.batch)
    wait(routing, 2 * AFTER_MS)
    assert not routing.router.queues


def test_ids_that_are_too_old_keep_no_node() -> None:
    """No message comes that would make the node forget them: a check does, some at a time."""
    policy = AddressPolicy(
        auto_delete_after_ms=AFTER_MS, duplicate_window=20_000, duplicate_window_ms=AFTER_MS
    )
    routing = Routing(policy=policy)
    topic = made(routing, "t", "topic")
    send(routing, *range(IDS_AT_ONCE + 1), node=topic, durable=True)
    routing.commit()
    wait(routing, AFTER_MS - 1000)
    assert window_of(topic).size() == IDS_AT_ONCE + 1
    wait(routing, 1000)
    assert window_of(topic).size() == 1
    wait(routing, AFTER_MS)
    assert list(routing.router.topics) == ["t"]
    wait(routing, 2000)
    assert not routing.router.topics
    routing.commit()
    assert asyncio.run(routing.store.ids(0)) == []


def with_id() -> bytes:
    """Return a message with the message-id `one` in its properties, and a body."""
    return b"\x00\x53\x73\xc0\x06\x01\xa1\x03one\x00\x53\x75\xa0\x01x"


def test_a_topic_with_a_subscription_is_not_deleted() -> None:
    routing = Routing(policy=DELETING)
    topic = made(routing, "t", "topic")
    assert isinstance(topic, Topic)
    subscriber = RecordingConsumer()
    queue = routing.subscribe(topic, subscriber)
    wait(routing, 3 * AFTER_MS)
    assert list(routing.router.topics) == ["t"]
    routing.unsubscribe(queue, subscriber)
    wait(routing, AFTER_MS)
    assert list(routing.router.topics) == ["t"]
    wait(routing, 2000)
    assert not routing.router.topics


def pass_a_message(routing: Routing, queue: Queue) -> None:
    """Deliver a message, as from the relay, to a consumer that then leaves."""
    routing.put(queue, b"x")
    taker = routing.consumer(queue, 1, settles=True)
    queue.detach_consumer(taker, queue, routing.batch)


def come_and_go(_: Routing, queue: Queue) -> None:
    queue.note_use_ended()


@pytest.mark.parametrize("use", [pass_a_message, come_and_go])
def test_use_between_two_looks_begins_the_time_anew(
    use: Callable[[Routing, Queue], None],
) -> None:
    routing = Routing(policy=DELETING)
    queue = made(routing)
    assert isinstance(queue, Queue)
    wait(routing, AFTER_MS - 1000)
    use(routing, queue)
    wait(routing, AFTER_MS)
    assert list(routing.router.queues) == ["a"]
    wait(routing, 2000)
    assert not routing.router.queues


@pytest.mark.requirement("DST-02")
def test_a_restart_knows_which_nodes_clients_made() -> None:
    old = Routing(policy=DELETING)
    made(old, "a")
    made_by_operator(old, "kept")
    new = restarted(old, policy=DELETING)
    wait(new, AFTER_MS)
    assert sorted(new.router.queues) == ["a", "kept"]
    wait(new, 1000)
    assert list(new.router.queues) == ["kept"]


@pytest.mark.incompatible_with_mypyc
def test_a_look_is_bounded_and_gets_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population, "LOOKED_AT_ONCE", 3)
    routing = Routing(policy=AddressPolicy(auto_delete_after_ms=1))
    for number in range(10):
        made(routing, f"q{number}")
    left = []
    for _ in range(8):
        wait(routing, 1000)
        left.append(len(routing.router.queues))
    assert all(before - after <= 3 for before, after in zip([10, *left], left, strict=False))
    assert left[-1] == 0
