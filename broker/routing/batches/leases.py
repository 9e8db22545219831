"""All leases: opens, acquires for, settles, renews and releases them, and ends those that expire.

A change of a lease is noted in the journal's batch of that moment, so the answer to a request
waits for that commit. Batches of leases are completed at the end of a round, when queues have
dispatched (`go_on`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.log_events import LEASE_RUN_OUT
from broker.routing.batches.lease import (
    UNSETTLED_MAX,
    Acquirer,
    BatchLease,
    Gathering,
    Wanted,
)
from broker.routing.batches.lease_batch import LeaseBatch, LeaseBatchBuilder, accept
from broker.routing.credit.memory import RECORD_BYTES
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import (
    HeldExclusively,
    InvalidAddress,
    LeaseFenced,
    LeaseGone,
    LimitReached,
    NoSuchLeaseBatch,
)
from broker.routing.selector import Selector
from broker.routing.topics.lifetime import Ending
from broker.routing.topics.subscription import ConsumerDetach, Subscription
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.node import Node
    from broker.routing.queues.queue import Queue
    from broker.routing.router import Router

LEASES_MAX: Final = 1000
"""Maximum leases of the whole broker: each may hold many messages in memory."""

BUILT_AT_ONCE: Final[i64] = 8192
"""Entries of a batch that are looked at, or added, in one turn of the loop: some 2 ms."""

REST_MS: Final[i64] = 30 * 24 * 3_600_000
"""Time in ms for which a lease without messages is remembered after its ttl is over: a job that
runs once a day, or a week, finds how far it came."""


@final
class Leases:
    """The leases of one broker, by name.

    `any`: `go_on` has something to do. `fencing_token` is the last one that was given.
    `built_at_once` is BUILT_AT_ONCE but in tests.
    """

    def __init__(self, router: Router, leases_max: int = LEASES_MAX) -> None:
        self.any = False
        self.fencing_token: i64 = 0
        self.built_at_once: i64 = BUILT_AT_ONCE
        self.named: Final[dict[str, BatchLease]] = {}
        self._router: Final = router
        self._max: Final = leases_max
        self._touched: dict[BatchLease, None] = {}
        self._lost: list[BatchLease] = []

    # -- requests

    def open(
        self,
        name: str,
        queue: Queue,
        *,
        subscription: Subscription | None = None,
        selector: Selector | None = None,
        ttl_ms: i64,
        batch: Batch,
        bridge: str = "",
    ) -> BatchLease:
        """Return the lease `name` on `queue`, begun if there is none, with a new fencing token.

        For a `bridge` it leaves out what may not pass the bridge of that name.

        The client that had it before is fenced off. Raise HeldExclusively if it is a lease on
        another queue, or as `join`; LimitReached if the broker has its maximum of leases;
        InvalidAddress if `queue` stores no messages.
        """
        lease = self._there(name)
        self._forget_lost(batch)
        if lease is None:
            lease = self._begin(name, queue, subscription=subscription, selector=selector)
        elif lease.queue is not queue:
            raise HeldExclusively(f"lease {name:.50} is one of {lease.queue.address}")
        self.join(lease)
        self.named[name] = lease
        self.fencing_token += 1
        if lease.gathering is not None:
            self._call_off(
                lease, self._fenced(lease, lease.fencing_token, self.fencing_token), batch
            )
        lease.aim(selector, lease.until_ms, bridge=bridge)
        lease.fencing_token = self.fencing_token
        lease.ttl_ms = ttl_ms
        self._renew(lease)
        batch.lease_changes().keep(lease.as_stored())
        return lease

    def _begin(
        self,
        name: str,
        queue: Queue,
        *,
        subscription: Subscription | None,
        selector: Selector | None,
    ) -> BatchLease:
        if len(self.named) >= self._max:
            raise LimitReached(f"the broker has its {self._max} leases")
        if queue.is_temporary or not queue.may_store or not queue.persistence.is_stored:
            raise InvalidAddress(f"messages of {queue.address} are never stored: no lease has them")
        return BatchLease(self, name, queue, subscription=subscription, selector=selector)

    def add(
        self,
        name: str,
        queue: Queue,
        *,
        subscription: Subscription | None,
        selector: Selector | None,
    ) -> BatchLease:
        """Add a lease that the store has, at a start, and return it. It rests."""
        lease = BatchLease(self, name, queue, subscription=subscription, selector=selector)
        self.named[name] = lease
        return lease

    def join(self, lease: BatchLease) -> None:
        """Attach `lease` to its queue. Idempotent.

        Raise HeldExclusively if it is on an unshared subscription that has a consumer.
        """
        if lease.rests:
            of = lease.subscription
            if of is not None and not of.is_shared and of.queue.consumers.attached:
                raise HeldExclusively(f"{of.name()} is not shared, and has its consumer")
            self._take_part(lease)

    def _take_part(self, lease: BatchLease) -> None:
        lease.rests = False
        if lease.subscription is None:
            lease.queue.attach_consumer(lease)
        else:
            self._router.subscriptions.join(lease.subscription, lease)

    def _leave(self, lease: BatchLease, batch: Batch) -> None:
        """Detach an empty lease from its queue. Idempotent."""
        if lease.rests:
            return
        lease.rests = True
        queue = lease.queue
        if lease.subscription is None:
            queue.detach_consumer(lease, queue, batch)
            queue.note_use_ended()
        else:
            how = ConsumerDetach(
                Ending.CONNECTION_LOST, connection=-1, session=-1, key=("", lease.name)
            )
            self._router.subscriptions.leave(lease.subscription, lease, batch, how=how)

    def _fenced(self, lease: BatchLease, fencing_token: i64, latest: i64) -> LeaseFenced:
        return LeaseFenced(
            f"fenced: fencing token {fencing_token} of lease {lease.name:.255} was followed by"
            f" {latest}"
        )

    def find(self, name: str) -> BatchLease:
        """Return the lease `name`. Raise LeaseGone if there is none."""
        lease = self._there(name)
        if lease is None:
            raise LeaseGone(f"gone: there is no lease {name:.255}")
        return lease

    def _there(self, name: str) -> BatchLease | None:
        """Return the lease `name`, or None. A lease whose queue was deleted is ended first.

        A queue reports its deletion to its consumers, and so not to a lease that rests.
        """
        lease = self.named.get(name)
        if lease is not None and lease.queue.state.is_deleted:
            self.lost(lease)
            return None
        return lease

    def has_any_on(self, node: Node) -> bool:
        """Return whether a lease is on `node`, even one without messages."""
        return node in [lease.queue for lease in self.named.values()]

    def all(self) -> dict[str, BatchLease]:
        """Return every lease, by name. Those of deleted queues are ended first."""
        for name in list(self.named):
            self._there(name)
        return self.named

    def memory(self) -> i64:
        """Return the bytes that leases take for their messages, beside the messages themselves."""
        count: i64 = 0
        for lease in self.named.values():
            count += lease.held()
        return count * RECORD_BYTES

    def checked(self, name: str, fencing_token: i64) -> BatchLease:
        """Return the lease `name` for a client with this fencing token.

        Raise LeaseFenced if a newer one was given; LeaseGone if there is no such lease or token.
        """
        lease = self.find(name)
        if fencing_token < lease.fencing_token:
            raise self._fenced(lease, fencing_token, lease.fencing_token)
        if fencing_token > lease.fencing_token:
            raise LeaseGone(
                f"gone: fencing token {fencing_token} of lease {name:.255} is not known"
            )
        return lease

    def acquire(
        self,
        name: str,
        fencing_token: i64,
        batch_number: i64,
        *,
        wanted: Wanted,
        acquirer: Acquirer,
    ) -> None:
        """Give `acquirer` the batch of that number: an unsettled one, or the next one once made.

        Raises as `checked` and `join`; LeaseGone if it is settled, NoSuchLeaseBatch if it is not
        the next one, LimitReached if UNSETTLED_MAX batches are unsettled.
        """
        lease = self.checked(name, fencing_token)
        self._renew(lease)
        if batch_number <= lease.settled:
            raise LeaseGone(f"gone: batch {batch_number} of lease {name:.255} is settled")
        known = lease.batches.get(int(batch_number))
        if known is not None:
            acquirer.acquired(known)
            return
        if batch_number != lease.batch_number + 1:
            raise NoSuchLeaseBatch(
                f"the next batch of lease {name:.255} is {lease.batch_number + 1}"
            )
        if len(lease.batches) >= UNSETTLED_MAX:
            raise LimitReached(
                f"lease {name:.255} has {UNSETTLED_MAX} batches that are not settled"
            )
        before = lease.gathering
        if before is not None:
            before.acquirer.refused(HeldExclusively("the same batch was asked for again"))
            before.acquirer = acquirer
            return
        self._renew(lease, ahead_ms=wanted.wait_ms)
        until_ms = self._router.clock.now_ms() + wanted.wait_ms
        lease.gathering = Gathering(acquirer, wanted, until_ms)
        lease.aim(lease.selector, wanted.arrived_until_ms)
        lease.queue.consumer_ready(lease, drain=True)

    def withdraw(self, name: str, fencing_token: i64, *, batch: Batch) -> None:
        """Withdraw a request for the next batch; its entries return. Raises as `checked`."""
        lease = self.checked(name, fencing_token)
        self._call_off(lease, LeaseGone(f"gone: the request of {name:.255} was withdrawn"), batch)
        self._free_groups(lease)

    def settle(self, name: str, fencing_token: i64, batch_number: i64, *, batch: Batch) -> i64:
        """Accept all messages in batches up to that number.

        Return the number up to which all batches are settled now. Raises as `begin_settling`.
        """
        for lease_batch in self.begin_settling(name, fencing_token, batch_number, batch=batch):
            accept(lease_batch.entries, batch)
        return self.checked(name, fencing_token).settled

    def begin_settling(
        self, name: str, fencing_token: i64, batch_number: i64, *, batch: Batch
    ) -> list[LeaseBatch]:
        """Settle the batches up to that number, and return them, which the lease has no longer.

        The caller accepts their entries with the same `batch`. Raises as `checked` and `join`;
        NoSuchLeaseBatch if the batch was never acquired.
        """
        lease = self.checked(name, fencing_token)
        if not lease.rests:
            self._renew(lease)
        if batch_number > lease.batch_number:
            raise NoSuchLeaseBatch(f"the last batch of lease {name:.255} is {lease.batch_number}")
        found: list[LeaseBatch] = []
        if batch_number > lease.settled:
            changes = batch.lease_changes()
            for number in [each for each in lease.batches if each <= batch_number]:
                found.append(lease.batches.pop(number))
                changes.settle(name, number)
            lease.settled = batch_number
            changes.keep(lease.as_stored())
        return found

    def renew(self, name: str, fencing_token: i64) -> BatchLease:
        """Postpone the expiry of the lease, and return it. Raises as `checked` and `join`."""
        lease = self.checked(name, fencing_token)
        self._renew(lease)
        return lease

    def release(self, name: str, batch: Batch, *, fencing_token: i64 = -1) -> i64:
        """End the lease, and return how many messages returned to the queue. Raises as `checked`.

        Without `fencing_token`, end it whichever client has it.
        """
        lease = self.find(name) if fencing_token < 0 else self.checked(name, fencing_token)
        held = lease.held()
        self._end(lease, Disposal.RELEASE, batch, why="was released")
        return held

    def slice_of(
        self, name: str, fencing_token: i64, batch_number: i64, *, index: i64
    ) -> list[QueueEntry]:
        """Return the entries of a slice, in order. Raises as `checked`.

        Raise LeaseGone if the batch is settled, NoSuchLeaseBatch if there is none, or no slice.
        """
        return self.checked(name, fencing_token).slice_of(batch_number, index)

    # -- time

    def _renew(self, lease: BatchLease, *, ahead_ms: i64 = 0) -> None:
        """Attach the lease if it rests; postpone its expiry to `ahead_ms` plus its ttl from now."""
        self.join(lease)
        router = self._router
        if lease.ttl_ms > 0:
            silent_until_ms = router.clock.now_ms() + ahead_ms
            if lease.gathering is not None:
                silent_until_ms = max(silent_until_ms, lease.gathering.until_ms)
            lease.deadline_ms = silent_until_ms + lease.ttl_ms
            lease.timer.set(router.timer_queue, lease.deadline_ms)

    def come_back(self, lease: BatchLease, *, holds: bool) -> None:
        """Complete the restoration of `lease` at a start; `holds`: it has unsettled batches.

        Its ttl begins anew, since no client could renew it while the broker was down.
        """
        if holds:
            self._take_part(lease)
            self._renew(lease)
        else:
            self._rest(lease)

    def _rest(self, lease: BatchLease) -> None:
        """Forget `lease`, which is detached from its queue, after REST_MS if it has a ttl."""
        if lease.ttl_ms > 0:
            lease.deadline_ms = self._router.clock.now_ms() + REST_MS
            lease.timer.set(self._router.timer_queue, lease.deadline_ms)

    def expires_at_ms(self, lease: BatchLease) -> i64:
        """Return when `lease` expires, in ms on the wall clock; 0 for never."""
        if lease.ttl_ms == 0:
            return 0
        clock = self._router.clock
        return clock.wall_ms() + lease.deadline_ms - clock.now_ms()

    # -- rounds

    def look_at(self, lease: BatchLease) -> None:
        """Have `go_on` look at `lease`: a message came or no more will, or a deadline passed."""
        self._touched[lease] = None
        self.any = True

    def lost(self, lease: BatchLease) -> None:
        """End `lease`, whose queue was deleted with all its messages."""
        lease.is_over = True
        del self.named[lease.name]
        self._lost.append(lease)
        self.any = True

    def go_on(self, batch: Batch) -> None:
        """Complete batches after queues have dispatched; end leases that expired or lost theirs."""
        self.any = False
        self._forget_lost(batch)
        touched = self._touched
        self._touched = {}
        now_ms = self._router.clock.now_ms()
        for lease in touched:
            if lease.is_over:
                continue
            if lease.ttl_ms > 0 and now_ms >= lease.deadline_ms:
                self._time_is_over(lease, batch)
                continue
            if lease.ttl_ms > 0:
                lease.timer.set(self._router.timer_queue, lease.deadline_ms)
            gathering = lease.gathering
            if gathering is not None:
                self._further(lease, gathering, now_ms, batch=batch)

    def _further(
        self, lease: BatchLease, gathering: Gathering, now_ms: i64, *, batch: Batch
    ) -> None:
        if gathering.is_over or (gathering.entries and not self._may_get_more(gathering)):
            self._complete(lease, gathering, batch)
        elif gathering.is_awake:
            gathering.is_awake = False
            gathering.is_draining = True
            lease.queue.consumer_ready(lease, drain=True)
        elif not gathering.is_draining and now_ms >= gathering.until_ms:
            lease.gathering = None
            self._free_groups(lease)
            gathering.acquirer.acquired(None)
        elif not gathering.is_draining:
            lease.timer.set(self._router.timer_queue, gathering.until_ms)

    def _free_groups(self, lease: BatchLease) -> None:
        """Let others have the groups of `lease` if it holds no messages: it may ask much later."""
        if not lease.batches:
            lease.queue.delivery.free_groups(lease)

    def _may_get_more(self, gathering: Gathering) -> bool:
        """Return whether the queue has not reported since the last message that it has no more."""
        return gathering.is_draining or gathering.is_awake

    def _complete(self, lease: BatchLease, gathering: Gathering, batch: Batch) -> None:
        """Make a batch of the gathered entries, in portions, and give it to the acquirer."""
        gathering.is_over = True
        number = lease.batch_number + 1
        builder = gathering.builder or LeaseBatchBuilder(
            number, gathering.wanted.slices, gathering.entries
        )
        gathering.builder = builder
        if not builder.go_on(self.built_at_once, batch):  # the rest in the next turn of the loop
            lease.timer.set(self._router.timer_queue, self._router.clock.now_ms())
            return
        lease.gathering = None
        lease.batch_number = number
        lease.batches[int(number)] = builder.lease_batch
        changes = batch.lease_changes()
        changes.keep(lease.as_stored())
        changes.acquire(builder.as_stored(lease.name))
        gathering.acquirer.acquired(builder.lease_batch)

    # -- ends

    def _call_off(self, lease: BatchLease, why: LeaseFenced | LeaseGone, batch: Batch) -> None:
        """Refuse the batch that is being made; its entries return to the queue, uncounted."""
        gathering = lease.gathering
        lease.gathering = None
        if gathering is not None:
            gathering.acquirer.refused(why)
            for entry in gathering.entries:
                entry.queue.dispose(entry, Disposal.RELEASE, batch)

    def _time_is_over(self, lease: BatchLease, batch: Batch) -> None:
        held = lease.held()
        if held == 0 and lease.gathering is None and not lease.rests:
            self._leave(lease, batch)
            self._rest(lease)
            return
        self._router.notices.append(
            LEASE_RUN_OUT.notice(
                f"lease {lease.name:.255} of {lease.queue.address} has run out:"
                f" {held} messages wait again"
            )
        )
        self._end(lease, Disposal.COUNT, batch, why="has run out")

    def _end(self, lease: BatchLease, disposal: Disposal, batch: Batch, *, why: str) -> None:
        """End `lease`: its messages return to the queue as `disposal` says."""
        lease.is_over = True
        del self.named[lease.name]
        self._call_off(lease, LeaseGone(f"gone: lease {lease.name:.255} {why}"), batch)
        lease.give_back(disposal, batch)
        self._leave(lease, batch)
        self._let_go(lease, batch)

    def _let_go(self, lease: BatchLease, batch: Batch) -> None:
        lease.timer.lease = None
        lease.batches.clear()
        batch.lease_changes().end(lease.name)

    def _forget_lost(self, batch: Batch) -> None:
        lost = self._lost
        self._lost = []
        for lease in lost:
            for entry in lease.entries():
                self._router.memory.dropped(entry.message)
            gathering = lease.gathering
            lease.gathering = None
            if gathering is not None:
                gathering.acquirer.refused(
                    LeaseGone(f"gone: lease {lease.name:.255} ended with its queue")
                )
            self._let_go(lease, batch)
