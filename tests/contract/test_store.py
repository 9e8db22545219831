"""What every filling of `storage.api` means; a new store is one more parameter of `store`."""

from collections.abc import AsyncIterator

import pytest

from storage.api import Batch, Store, StoreError
from storage.memory import MemoryStore
from storage.records import StoredMessage, StoredNode

STORES = {"memory": MemoryStore}

QUEUE = StoredNode(address="a", kind="queue")
TOPIC = StoredNode(address="a", kind="topic")


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    opened = STORES[request.param]()
    yield opened
    await opened.close()


def stored(position: int, encoded: bytes = b"x", *, deliver_at_ms: int = 0) -> StoredMessage:
    return StoredMessage(
        number=position,
        position=position,
        encoded=encoded,
        priority=position % 10,
        ttl_ms=60_000,
        arrived_ms=1_750_000_000_000,
        expires_at_ms=1_750_000_060_000,
        deliver_at_ms=deliver_at_ms,
        delivery_count=0,
    )


async def positions(store: Store, queue: str = "a") -> list[int]:
    return [int(message.position) for message in await store.messages(queue)]


async def nodes(store: Store) -> list[tuple[str, str]]:
    return [(node.kind, node.address) for node in await store.nodes()]


async def holding(store: Store, *kept: int) -> Batch:
    """A new batch for a store that has the queue `a` with messages at these positions."""
    batch = store.batch()
    batch.add_node(QUEUE)
    for position in kept:
        batch.append("a", stored(position))
    await store.commit(batch)
    return store.batch()


async def test_a_new_store_is_empty(store: Store) -> None:
    assert await store.nodes() == []
    assert await store.messages("a") == []
    assert store.name


async def test_nothing_is_kept_before_the_commit(store: Store) -> None:
    batch = store.batch()
    batch.add_node(QUEUE)
    batch.append("a", stored(1))
    assert await store.nodes() == []
    assert await store.messages("a") == []


@pytest.mark.requirement("DST-14", "PRD-05")
async def test_a_message_is_kept_as_it_came(store: Store) -> None:
    batch = await holding(store)
    everything = bytes(range(256))
    batch.append("a", stored(2**53 + 7, everything))
    await store.commit(batch)
    (message,) = await store.messages("a")
    assert (message.position, message.encoded, message.priority) == (2**53 + 7, everything, 9)
    assert (message.ttl_ms, message.arrived_ms) == (60_000, 1_750_000_000_000)
    assert (message.expires_at_ms, message.deliver_at_ms) == (1_750_000_060_000, 0)
    assert message.delivery_count == 0


@pytest.mark.requirement("DLY-03")
async def test_a_message_that_falls_due_takes_its_place_and_changes_nothing_else(
    store: Store,
) -> None:
    batch = await holding(store)
    for position in (1, 2, 3):
        batch.append("a", stored(position, b"%d" % position, deliver_at_ms=1_750_000_001_000))
    batch.append("a", stored(40))
    batch.fall_due(2, 52)
    batch.fall_due(99, 62)
    await store.commit(batch)
    later = store.batch()
    later.fall_due(1, 61)
    later.count(1, 1)
    later.remove(3)
    await store.commit(later)
    too_late = store.batch()
    too_late.fall_due(3, 73)
    await store.commit(too_late)
    assert await positions(store) == [40, 52, 61]
    _, second, first = await store.messages("a")
    assert (second.encoded, second.deliver_at_ms, second.delivery_count) == (b"2", 0, 0)
    assert (first.encoded, first.deliver_at_ms, first.delivery_count) == (b"1", 0, 1)
    assert (first.priority, first.ttl_ms) == (1, 60_000)
    assert (first.arrived_ms, first.expires_at_ms) == (1_750_000_000_000, 1_750_000_060_000)
    assert await positions(store, "nowhere") == []


@pytest.mark.requirement("DLY-03")
async def test_a_delivery_time_outlasts_other_changes(store: Store) -> None:
    batch = await holding(store)
    batch.append("a", stored(1, deliver_at_ms=1_750_000_001_000))
    batch.rewrite(1, b"new")
    batch.count(1, 2)
    await store.commit(batch)
    (message,) = await store.messages("a")
    assert (message.deliver_at_ms, message.encoded) == (1_750_000_001_000, b"new")


async def test_a_message_that_falls_due_and_is_consumed_in_one_batch_is_gone(store: Store) -> None:
    batch = await holding(store, 1)
    batch.append("a", stored(2, deliver_at_ms=1_750_000_001_000))
    batch.fall_due(2, 12)
    batch.remove(2)
    await store.commit(batch)
    assert await positions(store) == [1]


async def test_messages_come_by_position_whenever_they_were_added(store: Store) -> None:
    batch = await holding(store, 30, 9)
    batch.append("a", stored(17))
    batch.append("b", stored(1))
    await store.commit(batch)
    assert await positions(store) == [9, 17, 30]
    assert await positions(store, "b") == [1]


async def test_a_removed_message_is_gone_and_may_be_removed_again(store: Store) -> None:
    batch = await holding(store, 1, 2)
    batch.remove(1)
    batch.remove(1)
    batch.remove(99)
    await store.commit(batch)
    assert await positions(store) == [2]


async def test_a_message_that_comes_and_goes_in_one_batch_is_gone(store: Store) -> None:
    batch = await holding(store)
    batch.append("a", stored(1))
    batch.count(1, 1)
    batch.remove(1)
    await store.commit(batch)
    assert await positions(store) == []


