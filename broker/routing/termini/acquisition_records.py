"""Records of what the links of a source have acquired, so that it outlives the broker (core 3.5.5).

A source with the durability `unsettled-state` owns a lease in the store: the entries that its links
acquire in one round are a batch of that lease, written in the commit of the round. A message that
is consumed leaves the store, and with it its batch, without a write. A batch is written anew when
one of its entries returns to the queue, and deleted when it has no entries.

The client of such a source hears of no change before its commit: of a delivery that it may resume
after a crash, or that the broker settles its outcome.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, trait

from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.participants import QueueObserver
from broker.routing.entries.record_mapping import leased_count
from broker.routing.entries.redelivery import Disposal
from storage.leases import StoredLease, StoredLeaseBatch

if TYPE_CHECKING:
    from broker.routing.entries.dead_letter import Cause
    from broker.routing.queues.queue import Queue
    from storage.batch import Batch
    from storage.leases import StoredTerminus

NAME_PREFIX: Final = "$terminus/"
"""Beginning of the names of leases that sources own; a random part follows."""


@trait
class DeferrableOutput:
    """The output to a client, which may have to wait for a commit."""

    @abstractmethod
    def withhold(self) -> None:
        """Write nothing until the changes noted now are durable."""


@final
class AcquiredBatch:
    """Entries that a link acquired in one round; `is_stored` if the store has a row of them."""

    def __init__(self, record: AcquisitionRecord, number: i64, *, is_stored: bool) -> None:
        self.record: Final = record
        self.number: Final[i64] = number
        self.entries: Final[dict[QueueEntry, None]] = {}
        self.is_stored = is_stored

    def as_stored(self) -> StoredLeaseBatch:
        """Return the record that the store keeps, in the form of a lease's batch of one slice."""
        entries = list(self.entries)
        return StoredLeaseBatch(
            lease=self.record.name,
            batch_number=self.number,
            slice_count=1,
            numbers=[int(entry.stored_number) for entry in entries],
            slices=bytes(len(entries)),
            counts=[leased_count(entry) for entry in entries],
        )


@final
class AcquisitionRecord:
    """The entries that links of one source hold, as the store has them or is about to get them.

    `name` is that of the lease. The source is described by `terminus`. `client` is the one that has
    a link of the source, or a session from which outcomes may still come; None without one.
    """

    def __init__(self, records: AcquisitionRecords, queue: Queue, terminus: StoredTerminus) -> None:
        self.name = NAME_PREFIX + secrets.token_urlsafe(16)
        self.terminus = terminus
        self.client: DeferrableOutput | None = None
        self._records: Final = records
        self._queue: Final = queue
        self._observer: Final = records.observe(queue)
        self._batches: Final[dict[AcquiredBatch, None]] = {}
        self._changed: Final[dict[AcquiredBatch, None]] = {}
        self._gathering: AcquiredBatch | None = None
        self._has_news = False
        self._last_number: i64 = 0
        # the store has a row of the lease; and that says what `terminus` says
        self._is_stored = False
        self._is_described = False

    # -- entries

    def acquired(self, entry: QueueEntry) -> None:
        """Note that a link of the source holds `entry`.

        No effect if it is noted already, or if its message does not outlive the broker.
        """
        if entry.stored_number == NOT_STORED or entry.is_volatile or self._observer.has(entry):
            return
        gathering = self._gathering
        if gathering is None:
            gathering = self._gathering = self._new_batch(self._last_number + 1, is_stored=False)
            self._change(gathering)
        self._observer.hold(entry, gathering)

    def _new_batch(self, number: i64, *, is_stored: bool) -> AcquiredBatch:
        self._last_number = max(self._last_number, number)
        made = AcquiredBatch(self, number, is_stored=is_stored)
        self._batches[made] = None
        return made

    def has(self, entry: QueueEntry) -> bool:
        """Return whether `entry` is noted: the store has it, or gets it with the next commit."""
        return self._observer.has(entry)

    def left(self, entry: QueueEntry, held_in: AcquiredBatch, *, is_consumed: bool) -> None:
        """Note that no link holds `entry` any more; `is_consumed`: it leaves the store, too."""
        del held_in.entries[entry]
        if not is_consumed or not held_in.entries:
            self._change(held_in)
        else:
            self._note()

    def renew(self, terminus: StoredTerminus) -> None:
        """Let `terminus` describe the source from now on: a new link has attached."""
        self.terminus = terminus
        self._is_described = False
        self._note()

    # -- the store

    def _change(self, changed: AcquiredBatch) -> None:
        self._changed[changed] = None
        self._note()

    def _note(self) -> None:
        """Have the record written at the end of the round; let the client wait for that commit."""
        if self._has_news:
            return
        self._has_news = True
        self._records.note(self)
        if self.client is not None:
            self.client.withhold()

    def write(self, batch: Batch) -> None:
        """Note in `batch` what has changed since the last call."""
        self._gathering = None
        self._has_news = False
        for each in self._changed:
            if each.entries:
                batch.lease_changes().acquire(each.as_stored())
                each.is_stored = True
                continue
            self._batches.pop(each, None)
            if each.is_stored:
                batch.lease_changes().settle(self.name, each.number)
                each.is_stored = False
        self._changed.clear()
        if not self._is_described and self._batches:
            batch.lease_changes().keep(self._as_stored())
            self._is_stored = self._is_described = True

    def _as_stored(self) -> StoredLease:
        return StoredLease(
            name=self.name,
            queue=self._queue.persistence.stored_as,
            selector="",
            fencing_token=0,
            ttl_ms=0,
            batch_number=0,
            settled=0,
            terminus=self.terminus,
        )

    def end(self, batch: Batch) -> None:
        """Remove the record from the store: no link can resume the deliveries any more."""
        self.leave_to_store()
        if self._is_stored:
            self._is_stored = False
            batch.lease_changes().end(self.name)

    def leave_to_store(self) -> None:
        """Follow the entries no more, and leave the rows as they are: the broker stops."""
        for each in self._batches:
            for entry in each.entries:
                self._observer.let_go(entry)
        self._batches.clear()
        self._changed.clear()
        self.client = None
        self._records.forget(self, self._queue)

    # -- a start

    def bring_back(self, name: str) -> None:
        """Take over the name of a lease of the store, which describes the source as here."""
        self.name = name
        self._is_stored = self._is_described = True

    def bring_back_batch(self, number: i64, entries: list[QueueEntry]) -> None:
        """Restore a batch of the store with those of its entries that are still there."""
        found = self._new_batch(number, is_stored=True)
        for entry in entries:
            self._observer.hold(entry, found)
        if not entries:
            self._change(found)


