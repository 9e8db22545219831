"""The contract of `storage.api` for the position up to which messages may have been delivered."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.records import StoredNode
from tests.contract.test_store import QUEUE, STORES, holding


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = STORES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


@pytest.mark.requirement("RCV-08")
async def test_the_position_up_to_which_messages_may_have_been_delivered_is_kept(
    store: Store,
) -> None:
    batch = await holding(store, 1, 2)
    batch.mark_delivered("a", 19)
    assert not batch.is_empty()
    await store.commit(batch)
    assert await store.delivered() == {"a": 19}
    batch = Batch()
    batch.mark_delivered("a", 29)
    batch.mark_delivered("a", 39)
    batch.mark_delivered("gone", 9)
    batch.add_node(StoredNode(address="b", kind="queue"))
    batch.mark_delivered("b", 9)
    batch.remove_node(StoredNode(address="gone", kind="queue"))
    await store.commit(batch)
    assert await store.delivered() == {"a": 39, "b": 9}


@pytest.mark.requirement("RCV-08")
async def test_that_position_goes_with_its_queue(store: Store) -> None:
    batch = await holding(store, 1)
    batch.mark_delivered("a", 19)
    await store.commit(batch)
    batch = Batch()
    batch.remove_node(QUEUE)
    batch.add_node(QUEUE)
    await store.commit(batch)
    assert await store.delivered() == {}
