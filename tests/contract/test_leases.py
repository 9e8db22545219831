"""The contract of `storage.api` for leases and their batches."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import Store
from storage.batch import Batch
from storage.leases import StoredLease, StoredLeaseBatch, StoredLeases, StoredTerminus
from tests.contract.test_store import STORES

pytestmark = pytest.mark.requirement("PIP-10")


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened = STORES[request.param](tmp_path)
    await opened.open()
    yield opened
    await opened.close()


def lease(
    name: str = "a",
    *,
    fencing_token: int = 1,
    batch_number: int = 0,
    settled: int = 0,
    selector: str = "",
    terminus: StoredTerminus | None = None,
) -> StoredLease:
    return StoredLease(
        name=name,
        queue="q",
        selector=selector,
        fencing_token=fencing_token,
        ttl_ms=3_600_000,
        batch_number=batch_number,
        settled=settled,
        terminus=terminus,
    )


def terminus(link: str, *, timeout_s: int = 60) -> StoredTerminus:
    return StoredTerminus(
        container_id="client",
        link=link,
        owner="alice",
        address="q",
        expiry_policy="connection-close",
        timeout_s=timeout_s,
        default_outcome=b"\0\xff",
    )


def lease_batch(number: int, *numbers: int, of: str = "a") -> StoredLeaseBatch:
    return StoredLeaseBatch(
        lease=of,
        batch_number=number,
        slice_count=3,
        numbers=list(numbers),
        slices=bytes(each % 3 for each in numbers),
        counts=[each % 5 for each in numbers],
    )


def told(found: StoredLeases) -> tuple[list[str], list[str], int]:
    """Return the stored leases and batches as texts, and the highest fencing token."""
    leases = [
        f"{each.name} {each.queue} {each.selector!r} {each.fencing_token} {each.ttl_ms}"
        f" {each.batch_number} {each.settled}"
        for each in found.leases
    ]
    batches = [
        f"{each.lease} {each.batch_number} {each.slice_count} {each.numbers} {list(each.slices)}"
        f" {each.counts}"
        for each in found.batches
    ]
    assert not found.damaged
    return leases, batches, int(found.fencing_token)


async def test_a_store_has_no_leases_at_first(store: Store) -> None:
    assert told(await store.leases()) == ([], [], 0)


async def test_a_lease_is_kept_with_its_batches(store: Store) -> None:
    batch = Batch()
    changes = batch.lease_changes()
    assert not batch.is_empty()
    assert batch.is_urgent
    changes.keep(lease("b", selector="text = 'a\0\N{SNOWMAN}'"))
    changes.keep(lease("a", fencing_token=2, batch_number=2))
    changes.acquire(lease_batch(1, 7, 5, 2**62, 6))
    changes.acquire(lease_batch(2, 8))
    await store.commit(batch)
    assert told(await store.leases()) == (
        ["a q '' 2 3600000 2 0", "b q \"text = 'a\\x00\N{SNOWMAN}'\" 1 3600000 0 0"],
        [
            f"a 1 3 [7, 5, {2**62}, 6] [1, 2, 1, 0] [2, 0, 4, 1]",
            "a 2 3 [8] [2] [3]",
        ],
        2,
    )


async def test_a_lease_is_changed_and_settled_batches_are_forgotten(store: Store) -> None:
    batch = Batch()
    batch.lease_changes().keep(lease(batch_number=2))
    batch.lease_changes().acquire(lease_batch(1, 1))
    batch.lease_changes().acquire(lease_batch(2, 2))
    await store.commit(batch)
    batch = Batch()
    batch.lease_changes().keep(lease(batch_number=3, settled=1))
    batch.lease_changes().settle("a", 1)
    batch.lease_changes().settle("a", 1)
    batch.lease_changes().acquire(lease_batch(3, 3))
    await store.commit(batch)
    leases, batches, _ = told(await store.leases())
    assert leases == ["a q '' 1 3600000 3 1"]
    assert [each[:4] for each in batches] == ["a 2 ", "a 3 "]


async def test_a_lease_that_ends_takes_its_batches_along(store: Store) -> None:
    batch = Batch()
    for name in ("a", "b"):
        batch.lease_changes().keep(lease(name, fencing_token=7))
        batch.lease_changes().acquire(lease_batch(1, 1, of=name))
    await store.commit(batch)
    batch = Batch()
    batch.lease_changes().acquire(lease_batch(2, 2))
    batch.lease_changes().end("a")
    batch.lease_changes().end("gone")
    await store.commit(batch)
    leases, batches, fencing_token = told(await store.leases())
    assert leases == ["b q '' 7 3600000 0 0"]
    assert [each[:4] for each in batches] == ["b 1 "]
    assert fencing_token == 7, "none is given again, though its lease may be gone"


async def test_a_lease_may_begin_anew_in_the_batch_of_its_end(store: Store) -> None:
    batch = Batch()
    batch.lease_changes().keep(lease(batch_number=1))
    batch.lease_changes().acquire(lease_batch(1, 1))
    await store.commit(batch)
    batch = Batch()
    batch.lease_changes().end("a")
    batch.lease_changes().keep(lease(fencing_token=2, batch_number=1))
    batch.lease_changes().acquire(lease_batch(1, 9))
    await store.commit(batch)
    leases, batches, _ = told(await store.leases())
    assert leases == ["a q '' 2 3600000 1 0"]
    assert [each[:12] for each in batches] == ["a 1 3 [9] [0"]


async def test_a_batch_of_a_lease_that_comes_and_goes_in_one_commit_leaves_no_trace(
    store: Store,
) -> None:
    batch = Batch()
    batch.lease_changes().keep(lease(batch_number=1, settled=1))
    batch.lease_changes().acquire(lease_batch(1, 1))
    batch.lease_changes().settle("a", 1)
    await store.commit(batch)
    assert told(await store.leases())[1] == []


async def termini_in(store: Store) -> dict[str, tuple[str, int] | None]:
    """Return link and timeout of the source that owns each lease, None if none does."""
    found: dict[str, tuple[str, int] | None] = {}
    for each in (await store.leases()).leases:
        owner = each.terminus
        found[each.name] = None if owner is None else (owner.link, int(owner.timeout_s))
    return found


@pytest.mark.requirement("RCV-08")
async def test_a_lease_is_kept_with_the_source_that_owns_it(store: Store) -> None:
    batch = Batch()
    batch.lease_changes().keep(lease("a", terminus=terminus("link")))
    batch.lease_changes().keep(lease("b"))
    await store.commit(batch)
    owned, other = (await store.leases()).leases
    source = owned.terminus
    assert source is not None
    assert (source.container_id, source.link, source.owner) == ("client", "link", "alice")
    assert (source.address, source.expiry_policy, source.timeout_s) == ("q", "connection-close", 60)
    assert source.default_outcome == b"\0\xff"
    assert other.terminus is None


@pytest.mark.requirement("RCV-08")
async def test_the_source_of_a_lease_is_replaced_and_ends_with_it(store: Store) -> None:
    batch = Batch()
    for name in ("a", "b"):
        batch.lease_changes().keep(lease(name, terminus=terminus(name)))
    await store.commit(batch)
    batch = Batch()
    batch.lease_changes().keep(lease("a", terminus=terminus("another", timeout_s=7)))
    batch.lease_changes().end("b")
    await store.commit(batch)
    assert await termini_in(store) == {"a": ("another", 7)}
    batch = Batch()
    batch.lease_changes().keep(lease("b"))
    await store.commit(batch)
    assert await termini_in(store) == {"a": ("another", 7), "b": None}
