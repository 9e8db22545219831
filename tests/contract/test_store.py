"""The contract of `storage.api`; a new store is another parameter of the fixture `store`."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import Store, StoreError
from storage.batch import Batch
from storage.memory import MemoryStore
from storage.records import StoredMessage, StoredNode
from storage.sql.postgresql.store import PostgresStore
from storage.sql.sqlite.store import SqliteStore
from tests.support import postgres
from tests.support.stored import stored_messages

QUEUE = StoredNode(address="a", kind="queue")
TOPIC = StoredNode(address="a", kind="topic")


def memory(folder: Path) -> Store:  # noqa: ARG001 - like the others
    return MemoryStore()


def sqlite(folder: Path) -> Store:
    return SqliteStore(folder / "store.db")


def postgresql(folder: Path) -> Store:  # noqa: ARG001 - the data is in its server
    server = postgres.server()
    return PostgresStore(server.url(server.database_of_a_store()))


STORES = {"memory": memory, "sqlite": sqlite, "postgresql": postgresql}


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = STORES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


def stored(
    number: int,
    encoded: bytes = b"x",
    *,
    position: int | None = None,
    queue: str = "a",
    deliver_at_ms: int = 0,
) -> StoredMessage:
    """Return a message whose position is its number, unless another is given."""
    position = number if position is None else position
    return StoredMessage(
        number=number,
        queue=queue,
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
    return [int(message.position) for message in await stored_messages(store, queue)]


async def nodes(store: Store) -> list[tuple[str, str]]:
    return [(node.kind, node.address) for node in await store.nodes()]


async def holding(store: Store, *kept: int) -> Batch:
    """Store the queue `a` with messages at these positions; return a new batch."""
    batch = Batch()
    batch.add_node(QUEUE)
    for position in kept:
        batch.append(stored(position))
    await store.commit(batch)
    return Batch()


async def test_a_new_store_is_empty(store: Store) -> None:
    assert await store.nodes() == []
    assert await stored_messages(store, "a") == []
    assert store.name


@pytest.mark.requirement("DST-02")
async def test_which_nodes_clients_made_is_kept(store: Store) -> None:
    batch = Batch()
    batch.add_node(StoredNode(address="a", kind="queue", auto_created=True))
    batch.add_node(TOPIC)
    batch.add_node(StoredNode(address="made", kind="topic", auto_created=True))
    await store.commit(batch)
    batch = Batch()
    batch.add_node(StoredNode(address="made", kind="topic", auto_created=True))
    await store.commit(batch)
    assert await auto_created(store) == {("queue", "a"), ("topic", "made")}
    batch = Batch()
    batch.remove_node(StoredNode(address="a", kind="queue"))
    batch.add_node(QUEUE)
    await store.commit(batch)
    assert await nodes(store) == [("topic", "a"), ("topic", "made"), ("queue", "a")]
    assert await auto_created(store) == {("topic", "made")}


async def auto_created(store: Store) -> set[tuple[str, str]]:
    return {(node.kind, node.address) for node in await store.nodes() if node.auto_created}


@pytest.mark.requirement("SEC-05")
async def test_the_creators_of_nodes_are_kept(store: Store) -> None:
    batch = Batch()
    for address, creator in (("a", "ada"), ("b", ""), ("c", None), ("d", "\U0001f6d2 shop")):
        batch.add_node(StoredNode(address=address, kind="queue", creator=creator))
    batch.add_node(StoredNode(address="a", kind="topic", creator="bob"))
    await store.commit(batch)
    batch = Batch()
    batch.add_node(StoredNode(address="a", kind="queue", creator="bob"))
    await store.commit(batch)
    expected = {"queue a": "ada", "queue b": "", "queue c": None, "queue d": "\U0001f6d2 shop"}
    assert await creators(store) == expected | {"topic a": "bob"}
    batch = Batch()
    batch.remove_node(QUEUE)
    batch.add_node(StoredNode(address="a", kind="queue", creator="bob"))
    await store.commit(batch)
    assert await creators(store) == expected | {"queue a": "bob", "topic a": "bob"}


async def creators(store: Store) -> dict[str, str | None]:
    return {f"{node.kind} {node.address}": node.creator for node in await store.nodes()}


async def test_nothing_is_kept_before_the_commit(store: Store) -> None:
    batch = Batch()
    batch.add_node(QUEUE)
    batch.append(stored(1))
    assert await store.nodes() == []
    assert await stored_messages(store, "a") == []


@pytest.mark.requirement("DST-14", "PRD-05")
async def test_a_message_is_kept_as_it_came(store: Store) -> None:
    batch = await holding(store)
    everything = bytes(range(256))
    batch.append(stored(1, everything, position=2**53 + 7))
    await store.commit(batch)
    (message,) = await stored_messages(store, "a")
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
        batch.append(stored(position, b"%d" % position, deliver_at_ms=1_750_000_001_000))
    batch.append(stored(4, position=40))
    batch.fall_due(2, 52)
    batch.fall_due(99, 62)
    await store.commit(batch)
    later = Batch()
    later.fall_due(1, 61)
    later.count(1, 1)
    later.remove(3)
    await store.commit(later)
    too_late = Batch()
    too_late.fall_due(3, 73)
    await store.commit(too_late)
    assert await positions(store) == [40, 52, 61]
    _, second, first = await stored_messages(store, "a")
    assert (second.encoded, second.deliver_at_ms, second.delivery_count) == (b"2", 0, 0)
    assert (first.encoded, first.deliver_at_ms, first.delivery_count) == (b"1", 0, 1)
    assert (first.priority, first.ttl_ms) == (1, 60_000)
    assert (first.arrived_ms, first.expires_at_ms) == (1_750_000_000_000, 1_750_000_060_000)
    assert await positions(store, "nowhere") == []


@pytest.mark.requirement("DLY-03")
async def test_a_delivery_time_outlasts_other_changes(store: Store) -> None:
    batch = await holding(store)
    batch.append(stored(1, deliver_at_ms=1_750_000_001_000))
    batch.rewrite(1, b"new")
    batch.count(1, 2)
    await store.commit(batch)
    (message,) = await stored_messages(store, "a")
    assert (message.deliver_at_ms, message.encoded) == (1_750_000_001_000, b"new")


async def test_a_message_that_falls_due_and_is_consumed_in_one_batch_is_gone(store: Store) -> None:
    batch = await holding(store, 1)
    batch.append(stored(2, deliver_at_ms=1_750_000_001_000))
    batch.fall_due(2, 12)
    batch.remove(2)
    await store.commit(batch)
    assert await positions(store) == [1]


async def test_messages_come_by_position_whenever_they_were_added(store: Store) -> None:
    batch = Batch()
    batch.add_node(QUEUE)
    batch.append(stored(1, position=30))
    batch.append(stored(2, position=9))
    await store.commit(batch)
    batch = Batch()
    batch.append(stored(3, position=17))
    batch.append(stored(4, position=1, queue="b"))
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
    batch.append(stored(1))
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
    first, second = await stored_messages(store, "a")
    assert (first.encoded, second.encoded) == (b"x", b"new")
    assert (second.position, second.priority, second.delivery_count) == (2, 2, 3)
    assert (second.ttl_ms, second.arrived_ms) == (60_000, 1_750_000_000_000)
    assert await positions(store, "nowhere") == []


async def test_new_bytes_alone_are_a_change(store: Store) -> None:
    batch = await holding(store, 1)
    batch = Batch()
    batch.rewrite(1, b"new")
    assert not batch.is_empty()


@pytest.mark.requirement("RCV-01")
async def test_a_count_changes_nothing_else(store: Store) -> None:
    batch = await holding(store, 1, 2)
    batch.count(2, 1)
    batch.count(2, 3)
    batch.count(99, 1)
    await store.commit(batch)
    first, second = await stored_messages(store, "a")
    assert (first.delivery_count, second.delivery_count) == (0, 3)
    assert (second.position, second.encoded, second.priority) == (2, b"x", 2)
    assert (second.ttl_ms, second.arrived_ms) == (60_000, 1_750_000_000_000)
    assert await positions(store, "nowhere") == []


@pytest.mark.requirement("DST-02")
async def test_nodes_come_in_the_order_in_which_they_were_added(store: Store) -> None:
    batch = Batch()
    for address in ("z", "a", "m"):
        batch.add_node(StoredNode(address=address, kind="queue"))
    await store.commit(batch)
    again = Batch()
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
    batch = Batch()
    batch.remove_node(TOPIC)
    await store.commit(batch)
    assert await nodes(store) == [("queue", "a")]
    assert await positions(store) == [1], "the topic had none of them"


async def test_a_removed_queue_takes_its_messages_with_it(store: Store) -> None:
    batch = await holding(store, 1, 2)
    batch.append(stored(3))
    batch.append(stored(4, queue="b"))
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
    batch.append(stored(3))
    batch.remove(2)
    batch.remove_node(QUEUE)
    batch.add_node(QUEUE)
    batch.append(stored(4, b"new"))
    await store.commit(batch)
    assert await nodes(store) == [("queue", "a")]
    assert [message.encoded for message in await stored_messages(store, "a")] == [b"new"]


async def test_a_queue_that_is_added_and_removed_in_one_batch_is_gone(store: Store) -> None:
    batch = Batch()
    batch.add_node(TOPIC)
    batch.add_node(QUEUE)
    batch.append(stored(1))
    batch.remove_node(QUEUE)
    await store.commit(batch)
    assert await nodes(store) == [("topic", "a")]
    assert await positions(store) == []


async def test_a_batch_is_empty_until_something_is_noted(store: Store) -> None:
    assert Batch().is_empty()
    await store.commit(Batch())
    noted = [Batch() for _ in range(6)]
    noted[0].append(stored(1))
    noted[1].remove(1)
    noted[2].count(1, 1)
    noted[3].add_node(QUEUE)
    noted[4].remove_node(QUEUE)
    noted[5].fall_due(1, 2)
    assert not any(batch.is_empty() for batch in noted)


async def test_only_a_store_without_io_commits_at_once(store: Store) -> None:
    batch = Batch()
    batch.add_node(QUEUE)
    batch.append(stored(1))
    if store.commits_at_once:
        store.commit_now(batch)
    else:
        with pytest.raises(StoreError):
            store.commit_now(batch)
        await store.commit(batch)
    assert await nodes(store) == [("queue", "a")]
    assert await positions(store) == [1]


async def test_copies_of_one_message_come_and_go_one_by_one(store: Store) -> None:
    encoded = b"one body"
    batch = Batch()
    for number, queue in enumerate("abc", 1):
        batch.append(stored(number, encoded, queue=queue))
    batch.append(stored(4, b"another", queue="a"))
    await store.commit(batch)
    for queue in "abc":
        assert (await stored_messages(store, queue))[0].encoded == encoded
    batch = Batch()
    batch.remove(1)
    batch.rewrite(2, b"annotated")
    await store.commit(batch)
    assert [message.encoded for message in await stored_messages(store, "a")] == [b"another"]
    assert [message.encoded for message in await stored_messages(store, "b")] == [b"annotated"]
    assert [message.encoded for message in await stored_messages(store, "c")] == [encoded]
    batch = Batch()
    batch.remove(3)
    await store.commit(batch)
    assert await positions(store, "c") == []


async def places(store: Store) -> list[tuple[int, str, int, int, int, int]]:
    """Return number, queue, position, size and times of all messages, in the order of arrival."""
    found: list[tuple[int, str, int, int, int, int]] = []
    while (part := await store.places(found[-1][0] if found else 0)).numbers:
        found += zip(
            part.numbers,
            part.queues,
            part.positions,
            part.sizes,
            part.expires_at_ms,
            part.deliver_at_ms,
            strict=True,
        )
    return found


EXPIRES_AT_MS = 1_750_000_060_000


@pytest.mark.requirement("PRD-03", "DLY-03")
async def test_places_are_told_without_contents(store: Store) -> None:
    batch = await holding(store)
    batch.append(stored(1, b"four", position=14))
    batch.append(stored(2, b"", position=9, queue="b"))
    batch.append(stored(3, b"later", position=24, deliver_at_ms=1_750_000_001_000))
    batch.append(stored(4, b"gone"))
    batch.append(stored(5, b"due", deliver_at_ms=1_750_000_001_000))
    await store.commit(batch)
    batch = Batch()
    batch.remove(4)
    batch.fall_due(5, 34)
    batch.rewrite(1, b"longer")
    await store.commit(batch)
    assert await places(store) == [
        (1, "a", 14, 6, EXPIRES_AT_MS, 0),
        (2, "b", 9, 0, EXPIRES_AT_MS, 0),
        (3, "a", 24, 5, EXPIRES_AT_MS, 1_750_000_001_000),
        (5, "a", 34, 3, EXPIRES_AT_MS, 0),
    ]


async def test_an_empty_store_has_no_places(store: Store) -> None:
    assert await places(store) == []


async def test_places_of_copies_tell_the_size_of_the_one_body(store: Store) -> None:
    batch = Batch()
    encoded = b"one body"
    for number, queue in enumerate("abc", 1):
        batch.append(stored(number, encoded, queue=queue))
    await store.commit(batch)
    assert [row[:4] for row in await places(store)] == [
        (1, "a", 1, 8),
        (2, "b", 2, 8),
        (3, "c", 3, 8),
    ]


async def test_a_removed_queue_has_no_places_and_no_messages_to_load(store: Store) -> None:
    batch = await holding(store, 1, 2)
    batch.append(stored(3, queue="b"))
    batch.remove_node(QUEUE)
    await store.commit(batch)
    assert [row[1] for row in await places(store)] == ["b"]
    assert [int(message.number) for message in await store.load([1, 2, 3])] == [3]


@pytest.mark.requirement("PRD-05")
async def test_messages_are_loaded_by_number_as_they_are_now(store: Store) -> None:
    batch = await holding(store, 1, 2, 3)
    encoded = b"shared"
    batch.append(stored(4, encoded, queue="b"))
    batch.append(stored(5, encoded, queue="c"))
    batch.append(stored(6, b"six", deliver_at_ms=1_750_000_001_000))
    batch.count(3, 2)
    batch.remove(2)
    await store.commit(batch)
    loaded = await store.load([1, 2, 3, 5, 6, 99])
    assert [int(message.number) for message in loaded] == [1, 3, 5, 6]
    assert [message.queue for message in loaded] == ["a", "a", "c", "a"]
    assert [message.encoded for message in loaded] == [b"x", b"x", encoded, b"six"]
    assert [int(message.delivery_count) for message in loaded] == [0, 2, 0, 0]
    assert int(loaded[3].deliver_at_ms) == 1_750_000_001_000
    assert await store.load([]) == []


async def test_only_a_store_without_io_loads_at_once(store: Store) -> None:
    await holding(store, 1)
    if store.commits_at_once:
        assert [int(message.number) for message in store.load_now([1, 2])] == [1]
    else:
        with pytest.raises(StoreError):
            store.load_now([1])
