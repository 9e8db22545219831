"""Batches of leases in rows; tests/contract shows the effect of the statements."""

from pathlib import Path

import pytest

from storage.batch import Batch
from storage.sql.leases import packed, unpacked
from storage.sql.sqlite.store import SqliteStore
from tests.contract.test_leases import lease, lease_batch
from tests.support.stored_files import change, rows

pytestmark = pytest.mark.requirement("PIP-10")


def test_a_batch_of_consecutive_numbers_is_stored_small() -> None:
    assert len(packed(lease_batch(1, *range(5000, 15_000)))) < 10_000 * 2


def test_a_batch_is_read_as_it_was_stored() -> None:
    before = lease_batch(7, 9, 3, 2**62)
    after = unpacked("a", 7, packed(before))
    assert after is not None
    assert (after.numbers, after.slices, after.counts, after.slice_count, after.batch_number) == (
        before.numbers,
        before.slices,
        before.counts,
        before.slice_count,
        before.batch_number,
    )


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda row: row[:-5], id="cut"),
        pytest.param(lambda row: row[:20] + b"\xff" + row[21:], id="a byte"),
        pytest.param(lambda row: b"", id="empty"),  # noqa: ARG005
    ],
)
def test_damage_is_noticed(damage: object) -> None:
    assert callable(damage)
    assert unpacked("a", 1, damage(packed(lease_batch(1, *range(100))))) is None


async def test_fencing_tokens_go_on_behind_those_of_leases_if_the_mark_is_lost(
    tmp_path: Path,
) -> None:
    """A salvage of an older release wrote no mark: the next token was then 1."""
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    for name, token in (("a", 5), ("b", 3)):
        batch.lease_changes().keep(lease(name, fencing_token=token))
    await store.commit(batch)
    await store.close()
    change(database, "DELETE FROM mark WHERE name = 'generations'")
    again = SqliteStore(database)
    await again.open()
    assert (await again.leases()).fencing_token == 5
    await again.close()
    marked = rows(database, "SELECT value FROM mark WHERE name = 'generations'")
    assert marked == [(5,)], "it stays so if the leases end"
