"""The contract of `storage.api` for remembered message ids."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.records import StoredId, StoredNode
from tests.contract.test_store import STORES, stored
from tests.support.stored import stored_messages

QUEUE = StoredNode(address="a", kind="queue")
TOPIC = StoredNode(address="a", kind="topic")


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = STORES[request.param](tmp_path)
    await opened.open()
    batch = Batch()
    batch.add_node(QUEUE)
    batch.add_node(TOPIC)
    await opened.commit(batch)
    yield opened
    await opened.close()


def stored_id(number: int, node: StoredNode = QUEUE) -> StoredId:
    return StoredId(
        number=number,
        kind=node.kind,
        address=node.address,
        digest=bytes(range(240, 256)),
        at_ms=1_750_000_000_000 + number,
    )


async def numbers(store: Store, behind: int = 0) -> list[int]:
    """Return the numbers of all ids after `behind`, in the order of the store."""
    found: list[int] = []
    while part := await store.ids(found[-1] if found else behind):
        found += [int(each.number) for each in part]
    return found


async def test_an_id_is_kept_as_it_came(store: Store) -> None:
    batch = Batch()
    batch.remember(stored_id(1))
    batch.remember(stored_id(2, TOPIC))
    await store.commit(batch)
    first, second = await store.ids(0)
    assert (first.number, first.kind, first.address) == (1, "queue", "a")
    assert (first.digest, first.at_ms) == (bytes(range(240, 256)), 1_750_000_000_001)
    assert (second.number, second.kind, second.address) == (2, "topic", "a")


async def test_an_id_comes_and_goes_with_the_commit_of_its_message(store: Store) -> None:
    batch = Batch()
    batch.append(stored(1))
    batch.remember(stored_id(1))
    assert (await numbers(store), await stored_messages(store, "a")) == ([], [])
    await store.commit(batch)
    assert (await numbers(store), len(await stored_messages(store, "a"))) == ([1], 1)


async def test_ids_come_in_the_order_of_their_numbers(store: Store) -> None:
    for first in (1, 4):
        batch = Batch()
        for number in range(first, first + 3):
            batch.remember(stored_id(number))
        await store.commit(batch)
    assert await numbers(store) == [1, 2, 3, 4, 5, 6]
    assert await numbers(store, 4) == [5, 6]
    assert await numbers(store, 6) == []


async def test_a_forgotten_id_is_gone_and_may_be_forgotten_again(store: Store) -> None:
    batch = Batch()
    for number in range(1, 7):
        batch.remember(stored_id(number))
    await store.commit(batch)
    batch = Batch()
    for number in (5, 2, 3, 2, 99):
        batch.forget(number)
    await store.commit(batch)
    assert await numbers(store) == [1, 4, 6]


async def test_an_id_that_comes_and_goes_in_one_batch_is_gone(store: Store) -> None:
    batch = Batch()
    batch.remember(stored_id(1))
    batch.remember(stored_id(2))
    batch.forget(1)
    batch.forget(1)
    await store.commit(batch)
    assert await numbers(store) == [2]


async def test_what_was_noted_before_a_node_is_removed_is_taken_back(store: Store) -> None:
    batch = Batch()
    batch.remember(stored_id(1))
    batch.remember(stored_id(2, TOPIC))
    batch.remove_node(QUEUE)
    batch.add_node(QUEUE)
    batch.remember(stored_id(3))
    await store.commit(batch)
    assert await numbers(store) == [2, 3]


async def test_a_removed_node_has_no_ids(store: Store) -> None:
    batch = Batch()
    batch.remember(stored_id(1))
    batch.remember(stored_id(2, TOPIC))
    await store.commit(batch)
    batch = Batch()
    batch.forget(1)
    batch.remove_node(QUEUE)
    await store.commit(batch)
    assert await numbers(store) == [2]


async def test_one_id_is_a_change(store: Store) -> None:
    remembering, forgetting = Batch(), Batch()
    remembering.remember(stored_id(1))
    forgetting.forget(1)
    assert not remembering.is_empty()
    assert not forgetting.is_empty()
    await store.commit(remembering)
    await store.commit(forgetting)
    assert await numbers(store) == []
