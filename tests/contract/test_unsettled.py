"""The contract of `storage.api` for outcomes that their senders have not settled."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.unsettled import StoredOutcome
from tests.contract.test_store import STORES

SIZES = [b"", b"\x00", b"t" * 32]


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = STORES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


def outcome(tag: bytes, *, link: str = "link", state: bytes = b"accepted") -> StoredOutcome:
    return StoredOutcome(
        container_id="client",
        link=link,
        tag=tag,
        outcome=state,
        owner="alice",
        address="q",
        expiry_policy="connection-close",
        timeout_s=60,
    )


async def there(store: Store) -> list[tuple[str, bytes, bytes]]:
    return [(each.link, each.tag, each.outcome) for each in await store.unsettled()]


async def test_an_outcome_is_kept_as_it_came(store: Store) -> None:
    batch = Batch()
    for tag in SIZES:
        batch.unsettled_changes().keep(outcome(tag))
    await store.commit(batch)
    found = await store.unsettled()
    assert [each.tag for each in found] == SIZES
    (first, *_) = found
    assert (first.container_id, first.link, first.owner) == ("client", "link", "alice")
    assert (first.address, first.expiry_policy, first.timeout_s) == ("q", "connection-close", 60)


async def test_the_last_change_of_an_outcome_counts(store: Store) -> None:
    batch = Batch()
    changes = batch.unsettled_changes()
    changes.keep(outcome(b"1"))
    changes.keep(outcome(b"1", state=b"rejected"))
    changes.keep(outcome(b"2"))
    changes.forget("client", "link", b"2")
    await store.commit(batch)
    assert await there(store) == [("link", b"1", b"rejected")]
    batch = Batch()
    batch.unsettled_changes().keep(outcome(b"1"))
    batch.unsettled_changes().forget("client", "link", b"unknown")
    await store.commit(batch)
    assert await there(store) == [("link", b"1", b"accepted")]


async def test_a_target_ends_with_its_outcomes(store: Store) -> None:
    batch = Batch()
    for link in ("one", "two"):
        batch.unsettled_changes().keep(outcome(b"1", link=link))
    await store.commit(batch)
    batch = Batch()
    changes = batch.unsettled_changes()
    changes.keep(outcome(b"2", link="one"))
    changes.end("client", "one")
    changes.keep(outcome(b"3", link="one"))
    await store.commit(batch)
    assert await there(store) == [("one", b"3", b"accepted"), ("two", b"1", b"accepted")]


def test_outcomes_are_changes_of_a_batch() -> None:
    batch = Batch()
    assert batch.is_empty()
    batch.unsettled_changes().end("client", "link")
    assert not batch.is_empty()
