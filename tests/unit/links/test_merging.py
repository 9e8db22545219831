"""Addresses with a prefix that older brokers stored, and how a start merges their contents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.app import App
from broker.links import merging as module
from broker.links.merging import Merging
from broker.routing.addresses.address import Address
from broker.routing.entries.record_mapping import HELD_PLACES
from broker.routing.queues.node import Node
from broker.routing.router import Router
from broker.routing.topics.subscription import (
    SubscriptionExpiry,
    SubscriptionSpec,
    SubscriptionTraits,
    row_of,
)
from broker.settings import given_settings
from storage.batch import Batch
from storage.leases import StoredLease
from storage.records import StoredMessage, StoredNode
from storage.sql.sqlite.store import SqliteStore
from tests.support.notices import notice_texts
from tests.support.routing import Routing, begin_subscription, encoded, new_message
from tests.support.stored_files import flip

Act = Callable[[Router, Batch], None]

NEVER_DUE_MS = 10**15


def app_on(folder: Path, **given: object) -> App:
    return App(
        given_settings(
            port=0,
            users_file=folder / "users",
            store=f"sqlite:///{folder / 'store.db'}",
            **given,
        )
    )


def run(folder: Path, act: Act, **given: object) -> list[str]:
    """Start a broker on the store in `folder`, let it `act`, stop it; return its notices."""

    async def started() -> list[str]:
        app = app_on(folder, **given)
        await app.start()
        notices = list(notice_texts(app.container.router.notices))
        act(app.container.router, app.journal.batch)
        app.container.run_round()
        await app.stop()
        return notices

    return asyncio.run(started())


def old(folder: Path, act: Act, **given: object) -> None:
    """Do as `run` with a broker that understands no prefixes."""
    run(folder, act, address_prefixes=[], **given)


def put(node: Node, batch: Batch, *texts: bytes, deliver_at_ms: int = 0) -> None:
    for text in texts:
        node.put(new_message(encoded(text), durable=True, deliver_at_ms=deliver_at_ms), batch)


def sent(address: str, *texts: bytes, kind: str = "queue") -> Act:
    return lambda router, batch: put(
        router.resolve(router.parse(address, kind), batch), batch, *texts
    )


def stored(folder: Path) -> tuple[set[tuple[str, str]], dict[str, list[bytes]]]:
    """Return the nodes in the store, and the bodies in each queue in their order."""

    async def read() -> tuple[list[StoredNode], list[StoredMessage]]:
        store = SqliteStore(folder / "store.db")
        await store.open()
        nodes, messages = await store.nodes(), await store.messages(0)
        await store.close()
        return nodes, messages

    nodes, messages = asyncio.run(read())
    found: dict[str, list[bytes]] = {}
    for message in sorted(messages, key=lambda each: int(each.position)):
        found.setdefault(message.queue, []).append(message.encoded[5:])
    assert len({(each.queue, each.position) for each in messages}) == len(messages)
    return {(node.kind, node.address) for node in nodes}, found


def nothing(router: Router, batch: Batch) -> None:
    """Do nothing between start and stop."""


MERGED = [
    pytest.param("queue://a", "a", id="a queue"),
    pytest.param("topic://a", "a", id="a queue that was called like a topic, for want of a word"),
    pytest.param("temp-queue://a", "a", id="a queue that was called like a temporary one"),
    pytest.param("queue:///durable/queue/a", "/queue/durable/a", id="a class of addresses"),
]


@pytest.mark.parametrize(("address", "name"), MERGED)
def test_the_messages_of_a_queue_come_behind_those_of_the_one_that_is_meant(
    tmp_path: Path, address: str, name: str
) -> None:
    old(tmp_path, sent(name, b"1", b"2"))
    old(tmp_path, sent(address, b"3", b"4"))
    seen: list[int] = []
    notices = run(
        tmp_path, lambda router, _: seen.append(int(router.queues[name].backlogs.waiting))
    )
    assert seen == [4]
    assert stored(tmp_path) == ({("queue", name)}, {name: [b"1", b"2", b"3", b"4"]})
    assert any(f"queue {address}" in notice and "2 messages" in notice for notice in notices)
    assert run(tmp_path, sent(address, b"5")) == [] if address.startswith("queue") else True


def test_a_queue_that_nobody_has_yet_is_made_though_clients_may_not(tmp_path: Path) -> None:
    old(tmp_path, sent("queue://a", b"1"))
    run(tmp_path, nothing, auto_create=False)
    assert stored(tmp_path) == ({("queue", "a")}, {"a": [b"1"]})


def test_more_than_one_portion_keeps_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOVED_AT_ONCE", 3)
    texts = [b"%d" % number for number in range(10)]
    old(tmp_path, sent("queue://a", *texts))
    run(tmp_path, nothing)
    assert stored(tmp_path)[1] == {"a": texts}


@pytest.mark.incompatible_with_mypyc
def test_a_start_that_was_killed_on_the_way_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [b"%d" % number for number in range(5)]
    old(tmp_path, sent("queue://a", *texts))

    async def half() -> None:
        """Commit the first portion, and nothing after it, as if the process ended here."""
        monkeypatch.setattr(module, "MOVED_AT_ONCE", 2)
        store = SqliteStore(tmp_path / "store.db")
        await store.open()
        routing = Routing()
        routing.router.context.number_from(store.first_number)
        nodes = await store.nodes()
        for node in nodes:
            routing.router.bring_back(node)
        merging = Merging(routing.router, routing.batch, lambda _: None)
        merging.nodes(nodes, set())
        places = await store.places(0)
        for queue, place, number in zip(
            places.queues, places.positions, places.numbers, strict=True
        ):
            assert merging.takes(queue, place, number)
        merge, first = next(iter(merging.portions()))
        found = await store.load(sorted(number for _, number in first))
        await store.commit(merging.move(merge, first, found))
        await store.close()

    asyncio.run(half())
    assert stored(tmp_path)[1] == {"a": texts[:2], "queue://a": texts[2:]}
    run(tmp_path, nothing)
    assert stored(tmp_path) == ({("queue", "a")}, {"a": texts})


def test_damaged_messages_stay_in_quarantine_under_the_old_name(tmp_path: Path) -> None:
    old(tmp_path, sent("queue://a", b"1", b"2", b"3"))
    flip(tmp_path / "store.db", 2)
    lists: list[list[str]] = []
    for _ in range(3):
        notices = run(tmp_path, lambda router, _: lists.append(router.names("queue")))
        assert any("stay in quarantine as those of queue://a" in notice for notice in notices)
    assert lists == [["a"]] * 3

    async def quarantined() -> list[str]:
        store = SqliteStore(tmp_path / "store.db")
        await store.open()
        found = await store.quarantined_messages(0, 10)
        await store.close()
        return [each.queue for each in found]

    assert asyncio.run(quarantined()) == ["queue://a"]
    assert stored(tmp_path)[1] == {"a": [b"1", b"3"]}


def test_what_waits_for_its_delivery_time_goes_on_waiting(tmp_path: Path) -> None:
    def schedule(router: Router, batch: Batch) -> None:
        queue = router.resolve(router.parse("queue://a", "queue"), batch)
        put(queue, batch, b"later", deliver_at_ms=NEVER_DUE_MS)

    old(tmp_path, sent("a", b"1"))
    old(tmp_path, schedule)
    held: list[int] = []
    for _ in range(2):
        run(tmp_path, lambda router, _: held.append(len(router.queues["a"].state.scheduled())))
    assert held == [1, 1]
    assert stored(tmp_path)[1] == {"a": [b"1", b"later"]}


def test_what_is_held_back_stays_held_back() -> None:
    """A held message, which could not be dead-lettered, has a place above HELD_PLACES."""
    routing = Routing()
    node = StoredNode(address="queue://a", kind="queue")
    routing.router.bring_back(node)
    later: list[StoredMessage] = []
    merging = Merging(routing.router, routing.batch, later.append)
    merging.nodes([node], set())
    records = [record(1, 14), record(2, HELD_PLACES + 24)]
    for each in records:
        merging.takes(each.queue, int(each.position), int(each.number))
    routing.router.context.number_from(3)
    (portion,) = merging.portions()
    batch = merging.move(*portion, records)
    places = [int(each.position) for each in batch.appended if each is not None]
    assert places == [4, HELD_PLACES + 14]
    assert [int(each.number) for each in later] == [4]
    assert routing.queue("a").backlogs.waiting == 1


def record(number: int, place: int) -> StoredMessage:
    """Return a stored message of the queue `queue://a` at this place."""
    return StoredMessage(
        number=number,
        queue="queue://a",
        position=place,
        encoded=encoded(b"x"),
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
    )


def test_what_may_have_been_delivered_says_so() -> None:
    routing = Routing()
    node = StoredNode(address="queue://a", kind="queue")
    routing.router.bring_back(node)
    routing.router.queues["queue://a"].persistence.restore(19)
    merging = Merging(routing.router, routing.batch, lambda _: None)
    merging.nodes([node], set())
    records = [record(1, 14), record(2, 24)]
    for each in records:
        merging.takes(each.queue, int(each.position), int(each.number))
    routing.router.context.number_from(3)
    (portion,) = merging.portions()
    batch = merging.move(*portion, records)
    moved = [each for each in batch.appended if each is not None]
    assert [(int(each.number), int(each.delivery_count)) for each in moved] == [(3, 1), (4, 0)]
    assert batch.removed == [1, 2]


def test_repeats_are_known_behind_the_merge(tmp_path: Path) -> None:
    def send_again(router: Router, batch: Batch) -> None:
        node = router.resolve(router.parse("queue://a", "queue"), batch)
        assert node.duplicates is not None
        message = new_message(encoded_with_id(), durable=True)
        node.duplicates.put(message, batch)

    old(tmp_path, send_again, duplicate_window=10)
    for _ in range(2):
        run(tmp_path, send_again, duplicate_window=10)
    assert len(stored(tmp_path)[1]["a"]) == 1


def encoded_with_id() -> bytes:
    """Return a message with the message-id `one` in its properties."""
    return b"\x00\x53\x73\xc0\x06\x01\xa1\x03one" + encoded(b"x")


# -- topics


def subscribed(address: str, name: str = "sub") -> Act:
    """Return an act that begins a durable subscription to `address`."""

    def subscribe(router: Router, batch: Batch) -> None:
        row = row_of(SubscriptionTraits(is_durable=True), link_name=name, container_id="client")
        terms = SubscriptionExpiry(durability=2, expiry_policy="never")
        begin_subscription(router, row, SubscriptionSpec(Address(address)), terms, batch)

    return subscribe


def published(address: str, *texts: bytes) -> Act:
    """Return an act that publishes messages to `address`."""

    def publish(router: Router, batch: Batch) -> None:
        topic = router.resolve(router.parse(address, "topic"), batch)
        for text in texts:
            key = router.publishing_key(router.parse(address), topic)
            topic.put(new_message(encoded(text), durable=True, key=key), batch)

    return publish


BOUND = [
    pytest.param("topic://news", "news", "news", id="as Camel writes it"),
    pytest.param("topic://news/sport", "news/sport", "news", id="with a key"),
    pytest.param("topic://news.*", "news.de", "news.de", id="a pattern"),
    pytest.param("queue://news", "news", "news", id="a topic by the wrong prefix"),
]


@pytest.mark.parametrize("auto_create", [True, False])
@pytest.mark.parametrize(("address", "to", "topic"), BOUND)
def test_a_stored_subscription_meets_its_topic(
    tmp_path: Path, address: str, to: str, topic: str, auto_create: bool
) -> None:
    old(tmp_path, subscribed(address))
    old(tmp_path, published(address.replace("*", "de"), b"1"))
    counts: list[int] = []

    def publish(router: Router, batch: Batch) -> None:
        if topic not in router.topics:
            router.create(router.parse(topic, "topic"), batch)
        published(to, b"2")(router, batch)
        (subscription,) = router.subscriptions.named.values()
        counts.append(int(subscription.queue.backlogs.waiting))
        assert "topic:" not in router.topics

    notices = run(tmp_path, publish, auto_create=auto_create)
    assert counts == [2]
    if address.startswith("topic"):
        assert any("topic topic:" in notice and "1 stored" in notice for notice in notices)
    nodes, messages = stored(tmp_path)
    assert nodes == {("topic", topic)}
    assert [sorted(each) for each in messages.values()] == [[b"1", b"2"]]


def test_a_topic_of_that_name_that_is_subscribed_to_by_it_stays(tmp_path: Path) -> None:
    old(tmp_path, subscribed("topic:/k"))
    assert run(tmp_path, nothing) == []
    assert stored(tmp_path)[0] == {("topic", "topic:")}


def test_a_declared_topic_of_that_name_stays(tmp_path: Path) -> None:
    declared = {"topic": ({"name": "topic:"},)}
    old(tmp_path, nothing, **declared)
    run(tmp_path, nothing, **declared)
    assert stored(tmp_path)[0] == {("topic", "topic:")}


# -- nodes that cannot be merged

KEPT = [
    pytest.param("queue://$x", id="a reserved name"),
    pytest.param("queue://queue://a", id="two prefixes"),
    pytest.param("queue:///queue/transient/a", id="a class that stores nothing"),
]


@pytest.mark.parametrize("address", KEPT)
def test_a_queue_that_cannot_be_merged_stays_usable_by_its_name(
    tmp_path: Path, address: str
) -> None:
    old(tmp_path, sent(address, b"1"))
    notices = run(tmp_path, sent(address, b"2"))
    assert any(f"queue {address} keeps its name" in notice for notice in notices)
    assert stored(tmp_path)[1] == {address: [b"1", b"2"]}


def test_a_queue_with_a_lease_is_merged_once_that_is_gone(tmp_path: Path) -> None:
    def lease(router: Router, batch: Batch) -> None:
        sent("queue://a", b"1")(router, batch)
        batch.lease_changes().keep(
            StoredLease(
                name="job",
                queue="queue://a",
                selector="",
                fencing_token=1,
                ttl_ms=60_000,
                batch_number=0,
                settled=0,
            )
        )

    old(tmp_path, lease)
    notices = run(tmp_path, sent("queue://a", b"2"))
    assert any("there is a lease on it" in notice for notice in notices)
    assert stored(tmp_path)[1] == {"queue://a": [b"1", b"2"]}

    def release(router: Router, batch: Batch) -> None:
        router.leases.release("job", batch)

    run(tmp_path, release)
    run(tmp_path, nothing)
    assert stored(tmp_path) == ({("queue", "a")}, {"a": [b"1", b"2"]})


def test_a_subscription_whose_topic_cannot_be_keeps_its_address(tmp_path: Path) -> None:
    old(tmp_path, subscribed("topic:///x"))
    notices = run(tmp_path, published("topic:///x", b"1"))
    assert any("keeps that address" in notice for notice in notices)
    assert stored(tmp_path)[0] == {("topic", "topic:")}
