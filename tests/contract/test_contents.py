"""The contract of stores for large bodies, kept as chunks ("contents") beside their messages."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import ContentError, Store
from storage.batch import Batch
from storage.contents import CHUNK_SIZE
from storage.records import StoredContent, StoredMessage, StoredNode
from storage.sql.postgresql.store import PostgresStore
from storage.sql.sqlite.store import SqliteStore
from tests.contract.test_store import STORES, stored
from tests.contract.test_subscriptions import SUBSCRIPTION
from tests.support import postgres
from tests.support.stored import stored_messages

QUEUE = StoredNode(address="a", kind="queue")


def sqlite_twice(folder: Path) -> tuple[Store, Store]:
    return SqliteStore(folder / "store.db"), SqliteStore(folder / "store.db")


def postgresql_twice(folder: Path) -> tuple[Store, Store]:  # noqa: ARG001 - data is in a server
    server = postgres.server()
    url = server.url(server.database_of_a_store())
    return PostgresStore(url), PostgresStore(url)


LASTING = {"sqlite": sqlite_twice, "postgresql": postgresql_twice}
"""Stores that are opened twice: each function returns two objects of one database."""


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = STORES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


def large(
    number: int, content: int, *, queue: str = "a", encoded: bytes = b"properties"
) -> StoredMessage:
    """Return a message with a large body, the content of that number."""
    return StoredMessage(
        number=number,
        queue=queue,
        position=number,
        encoded=encoded,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
        content=StoredContent(number=content, size=2 * CHUNK_SIZE, beginning=b"begins\x00so"),
    )


def chunk(content: int, index: int) -> bytes:
    return bytes([content, index]) * (CHUNK_SIZE // 2)


async def write(store: Store, content: int, count: int = 2, *, held: bool = True) -> None:
    """Write `count` chunks of a content, which the broker holds if `held`."""
    batch = Batch()
    changes = batch.content_changes()
    if held:
        changes.held.append(content)
    for index in range(count):
        changes.write(content, index, chunk(content, index))
    await store.commit(batch)


async def append(store: Store, *messages: StoredMessage) -> None:
    batch = Batch()
    batch.add_node(QUEUE)
    for message in messages:
        batch.append(message)
    await store.commit(batch)


async def let_go(store: Store, content: int) -> None:
    batch = Batch()
    batch.content_changes().let_go.append(content)
    await store.commit(batch)


async def remove(store: Store, *numbers: int) -> None:
    batch = Batch()
    for number in numbers:
        batch.remove(number)
    await store.commit(batch)


async def swept(store: Store) -> int:
    """Sweep until no unused chunk is left; return the number of steps."""
    steps = 1
    while await store.sweep():
        steps += 1
    return steps


async def has(store: Store, content: int, count: int = 2) -> list[int]:
    """Return the indexes of the existing chunks of a content, which must be as written."""
    found: list[int] = []
    for index in range(count):
        try:
            assert await store.read_chunk(content, index) == chunk(content, index)
        except ContentError:
            continue
        found.append(index)
    return found


async def test_chunks_come_back_as_they_were_written(store: Store) -> None:
    await write(store, 1)
    await write(store, 2, 1)
    assert (await has(store, 1), await has(store, 2)) == ([0, 1], [0])
    with pytest.raises(ContentError, match="content 7"):
        await store.read_chunk(7, 0)
    assert await store.nodes() == [], "the store goes on"


async def test_a_message_says_what_its_content_is(store: Store) -> None:
    await write(store, 3)
    await append(store, large(1, 3), large(2, 3))
    for message in await stored_messages(store, "a"):
        assert message.encoded == b"properties"
        assert message.content is not None
        assert (message.content.number, message.content.size) == (3, 2 * CHUNK_SIZE)
        assert message.content.beginning == b"begins\x00so"


async def test_its_place_tells_all_its_bytes(store: Store) -> None:
    await write(store, 3)
    await append(store, large(1, 3), stored(2))
    places = await store.places(0)
    assert places.sizes == [len(b"properties") + 2 * CHUNK_SIZE, 1]
    first, second = await store.load([1, 2])
    assert first.content is not None
    assert first.content.number == 3
    assert second.content is None


async def test_other_changes_leave_the_content_alone(store: Store) -> None:
    await write(store, 3)
    await append(store, large(1, 3))
    batch = Batch()
    batch.rewrite(1, b"annotated")
    batch.count(1, 2)
    batch.fall_due(1, 9)
    await store.commit(batch)
    (message,) = await stored_messages(store, "a")
    assert (message.encoded, message.delivery_count, message.position) == (b"annotated", 2, 9)
    assert message.content is not None
    assert message.content.number == 3
    assert await has(store, 3) == [0, 1]


async def test_a_content_stays_while_a_message_has_it(store: Store) -> None:
    await write(store, 1)
    await append(store, large(1, 1), large(2, 1))
    await let_go(store, 1)
    await remove(store, 1)
    await swept(store)
    assert await has(store, 1) == [0, 1]
    await remove(store, 2)
    await swept(store)
    assert await has(store, 1) == []


async def test_a_content_stays_while_the_broker_holds_it(store: Store) -> None:
    await write(store, 1)
    await append(store, large(1, 1))
    await remove(store, 1)
    await swept(store)
    assert await has(store, 1) == [0, 1]
    await let_go(store, 1)
    await swept(store)
    assert await has(store, 1) == []


async def test_a_message_that_moves_within_a_batch_keeps_its_content(store: Store) -> None:
    await write(store, 1)
    await append(store, large(1, 1))
    await let_go(store, 1)
    batch = Batch()
    batch.remove(1)
    batch.append(large(2, 1, queue="dead", encoded=b"why"))
    await store.commit(batch)
    await swept(store)
    assert await has(store, 1) == [0, 1]
    (moved,) = await stored_messages(store, "dead")
    assert moved.content is not None


async def test_a_message_that_comes_and_goes_in_one_batch_leaves_no_chunks(store: Store) -> None:
    await write(store, 1)
    batch = Batch()
    batch.append(large(1, 1))
    batch.remove(1)
    batch.content_changes().let_go.append(1)
    await store.commit(batch)
    await swept(store)
    assert (await has(store, 1), await stored_messages(store, "a")) == ([], [])


@pytest.mark.parametrize("named", ["a", SUBSCRIPTION.queue])
async def test_a_queue_that_goes_takes_the_chunks_along(store: Store, named: str) -> None:
    await write(store, 1)
    await write(store, 2)
    await append(store, large(1, 1, queue=named), large(2, 2, queue="other"))
    batch = Batch()
    for content in (1, 2):
        batch.content_changes().let_go.append(content)
    if named == "a":
        batch.remove_node(QUEUE)
    else:
        batch.remove_subscription(named)
    await store.commit(batch)
    await swept(store)
    assert (await has(store, 1), await has(store, 2)) == ([], [0, 1])


async def test_a_sweep_leaves_everything_else(store: Store) -> None:
    await write(store, 1, 40)
    await write(store, 2)
    await let_go(store, 1)
    assert await swept(store) >= 1
    assert (await has(store, 1, 40), await has(store, 2)) == ([], [0, 1])
    assert not await store.sweep(), "nothing is left"


def test_a_change_of_contents_alone_is_a_change() -> None:
    batch = Batch()
    batch.content_changes().write(1, 0, b"x")
    assert not batch.is_empty()


@pytest.mark.parametrize("name", LASTING)
async def test_after_a_restart_what_nobody_has_is_swept(name: str, tmp_path: Path) -> None:
    """Half a body and one that only the broker held are swept; a queued message keeps its own."""
    store, again = LASTING[name](tmp_path)
    await store.open()
    await write(store, 1, 1)
    await write(store, 2)
    await write(store, 3)
    await append(store, large(1, 3))
    await store.close()
    await again.open()
    assert again.first_content > 3
    assert again.keeps_contents
    await swept(again)
    assert [await has(again, content) for content in (1, 2, 3)] == [[], [], [0, 1]]
    (message,) = await stored_messages(again, "a")
    assert message.content is not None
    assert message.content.beginning == b"begins\x00so"
    await remove(again, 1)
    await swept(again)
    assert await has(again, 3) == []
    await again.close()


@pytest.mark.parametrize("name", LASTING)
async def test_chunks_of_a_queue_that_went_are_swept_after_a_restart(
    name: str, tmp_path: Path
) -> None:
    """The messages of a removed queue are deleted only at the next start."""
    store, again = LASTING[name](tmp_path)
    await store.open()
    await write(store, 1)
    await append(store, large(1, 1))
    batch = Batch()
    batch.remove_node(QUEUE)
    await store.commit(batch)
    await store.close()
    await again.open()
    await swept(again)
    assert await has(again, 1) == []
    await again.close()