@final
class AcquisitionObserver(QueueObserver):
    """The observer of a queue with such sources: it follows the entries that these hold.

    It passes each event on to `others`, the observer that the queue would have without it.
    `sources` counts the records that use it.
    """

    def __init__(self, others: QueueObserver | None) -> None:
        self.others: Final = others
        self.sources = 0
        self._held: Final[dict[QueueEntry, AcquiredBatch]] = {}

    def has(self, entry: QueueEntry) -> bool:
        """Return whether `entry` is followed."""
        return entry in self._held

    def hold(self, entry: QueueEntry, held_in: AcquiredBatch) -> None:
        """Follow `entry`, which is in that batch."""
        held_in.entries[entry] = None
        self._held[entry] = held_in

    def let_go(self, entry: QueueEntry) -> None:
        """Follow `entry` no more."""
        self._held.pop(entry, None)

    def admitted(self, entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
        if self.others is not None:
            self.others.admitted(entry, deliver_at_ms, batch)

    def delivered(self, entry: QueueEntry, batch: Batch) -> None:
        if self.others is not None:
            self.others.delivered(entry, batch)

    def settled(
        self, entry: QueueEntry, disposal: Disposal, batch: Batch, *, cause: Cause | None = None
    ) -> None:
        held_in = self._held.pop(entry, None)
        if held_in is not None:
            held_in.record.left(entry, held_in, is_consumed=disposal is Disposal.REMOVE)
        if self.others is not None:
            self.others.settled(entry, disposal, batch, cause=cause)

    def departed(self, entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
        if self.others is not None:
            self.others.departed(entry, kind, batch, reason=reason)

    def dropped(self, queue: Queue, messages: i64, batch: Batch, *, why: str) -> None:
        if self.others is not None:
            self.others.dropped(queue, messages, batch, why=why)


@final
class AcquisitionRecords:
    """The records of one broker. `any`: at least one has changed since the last `write`."""

    def __init__(self) -> None:
        self.any = False
        self._changed: dict[AcquisitionRecord, None] = {}
        self._observers: Final[dict[Queue, AcquisitionObserver]] = {}

    def note(self, record: AcquisitionRecord) -> None:
        """Have `write` look at `record`."""
        self._changed[record] = None
        self.any = True

    def write(self, batch: Batch) -> None:
        """Note in `batch` what has changed; call it at the end of each round."""
        self.any = False
        changed = self._changed
        self._changed = {}
        for record in changed:
            record.write(batch)

    def observe(self, queue: Queue) -> AcquisitionObserver:
        """Return the observer of `queue`, put in place for the first record."""
        found = self._observers.get(queue)
        if found is None:
            found = self._observers[queue] = AcquisitionObserver(queue.state.observer)
            queue.state.observer = found
        found.sources += 1
        return found

    def forget(self, record: AcquisitionRecord, queue: Queue) -> None:
        """Note that `record` has ended; without others on `queue`, take its observer away."""
        self._changed.pop(record, None)
        observer = self._observers.get(queue)
        if observer is None:
            return
        observer.sources -= 1
        if observer.sources == 0:
            del self._observers[queue]
            queue.state.observer = observer.others
