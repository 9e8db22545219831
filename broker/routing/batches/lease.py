"""A lease: a consumer that outlives its connection, and acquires messages in batches.

For its queue it is like any other consumer: selector, priority, groups, exclusivity. It has room
only while a client waits for the next batch (`Gathering`).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.routing.batches.lease_batch import LeaseBatch, LeaseBatchBuilder
from broker.routing.entries.browse_slice import WHENEVER, BrowseSlice
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.participants import Consumer, Label
from broker.routing.entries.record_mapping import leased_count
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import LeaseGone, NoSuchLeaseBatch, RoutingError
from broker.routing.selector import Selector
from broker.routing.timer_queue import TimerCallback, TimerQueue
from storage.batch import Batch
from storage.leases import StoredLease, StoredLeaseBatch

if TYPE_CHECKING:
    from broker.routing.batches.leases import Leases
    from broker.routing.queues.queue import Queue
    from broker.routing.topics.subscription import Subscription

UNSETTLED_MAX: Final = 16
"""Maximum unsettled batches of a lease: their messages are in memory."""

LEASE_BATCH_BYTES_MAX: Final[i64] = 256 * 1024 * 1024
"""Bytes at which a batch ends, whatever is requested; its last message may exceed them."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Acquirer:
    """A request that waits for a batch. One of its two methods is called, once."""

    @abstractmethod
    def acquired(self, lease_batch: LeaseBatch | None) -> None:
        """Take the batch, which is noted for the store; None if no message came to make one."""

    @abstractmethod
    def refused(self, why: RoutingError) -> None:
        """Take the refusal `why`: there will be no batch."""


@final
class Wanted:
    """The properties of a requested batch.

    It is cut into `slices`. `max_bytes` 0 sets no limit but LEASE_BATCH_BYTES_MAX. Messages that
    arrived after `arrived_until_ms`, on the wall clock, are left out, unless it is WHENEVER.
    `wait_ms` is the maximum wait for a first message.
    """

    def __init__(
        self,
        *,
        max_messages: i64 = 10_000,
        max_bytes: i64 = 0,
        slices: i64 = 4,
        arrived_until_ms: i64 = WHENEVER,
        wait_ms: i64 = 0,
    ) -> None:
        most = LEASE_BATCH_BYTES_MAX
        self.max_messages: Final[i64] = max_messages
        self.max_bytes: Final[i64] = min(max_bytes, most) if max_bytes > 0 else most
        self.slices: Final[i64] = slices
        self.arrived_until_ms: Final[i64] = arrived_until_ms
        self.wait_ms: Final[i64] = wait_ms


@final
class Gathering:
    """A batch that is being made for `acquirer`.

    It waits for messages until `until_ms`, on the steady clock. `is_draining`: the queue will
    report when it has no more messages for the lease. `is_awake`: it has reported that, and then
    a message came. `is_over`: it gets no more messages. `builder` makes the batch from then on.
    """

    def __init__(self, acquirer: Acquirer, wanted: Wanted, until_ms: i64) -> None:
        self.acquirer = acquirer
        self.wanted: Final = wanted
        self.until_ms: Final[i64] = until_ms
        self.entries: Final[list[QueueEntry]] = []
        self.bytes: i64 = 0
        self.is_draining = True
        self.is_awake = False
        self.is_over = False
        self.builder: LeaseBatchBuilder | None = None

    def add(self, entry: QueueEntry) -> None:
        """Add `entry`; set `is_over` if it is the last one."""
        self.entries.append(entry)
        self.bytes += entry.message.size
        wanted = self.wanted
        self.is_over = (
            i64(len(self.entries)) >= wanted.max_messages or self.bytes >= wanted.max_bytes
        )


