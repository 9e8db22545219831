"""Entries that a transaction has acquired: a rollback returns them, with an outcome or without."""

import pytest

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import NoSuchNode
from broker.routing.queues.queue import Queue
from broker.routing.transaction import (
    AcquisitionListener,
    Retirement,
    Transaction,
)
from tests.support.retirements import Recording
from tests.support.routing import Routing, counts

pytestmark = pytest.mark.requirement("RCV-06")


class RecordingAcquirer(AcquisitionListener):
    """A listener that records the end of the acquisitions it made."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def acquisition_committed(self, entry: QueueEntry) -> None:
        self.told.append(f"committed {entry.message.encoded.decode()}")

    def acquisition_rolled_back(self, entry: QueueEntry) -> None:
        self.told.append(f"rolled back {entry.message.encoded.decode()}")


def acquiring(routing: Routing, *bodies: bytes) -> tuple[Transaction, list[QueueEntry], Queue]:
    """Return a transaction that has acquired messages with these bodies, and their entries."""
    queue = routing.queue()
    routing.put(queue, *bodies)
    entries = routing.consumer(queue, credit=len(bodies)).entries
    transaction = Transaction(routing.router, operations_max=0, bytes_max=0)
    return transaction, entries, queue


def test_a_commit_leaves_acquired_entries_without_an_outcome_where_they_are() -> None:
    routing = Routing()
    transaction, (one, other), queue = acquiring(routing, b"a", b"b")
    listener = RecordingAcquirer()
    for entry in (one, other):
        transaction.acquire(entry, listener)
    transaction.retire(Retirement(one, Disposal.REMOVE))
    assert transaction.operations == 2, "an outcome of what was acquired is no further operation"
    transaction.commit(routing.batch)
    assert listener.told == ["committed a", "committed b"]
    assert counts(queue) == (0, 1, 1)


def test_a_rollback_returns_acquired_entries_in_their_order_with_an_outcome_or_without() -> None:
    routing = Routing()
    transaction, entries, queue = acquiring(routing, b"a", b"b", b"c")
    listener, holder = RecordingAcquirer(), Recording()
    for entry in reversed(entries):
        transaction.acquire(entry, listener)
    transaction.retire(Retirement(entries[1], Disposal.REMOVE, holder=holder))
    transaction.retire(Retirement(entries[2], Disposal.REMOVE))
    transaction.roll_back(routing.batch)
    assert listener.told == ["rolled back c", "rolled back b", "rolled back a"]
    assert holder.told == ["rolled back b"]
    assert [int(entry.delivery_count) for entry in entries] == [0, 1, 1]
    assert routing.consumer(queue, credit=100).taken == [b"a", b"b", b"c"]
    assert routing.router.memory.transactions == 0


def test_an_entry_that_has_left_its_queue_is_not_returned() -> None:
    routing = Routing()
    transaction, (entry,), queue = acquiring(routing, b"a")
    listener = RecordingAcquirer()
    transaction.acquire(entry, listener)
    transaction.unacquire(entry)
    queue.accept(entry, routing.batch)
    transaction.roll_back(routing.batch)
    assert listener.told == []
    assert counts(queue) == (0, 0, 0)


def test_a_commit_that_fails_rolls_acquisitions_back() -> None:
    routing = Routing()
    transaction, (entry,), queue = acquiring(routing, b"a")
    listener = RecordingAcquirer()
    transaction.acquire(entry, listener)
    transaction.doom(NoSuchNode("gone"))
    with pytest.raises(NoSuchNode):
        transaction.commit(routing.batch)
    assert listener.told == ["rolled back a"]
    assert counts(queue) == (1, 0, 1)
