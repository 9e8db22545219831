"""Changes to leases in a batch: the last one counts."""

import pytest

from storage.leases import LeaseChanges
from tests.contract.test_leases import lease, lease_batch

pytestmark = pytest.mark.requirement("PIP-10")


def test_what_is_noted_last_counts() -> None:
    changes = LeaseChanges()
    changes.keep(lease(fencing_token=3))
    changes.keep(lease(fencing_token=4))
    changes.acquire(lease_batch(1, 1))
    changes.settle("a", 1)
    assert [each.fencing_token for each in changes.leases.values() if each is not None] == [4]
    assert changes.batches == {("a", 1): None}
    assert changes.fencing_token == 4


def test_the_end_of_a_lease_removes_its_batches_of_the_same_commit() -> None:
    changes = LeaseChanges()
    changes.acquire(lease_batch(1, 1))
    changes.acquire(lease_batch(1, 1, of="b"))
    changes.end("a")
    assert list(changes.batches) == [("b", 1)]
    assert list(changes.ended) == ["a"]
    assert changes.leases == {"a": None}