async def test_new_bytes_change_nothing_else(store: Store) -> None:
    batch = await holding(store, 1, 2)
    batch.count(2, 3)
    batch.rewrite(2, b"old")
    batch.rewrite(2, b"new")
    batch.rewrite(99, b"new")
    await store.commit(batch)
    first, second = await store.messages("a")
    assert (first.encoded, second.encoded) == (b"x", b"new")
    assert (second.position, second.priority, second.delivery_count) == (2, 2, 3)
    assert (second.ttl_ms, second.arrived_ms) == (60_000, 1_750_000_000_000)
    assert await positions(store, "nowhere") == []


async def test_new_bytes_alone_are_a_change(store: Store) -> None:
    batch = await holding(store, 1)
    batch = store.batch()
    batch.rewrite(1, b"new")
    assert not batch.is_empty()


@pytest.mark.requirement("RCV-01")
async def test_a_count_changes_nothing_else(store: Store) -> None:
    batch = await holding(store, 1, 2)
    batch.count(2, 1)
    batch.count(2, 3)
    batch.count(99, 1)
    await store.commit(batch)
    first, second = await store.messages("a")
    assert (first.delivery_count, second.delivery_count) == (0, 3)
    assert (second.position, second.encoded, second.priority) == (2, b"x", 2)
    assert (second.ttl_ms, second.arrived_ms) == (60_000, 1_750_000_000_000)
    assert await positions(store, "nowhere") == []


@pytest.mark.requirement("DST-02")
async def test_nodes_come_in_the_order_in_which_they_were_added(store: Store) -> None:
    batch = store.batch()
    for address in ("z", "a", "m"):
        batch.add_node(StoredNode(address=address, kind="queue"))
    await store.commit(batch)
    again = store.batch()
    again.add_node(StoredNode(address="m", kind="queue"))
    again.add_node(StoredNode(address="z", kind="queue"))
    await store.commit(again)
    assert await nodes(store) == [("queue", "z"), ("queue", "a"), ("queue", "m")]


@pytest.mark.requirement("DST-01")
async def test_a_queue_and_a_topic_of_one_name_are_two_nodes(store: Store) -> None:
    batch = await holding(store, 1)
    batch.add_node(TOPIC)
    await store.commit(batch)
    assert await nodes(store) == [("queue", "a"), ("topic", "a")]
    batch = store.batch()
    batch.remove_node(TOPIC)
    await store.commit(batch)
    assert await nodes(store) == [("queue", "a")]
    assert await positions(store) == [1], "the topic had none of them"


async def test_a_removed_queue_takes_its_messages_with_it(store: Store) -> None:
    batch = await holding(store, 1, 2)
    batch.append("a", stored(3))
    batch.append("b", stored(4))
    batch.count(2, 1)
    batch.fall_due(3, 4)
    batch.remove(1)
    batch.remove_node(QUEUE)
    batch.remove_node(StoredNode(address="unknown", kind="queue"))
    await store.commit(batch)
    assert await nodes(store) == []
    assert await positions(store) == []
    assert await positions(store, "b") == [4]


async def test_a_queue_that_is_removed_and_added_anew_keeps_what_comes_then(store: Store) -> None:
    batch = await holding(store, 1, 2)
    batch.append("a", stored(3))
    batch.remove(2)
    batch.remove_node(QUEUE)
    batch.add_node(QUEUE)
    batch.append("a", stored(4, b"new"))
    await store.commit(batch)
    assert await nodes(store) == [("queue", "a")]
    assert [message.encoded for message in await store.messages("a")] == [b"new"]


async def test_a_queue_that_is_added_and_removed_in_one_batch_is_gone(store: Store) -> None:
    batch = store.batch()
    batch.add_node(TOPIC)
    batch.add_node(QUEUE)
    batch.append("a", stored(1))
    batch.remove_node(QUEUE)
    await store.commit(batch)
    assert await nodes(store) == [("topic", "a")]
    assert await positions(store) == []


async def test_a_batch_is_empty_until_something_is_noted(store: Store) -> None:
    assert store.batch().is_empty()
    await store.commit(store.batch())
    noted = [store.batch() for _ in range(6)]
    noted[0].append("a", stored(1))
    noted[1].remove(1)
    noted[2].count(1, 1)
    noted[3].add_node(QUEUE)
    noted[4].remove_node(QUEUE)
    noted[5].fall_due(1, 2)
    assert not any(batch.is_empty() for batch in noted)


class ForeignBatch(Batch):
    """Of some other store."""

    def append(self, queue: str, message: StoredMessage) -> None:
        """Forget it."""

    def remove(self, number: int) -> None:
        """Forget it."""

    def fall_due(self, number: int, position: int) -> None:
        """Forget it."""

    def count(self, number: int, delivery_count: int) -> None:
        """Forget it."""

    def rewrite(self, number: int, encoded: bytes) -> None:
        """Forget it."""

    def add_node(self, node: StoredNode) -> None:
        """Forget it."""

    def remove_node(self, node: StoredNode) -> None:
        """Forget it."""

    def is_empty(self) -> bool:
        return True


async def test_the_batch_of_another_store_is_refused(store: Store) -> None:
    with pytest.raises(StoreError):
        await store.commit(ForeignBatch())


async def test_a_store_that_commits_at_once_keeps_the_same_without_waiting(store: Store) -> None:
    if not store.commits_at_once:
        pytest.skip("this one has to wait")
    batch = store.batch()
    batch.add_node(QUEUE)
    batch.append("a", stored(1))
    store.commit_now(batch)
    assert await nodes(store) == [("queue", "a")]
    assert await positions(store) == [1]
