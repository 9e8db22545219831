"""The contract of `storage.api` for stages and sinks."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.stages import PLACES, STAGED, StoredSink, StoredStage
from tests.contract.test_store import STORES, holding, stored
from tests.support.stored import stored_messages

LONG = 2**63 - 1


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = STORES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


def stage(
    number: int,
    *,
    query: str = "q",
    batch: int = 0,
    publisher: str = "Spark √",
    owner: str | None = None,
) -> StoredStage:
    return StoredStage(
        number=number,
        query=query,
        batch=batch,
        partition=2**31 - 1,
        attempt=LONG,
        kind="topic",
        address="news/a.b",
        publisher=publisher,
        begun_ms=1_750_000_000_000,
        owner=owner,
    )


async def numbers(store: Store) -> list[int]:
    return [int(each.number) for each in await store.stages()]


async def watermarks(store: Store) -> dict[str, tuple[int, int]]:
    """Return for each query the last committed batch, and its time in ms."""
    return {each.query: (int(each.batch), int(each.at_ms)) for each in await store.sinks()}


@pytest.mark.requirement("PIP-12")
async def test_a_stage_is_kept_as_it_came(store: Store) -> None:
    batch = Batch()
    batch.stage_changes().add(stage(7, query="orders √", batch=LONG))
    assert not batch.is_empty()
    assert batch.is_urgent
    await store.commit(batch)
    (found,) = await store.stages()
    assert (found.number, found.query, found.batch) == (7, "orders √", LONG)
    assert (found.partition, found.attempt) == (2**31 - 1, LONG)
    assert (found.kind, found.address, found.publisher) == ("topic", "news/a.b", "Spark √")
    assert found.begun_ms == 1_750_000_000_000


@pytest.mark.requirement("PIP-14")
async def test_a_stage_goes_and_may_go_again(store: Store) -> None:
    batch = Batch()
    for number in (3, 1, 2):
        batch.stage_changes().add(stage(number))
    batch.stage_changes().remove(2)
    await store.commit(batch)
    assert await numbers(store) == [1, 3]
    batch = Batch()
    batch.stage_changes().remove(1)
    batch.stage_changes().remove(99)
    batch.stage_changes().add(stage(4))
    await store.commit(batch)
    assert await numbers(store) == [3, 4]


@pytest.mark.requirement("PIP-13")
async def test_how_far_a_query_has_come_is_what_was_said_last(store: Store) -> None:
    batch = Batch()
    for number in (1, 2):
        batch.stage_changes().keep(StoredSink(query="a", batch=number, at_ms=number * 10))
    batch.stage_changes().keep(StoredSink(query="b", batch=LONG, at_ms=1))
    await store.commit(batch)
    assert await watermarks(store) == {"a": (2, 20), "b": (LONG, 1)}
    batch = Batch()
    batch.stage_changes().keep(StoredSink(query="a", batch=3, at_ms=30))
    batch.stage_changes().forget("b")
    batch.stage_changes().forget("nobody")
    await store.commit(batch)
    assert await watermarks(store) == {"a": (3, 30)}


@pytest.mark.parametrize(
    ("publisher", "owner"),
    [
        ("Spark √", "ada"),
        ("Spark √", ""),
        ("Spark √", None),
        ("", "ada"),
        ("", ""),
        ("a\x1fb", "é"),
    ],
)
async def test_the_owner_of_a_query_is_kept(
    store: Store, publisher: str, owner: str | None
) -> None:
    batch = Batch()
    batch.stage_changes().add(stage(7, publisher=publisher, owner=owner))
    await store.commit(batch)
    (found,) = await store.stages()
    assert (found.publisher, found.owner) == (publisher, owner)


@pytest.mark.requirement("PIP-14")
async def test_of_forgetting_and_keeping_in_one_batch_the_later_counts(store: Store) -> None:
    batch = Batch()
    batch.stage_changes().keep(StoredSink(query="a", batch=9, at_ms=1))
    batch.stage_changes().keep(StoredSink(query="b", batch=9, at_ms=1))
    await store.commit(batch)
    batch = Batch()
    batch.stage_changes().forget("a")
    batch.stage_changes().keep(StoredSink(query="a", batch=0, at_ms=2))
    batch.stage_changes().keep(StoredSink(query="b", batch=10, at_ms=2))
    batch.stage_changes().forget("b")
    await store.commit(batch)
    assert await watermarks(store) == {"a": (0, 2)}


@pytest.mark.requirement("PIP-13", "PIP-16")
async def test_a_commit_moves_messages_with_the_stage_and_the_sink(store: Store) -> None:
    batch = await holding(store)
    places = [int(PLACES) * 5 + index for index in range(3)]
    for number, place in enumerate(places, 1):
        batch.append(stored(number, b"%d" % number, position=place, queue=STAGED))
    batch.stage_changes().add(stage(5))
    await store.commit(batch)
    assert [int(each.position) for each in await stored_messages(store, STAGED)] == places
    batch = Batch()
    batch.stage_changes().keep(StoredSink(query="q", batch=0, at_ms=1))
    batch.stage_changes().remove(5)
    for number in (1, 2, 3):
        batch.remove(number)
        batch.append(stored(number + 3, b"%d" % number, position=number * 10, queue="a"))
    await store.commit(batch)
    assert [each.encoded for each in await stored_messages(store, "a")] == [b"1", b"2", b"3"]
    assert await stored_messages(store, STAGED) == []
    assert (await numbers(store), await watermarks(store)) == ([], {"q": (0, 1)})
