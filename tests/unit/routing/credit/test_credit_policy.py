"""The order in which shortages of the whole broker hold producers back."""

from __future__ import annotations

import pytest

from broker.routing.credit.credit_policy import CreditPolicy
from broker.routing.credit.disk_guard import DiskGuard
from broker.routing.credit.memory import MemoryBudget
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing
from tests.unit.routing.credit.test_disk_guard import LEAST, Disk


def policy_with(*, disk: bool, store: bool, memory: bool) -> CreditPolicy:
    """Return the policy of a broker that is short of these."""
    policy = CreditPolicy(MemoryBudget(1024))
    policy.disk_guard = DiskGuard(Routing().router.context.routing, Disk(), LEAST)
    policy.disk_guard.is_short = disk
    policy.store_backpressure.is_behind = store
    policy.memory.is_short = memory
    return policy


CASES = [
    pytest.param(True, True, True, "disk", id="the disk comes first"),
    pytest.param(False, True, True, "store", id="then the store"),
    pytest.param(False, False, True, "memory", id="then the memory"),
    pytest.param(False, False, False, None, id="nothing is short"),
]


@pytest.mark.parametrize(("disk", "store", "memory", "expected"), CASES)
def test_a_producer_waits_for_one_shortage(
    disk: bool, store: bool, memory: bool, expected: str | None
) -> None:
    policy = policy_with(disk=disk, store=store, memory=memory)
    assert policy.disk_guard is not None
    waiting = {
        "disk": policy.disk_guard.waiting,
        "store": policy.store_backpressure.waiting,
        "memory": policy.memory.producers,
    }
    assert policy.shortage() is (None if expected is None else waiting[expected])


def test_without_a_disk_the_other_shortages_count() -> None:
    policy = CreditPolicy(MemoryBudget(1024))
    assert policy.shortage() is None
    policy.store_backpressure.is_behind = True
    assert policy.shortage() is policy.store_backpressure.waiting


def test_a_producer_that_leaves_waits_for_nothing() -> None:
    policy = policy_with(disk=True, store=False, memory=False)
    producer = RecordingProducer()
    shortage = policy.shortage()
    assert shortage is not None
    shortage.wait(producer)
    policy.leave(producer)
    shortage.resume()
    assert producer.resumed == 0
