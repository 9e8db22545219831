"""Restores sources whose unsettled deliveries outlive the broker, before any client connects."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.outcomes import Outcome, read_outcome
from broker.links.credited_consumer import tag_of
from broker.links.outcome import abandonment, cause_of
from broker.log_events import LEASE_DAMAGED
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.groups import NOBODY
from broker.routing.entries.participants import Label
from broker.routing.entries.record_mapping import take_leased_count
from broker.routing.queues.queue import Queue
from broker.routing.router import Router
from broker.routing.termini.acquisition_records import AcquisitionRecord
from broker.routing.termini.kept_deliveries import AbsentConsumer, KeptDeliveries, KeptDelivery
from broker.routing.termini.suspended import SuspendedTerminus
from broker.routing.topics.lifetime import Ending, ExpiryPolicy
from storage.batch import Batch
from storage.leases import StoredLeaseBatch, StoredTerminus


@final
class RestoredSource:
    """A source of the store: `name` is that of its lease, `batches` are those of the lease."""

    def __init__(self, name: str, terminus: StoredTerminus, queue: Queue) -> None:
        self.name: Final = name
        self.terminus: Final = terminus
        self.queue: Final = queue
        self.batches: Final[list[StoredLeaseBatch]] = []


@final
class RestoredSources:
    """Takes the leases that sources own, then their batches, then messages.

    Each source becomes a suspended terminus, whose time begins anew. It ends if its queue is gone,
    or if one of its batches cannot be read: its messages are then ready again. Messages of a batch
    that are gone have been consumed.
    """

    def __init__(self, router: Router, batch: Batch) -> None:
        self._router: Final = router
        self._batch: Final = batch
        self._sources: Final[dict[str, RestoredSource]] = {}

    def lease(self, name: str, terminus: StoredTerminus, queue: Queue | None) -> None:
        """Restore the lease of that name, which `terminus` owns; end it if `queue` is None."""
        if queue is None:
            self._batch.lease_changes().end(name)
        else:
            self._sources[name] = RestoredSource(name, terminus, queue)

    def damaged(self, name: str) -> Queue | None:
        """End a lease of which a batch cannot be read; return its queue, None if it is not here."""
        source = self._sources.pop(name, None)
        if source is None:
            return None
        self._batch.lease_changes().end(name)
        terminus = source.terminus
        self._router.notices.append(
            LEASE_DAMAGED.notice(
                f"what link {terminus.link:.255} of {terminus.container_id:.255} held is damaged in"
                " the store, and cannot be resumed"
            )
        )
        return source.queue

    def lease_batch(self, stored: StoredLeaseBatch) -> Queue | None:
        """Take a batch of a lease; return the queue of its messages, None if it is not here."""
        source = self._sources.get(stored.lease)
        if source is None:
            return None
        source.batches.append(stored)
        return source.queue

    def finish(self, entries: dict[int, QueueEntry]) -> None:
        """Suspend the sources with their `entries`, which are given by stored numbers."""
        for source in self._sources.values():
            self._suspend(source, entries)
        self._sources.clear()

    def _suspend(self, source: RestoredSource, entries: dict[int, QueueEntry]) -> None:
        terminus, queue, termini = source.terminus, source.queue, self._router.termini
        absent = AbsentConsumer(NOBODY, 0, Label(terminus.container_id, terminus.link))
        kept = KeptDeliveries()
        record = kept.record = AcquisitionRecord(termini.records, queue, terminus)
        record.bring_back(source.name)
        for stored in source.batches:
            found = _found_of(stored, entries)
            for entry in found:
                queue.bring_back_acquired(entry, absent)
                kept.add(KeptDelivery(tag_of(entry), entry))
            record.bring_back_batch(stored.batch_number, found)
        if kept.count() == 0:
            kept.end_record(self._batch)
            return
        default = _outcome_of(terminus)
        termini.suspend(
            SuspendedTerminus(
                (terminus.container_id, terminus.link, False),
                terminus.owner,
                address=terminus.address,
                terms=ExpiryPolicy(terminus.expiry_policy, timeout_s=terminus.timeout_s),
                queue=queue,
                deliveries=kept,
                disposal=abandonment(default),
                cause=cause_of(default),
            ),
            Ending.CONNECTION_LOST,
            self._batch,
            connection=-1,
            session=-1,
        )


def _found_of(stored: StoredLeaseBatch, entries: dict[int, QueueEntry]) -> list[QueueEntry]:
    """Take the entries of a batch out of `entries`, with the counts that they had as acquired."""
    found: list[QueueEntry] = []
    for index, number in enumerate(stored.numbers):
        entry = entries.pop(number, None)
        if entry is None:
            continue
        take_leased_count(entry, stored.counts[index])
        found.append(entry)
    return found


def _outcome_of(terminus: StoredTerminus) -> Outcome | None:
    encoded = terminus.default_outcome
    return read_outcome(encoded, 0, i64(len(encoded))) if encoded else None