@final
class BatchLease(Consumer):
    """The state of one lease, which is a consumer of its queue.

    `batch_number` is that of the last batch that was acquired. All batches up to `settled` are
    settled; `batches` has the others. A client whose fencing token is older than `fencing_token`
    is fenced off. With a `ttl_ms` the lease expires `ttl_ms` after the last sign of life, on the
    steady clock; 0 is never. `until_ms`: messages that arrived later are not wanted now. A lease
    that `rests` holds no messages, and is detached from its queue. With a `bridge` it leaves out
    what may not pass the bridge of that name.
    """

    def __init__(
        self,
        leases: Leases,
        name: str,
        queue: Queue,
        *,
        subscription: Subscription | None,
        selector: Selector | None,
    ) -> None:
        self.leases = True
        self.name: Final = name
        self.queue: Final = queue
        self.subscription: Final = subscription
        self.selector: Selector | None = selector
        self.filter = None if selector is None else ConsumerFilter(selector)
        self.fencing_token: i64 = 0
        self.ttl_ms: i64 = 0
        self.deadline_ms: i64 = 0
        self.batch_number: i64 = 0
        self.settled: i64 = 0
        self.batches: Final[dict[int, LeaseBatch]] = {}
        self.gathering: Gathering | None = None
        self.is_over = False
        self.rests = True
        self.timer: Final = LeaseTimer(self)
        self._leases: Final = leases
        self.until_ms: i64 = WHENEVER
        self.bridge = ""

    # -- as a consumer

    def has_room(self) -> bool:
        gathering = self.gathering
        return gathering is not None and not gathering.is_over

    def has_credit(self) -> bool:
        return self.has_room()

    def deliver(self, entry: QueueEntry) -> None:
        gathering = self.gathering
        assert gathering is not None
        gathering.add(entry)
        gathering.is_awake = not gathering.is_draining
        if gathering.is_over or gathering.is_awake:
            self._leases.look_at(self)

    def browsed(self, entry: QueueEntry) -> None:  # noqa: ARG002 - never called
        raise AssertionError("a lease takes")

    def nothing_waits(self) -> None:
        gathering = self.gathering
        if gathering is not None:
            gathering.is_draining = False
            self._leases.look_at(self)

    def label(self) -> Label:
        return Label(self.name, "lease", str(int(self.fencing_token)))

    def node_deleted(self) -> None:
        self._leases.lost(self)

    def tell_due(self) -> None:
        """Have the lease looked at: a deadline may have passed."""
        self._leases.look_at(self)

    # -- the messages that it wants

    def aim(
        self, selector: Selector | None, arrived_until_ms: i64, *, bridge: str | None = None
    ) -> None:
        """Take only messages that `selector` selects and that arrived by `arrived_until_ms`.

        `bridge` None leaves that as it is. Messages in the queue are judged again. No effect if all
        are as before.
        """
        bridge = self.bridge if bridge is None else bridge
        if (
            selector == self.selector
            and arrived_until_ms == self.until_ms
            and bridge == self.bridge
        ):
            return
        self.selector = selector
        self.until_ms = arrived_until_ms
        self.bridge = bridge
        part = (
            None if arrived_until_ms == WHENEVER else BrowseSlice(arrived_until_ms=arrived_until_ms)
        )
        self.filter = (
            None
            if selector is None and part is None and not bridge
            else ConsumerFilter(selector, part=part, bridge=bridge)
        )
        self.queue.delivery.start_over(self)

    # -- the messages that it holds

    def held(self) -> i64:
        """Return how many messages its unsettled batches have."""
        count: i64 = 0
        for lease_batch in self.batches.values():
            count += len(lease_batch.entries)
        return count

    def entries(self) -> list[QueueEntry]:
        """Return the entries of its unsettled batches, and of the batch that is being made."""
        found = [entry for lease_batch in self.batches.values() for entry in lease_batch.entries]
        return found if self.gathering is None else found + self.gathering.entries

    def slice_of(self, batch_number: i64, index: i64) -> list[QueueEntry]:
        """Return the entries of a slice, in order.

        Raise LeaseGone if the batch is settled, NoSuchLeaseBatch if there is none, or no slice.
        """
        if batch_number <= self.settled:
            raise LeaseGone(f"gone: batch {batch_number} of lease {self.name:.255} is settled")
        found = self.batches.get(int(batch_number))
        if found is None:
            raise NoSuchLeaseBatch(f"lease {self.name:.255} has no batch {batch_number}")
        if not 0 <= index < found.slice_count:
            raise NoSuchLeaseBatch(
                f"batch {batch_number} of lease {self.name:.255} has no slice {index}"
            )
        return found.slice(index)

    def take_out(self, batch_number: i64, entries: dict[QueueEntry, None], batch: Batch) -> None:
        """Remove `entries` from an unsettled batch, also in the store; the caller disposes of them.

        Raise NoSuchLeaseBatch if there is no such batch.
        """
        found = self.batches.get(int(batch_number))
        if found is None:
            raise NoSuchLeaseBatch(f"lease {self.name:.255} has no batch {batch_number}")
        found.take_out(entries)
        batch.lease_changes().acquire(as_stored_lease_batch(self, found))

    def give_back(self, disposal: Disposal, batch: Batch) -> None:
        """Return the messages that it holds to the queue as `disposal` says, at its end in `batch`.

        The queue delivers none before `batch` is durable: a start after a kill would give them to
        the lease again, as new, though another consumer had received them.
        """
        if self.batches:
            self.queue.persistence.wait_for(batch)
        for lease_batch in self.batches.values():
            for entry in lease_batch.entries:
                entry.queue.dispose(entry, disposal, batch)

    def as_stored(self) -> StoredLease:
        """Return the record that the store keeps of the lease."""
        return StoredLease(
            name=self.name,
            queue=self.queue.persistence.stored_as,
            selector="" if self.selector is None else self.selector.text,
            fencing_token=self.fencing_token,
            ttl_ms=self.ttl_ms,
            batch_number=self.batch_number,
            settled=self.settled,
        )


@final
class LeaseTimer(TimerCallback):
    """A lease's timer in the timer queue, from which no deadline is removed before its time.

    So it remembers the deadlines that it has there, latest first, and adds one only if it is
    earlier than all of them.
    """

    def __init__(self, lease: BatchLease) -> None:
        self.lease: BatchLease | None = lease
        self._set_for: Final[list[int]] = []

    def set(self, timer_queue: TimerQueue, deadline_ms: i64) -> None:
        """Have the lease looked at no later than `deadline_ms`."""
        if not self._set_for or self._set_for[-1] > deadline_ms:
            self._set_for.append(int(deadline_ms))
            timer_queue.at(deadline_ms, self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - `Leases` reads the clock
        self._set_for.pop()
        lease = self.lease
        if lease is not None:
            lease.tell_due()


def as_stored_lease_batch(lease: BatchLease, lease_batch: LeaseBatch) -> StoredLeaseBatch:
    """Return the record that the store keeps of a batch.

    It has the delivery counts too, since slices must be the same after a restart.
    """
    return StoredLeaseBatch(
        lease=lease.name,
        batch_number=lease_batch.number,
        slice_count=lease_batch.slice_count,
        numbers=[int(entry.stored_number) for entry in lease_batch.entries],
        slices=bytes(lease_batch.slices),
        counts=[leased_count(entry) for entry in lease_batch.entries],
    )
