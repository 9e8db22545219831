"""Restores leases at a start, with their messages in the same batches, slices and order.

Those that sources of links own are restored as suspended termini (`restored_sources.py`).
"""

from __future__ import annotations

from typing import Final, final

from broker.links.restored_sources import RestoredSources
from broker.log_events import LEASE_DAMAGED
from broker.routing.batches.lease import BatchLease
from broker.routing.batches.lease_batch import LeaseBatch
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.record_mapping import take_leased_count
from broker.routing.queues.queue import Queue
from broker.routing.router import Router
from broker.routing.selector import parse_selector
from storage.batch import Batch
from storage.leases import StoredLease, StoredLeaseBatch
from storage.records import StoredMessage


@final
class LeasedMessages:
    """Takes leases from the store, then their batches, then messages in any order.

    A lease ends if its queue is gone, or if one of its batches cannot be read: its messages are
    then ready again.
    """

    def __init__(self, router: Router, batch: Batch) -> None:
        self._router: Final = router
        self._batch: Final = batch
        self._batches: Final[list[tuple[BatchLease, StoredLeaseBatch]]] = []
        self._numbers: Final[set[int]] = set()
        self._entries: Final[dict[int, QueueEntry]] = {}
        self._queue_of: Final[dict[int, Queue]] = {}
        self._sources: Final = RestoredSources(router, batch)

    def lease(self, stored: StoredLease, queue: Queue | None) -> None:
        """Restore a lease on `queue`; end it if that is None."""
        leases = self._router.leases
        if stored.terminus is not None:
            self._sources.lease(stored.name, stored.terminus, queue)
            return
        if queue is None:
            self._batch.lease_changes().end(stored.name)
            return
        lease = leases.add(
            stored.name,
            queue,
            subscription=self._router.subscriptions.of.get(queue),
            selector=parse_selector(stored.selector) if stored.selector else None,
        )
        lease.fencing_token = stored.fencing_token
        lease.ttl_ms = stored.ttl_ms
        lease.batch_number = stored.batch_number
        lease.settled = stored.settled

    def damaged(self, name: str) -> Queue | None:
        """End a lease of which a batch cannot be read: its messages are not known.

        Return its queue, None if there is no such lease any more.
        """
        leases = self._router.leases
        lease = leases.named.get(name)
        if lease is None:
            return self._sources.damaged(name)
        self._router.notices.append(LEASE_DAMAGED.notice(f"lease {name} is damaged, and has ended"))
        leases.release(name, self._batch)
        return lease.queue

    def lease_batch(self, stored: StoredLeaseBatch) -> None:
        """Take a batch, unless its lease has ended."""
        lease = self._router.leases.named.get(stored.lease)
        if lease is not None:
            self._batches.append((lease, stored))
        queue = self._sources.lease_batch(stored) if lease is None else lease.queue
        if queue is not None:
            for number in stored.numbers:
                self._queue_of[number] = queue

    def claim(self, number: int) -> bool:
        """Note that the message of that number is stored, if a lease has it; return whether."""
        is_leased = number in self._queue_of
        if is_leased:
            self._numbers.add(number)
        return is_leased

    def numbers(self) -> list[int]:
        """Return the numbers of the leased messages that `claim` has noted, ascending."""
        return sorted(self._numbers)

    def message(self, stored: StoredMessage) -> None:
        """Take the record of a message that a lease has."""
        number = int(stored.number)
        entry = self._queue_of[number].entry_of(stored, stored.position // 10)
        self._entries[number] = entry

    def finish(self) -> None:
        """Let the leases hold their messages again; one without messages rests until it is used."""
        holding = {lease for lease, _ in self._batches}
        for lease in self._router.leases.named.values():
            self._router.leases.come_back(lease, holds=lease in holding)
        for lease, stored in self._batches:
            lease_batch = LeaseBatch(stored.batch_number, stored.slice_count, list(stored.slices))
            lost = 0
            for index, number in enumerate(stored.numbers):
                entry = self._entries.get(number)
                if entry is None:
                    lease_batch.leave_out()
                    lost += 1
                    continue
                take_leased_count(entry, stored.counts[index])
                lease.queue.bring_back_acquired(entry, lease)
                lease_batch.add(entry)
            lease.batches[int(stored.batch_number)] = lease_batch
            if lost > 0:
                self._router.notices.append(
                    LEASE_DAMAGED.notice(
                        f"{lost} messages of batch {stored.batch_number} of lease {lease.name}"
                        " could not be read, and are left out"
                    )
                )
        self._batches.clear()
        self._sources.finish(self._entries)
        self._entries.clear()
