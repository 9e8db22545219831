"""Batches of leases in rows; tests/contract shows the effect of the statements."""

import pytest

from storage.sql.leases import packed, unpacked
from tests.contract.test_leases import lease_batch

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
