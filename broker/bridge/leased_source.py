"""The lease by which a bridge holds messages of this broker, until the other broker has them.

The lease outlives connections and the process, so a batch has the same messages each time it is
sent. Its name has a random part: it names the sink at the other broker as well, and two brokers may
have bridges of one name to the same target.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from typing import Final

from broker.amqp.terminus import NEVER, UNSETTLED_STATE
from broker.bridge.failure import BridgeError
from broker.bridge.moving_batch import MovingBatch
from broker.bridge_settings import COPY, BridgeSettings
from broker.journal import Waiter
from broker.links.bridge_status import BRIDGE_PREFIX
from broker.links.container import Container
from broker.links.refusal import as_link_fault
from broker.management.durable import Durable
from broker.routing.addresses.identity import SubscriptionIdentity, identity_in
from broker.routing.batches.lease import Acquirer, BatchLease, Wanted
from broker.routing.batches.lease_batch import LeaseBatch
from broker.routing.entries.dead_letter import REJECTED, Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import RoutingError
from broker.routing.queues.node import QUEUE, TOPIC
from broker.routing.queues.queue import Queue
from broker.routing.selector import Selector, parse_selector
from broker.routing.topics.lifetime import Ending
from broker.routing.topics.subscription import (
    AttachRule,
    Subscription,
    SubscriptionExpiry,
    SubscriptionKind,
    SubscriptionSpec,
)
from storage.batch import Batch

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Bytes at which a batch ends; its last message may exceed them."""

AHEAD: Final = 4
"""Maximum batches that are leased at a time: one is committed while others are sent."""

GROW_AFTER: Final = 256
"""Batches after which one that was made smaller for a full target may be twice as large again."""

WAIT_MS: Final = 10_000
"""Time in ms that a lease waits for a first message before it is asked again."""

NEVER_EXPIRES: Final = 0


class _Acquired(Acquirer):
    """Passes a batch on to the source, unless the bridge has begun another attempt meanwhile."""

    def __init__(self, source: LeasedSource, fencing_token: int) -> None:
        self._source: Final = source
        self._fencing_token: Final = fencing_token

    def acquired(self, lease_batch: LeaseBatch | None) -> None:
        if self._source.fencing_token == self._fencing_token:
            self._source.acquired(lease_batch)

    def refused(self, why: RoutingError) -> None:
        if self._source.fencing_token == self._fencing_token:
            self._source.refused(str(why))


class _BatchDurable(Waiter):
    """Notes that the store has a batch."""

    def __init__(self, batch: MovingBatch, changed: Callable[[], None]) -> None:
        self._batch: Final = batch
        self._changed: Final = changed

    def committed(self) -> None:
        self._batch.is_durable = True
        self._changed()


class LeasedSource:
    """The local end of a bridge. `batches` are those that are leased, in order.

    At most `ahead` are leased, and sent, at a time. `one_at_a_time`: a message is sent once the one
    before it has its outcome. `changed` is called when there are more, or one has become durable.
    """

    def __init__(
        self, settings: BridgeSettings, container: Container, changed: Callable[[], None]
    ) -> None:
        self.batches: list[MovingBatch] = []
        self.fencing_token = -1
        self.is_own = False
        self.ahead = AHEAD
        self.one_at_a_time = False
        self._batch_max = settings.batch
        self._settled = 0
        self._settings: Final = settings
        self._container: Final = container
        self._changed: Final = changed
        self._lease: BatchLease | None = None
        self._is_asking = False
        self._failure = ""

    @property
    def name(self) -> str:
        """The name of the lease, empty before it is opened."""
        return "" if self._lease is None else self._lease.name

    # -- beginning

    async def open(self) -> None:
        """Take over the lease, or begin it. Raise BridgeError if that is not possible."""
        self.batches = []
        self.fencing_token = -1  # what was asked for with the last one is of no interest
        self._is_asking = False
        self._failure = ""
        try:
            self._lease = self._opened()
        except RoutingError as error:
            raise BridgeError(f"from {self._settings.source}: {as_link_fault(error)}") from None
        self.fencing_token = int(self._lease.fencing_token)
        # an attempt at the other broker has this number, which must never be given again
        await self.saved()

    async def saved(self) -> None:
        """Wait until the store has all that has changed by now."""
        durable = Durable()
        self._container.journal.submit(durable)
        self._container.run_round()
        await durable.happened.wait()

    def _opened(self) -> BatchLease:
        router, settings = self._container.router, self._settings
        queue, subscription = self._node()
        selector = self._selector() if settings.keep != COPY else None
        found = next((lease for lease in self._leases() if lease.queue is queue), None)
        name = f"{BRIDGE_PREFIX}{settings.name}/{token_hex(4)}" if found is None else found.name
        self.is_own = settings.keep == COPY
        return router.leases.open(
            name,
            queue,
            subscription=subscription,
            selector=selector,
            ttl_ms=NEVER_EXPIRES,
            batch=self._container.journal.batch,
            bridge="" if self.is_own else settings.name,
        )

    def _selector(self) -> Selector | None:
        text = self._settings.selector
        return parse_selector(text) if text.strip() else None

    def _leases(self) -> list[BatchLease]:
        """Return all leases of the bridge: it may have had others before its settings changed."""
        prefix = f"{BRIDGE_PREFIX}{self._settings.name}/"
        leases = self._container.router.leases.all()
        return [lease for name, lease in leases.items() if name.startswith(prefix)]

    def others(self) -> list[BatchLease]:
        """Return the leases that the bridge had on other queues, before its settings changed."""
        return [lease for lease in self._leases() if lease is not self._lease]

    def _node(self) -> tuple[Queue, Subscription | None]:
        """Return the queue that the settings name, with its subscription if it is one's."""
        router, text = self._container.router, self._settings.source
        if self._settings.keep == COPY:
            subscription = self._own_subscription()
            return subscription.queue, subscription
        if identity_in(text) is not None:
            found = router.subscriptions.identified(text)
            if found is None:
                raise BridgeError(f"from {text}: there is no such subscription")
            return found.queue, found
        node = router.resolve(router.parse(text, QUEUE), self._container.journal.batch)
        if not isinstance(node, Queue):
            raise BridgeError(f"from {text}: a topic is copied: set keep to {COPY!r}")
        return node, None

    def _own_subscription(self) -> Subscription:
        """Return the bridge's own durable subscription to the topic, begun if there is none.

        The selector is the subscription's, so that it keeps no other messages.
        """
        router, journal = self._container.router, self._container.journal
        address = router.parse(self._settings.source, TOPIC)
        selector = self._selector()
        wanted = None if selector is None else ConsumerFilter(selector)
        spec = SubscriptionSpec(address, wanted)
        identity: SubscriptionIdentity = (None, f"{BRIDGE_PREFIX}{self._settings.name}", True)
        row = AttachRule(8, SubscriptionKind.SHARED, identity)
        there = router.subscriptions.find(row)
        if there is not None and there.spec.is_like(spec):
            return there
        begun = router.subscriptions.begin(
            row,
            spec,
            SubscriptionExpiry(durability=UNSETTLED_STATE, expiry_policy=NEVER),
            topic=router.topic_of(address, journal.batch),
            batch=journal.batch,
        )
        router.expiries.link_ended(
            begun.expiry, Ending.CONNECTION_LOST, journal.batch, connection=-1, session=-1
        )
        return begun

    # -- batches

    def known(self) -> list[int]:
        """Return the numbers of the batches that are not settled, ascending."""
        return sorted(self._held().batches)

    def last_number(self) -> int:
        """Return the number of the last batch that was acquired, 0 for none."""
        return int(self._held().batch_number)

    def take_known(self) -> None:
        """Put the batches that are not settled into `batches`; the store has them."""
        for number in self.known():
            batch = MovingBatch(number, list(self._held().batches[number].entries))
            batch.is_durable = True
            self.batches.append(batch)

    def ask(self) -> None:
        """Ask for the next batch, unless enough are leased. Raise BridgeError if it is lost."""
        if self._failure:
            raise BridgeError(self._failure)
        if self._is_asking or len(self.batches) >= self.ahead:
            return
        lease = self._held()
        self._is_asking = True
        try:
            self._container.router.leases.acquire(
                lease.name,
                self.fencing_token,
                int(lease.batch_number) + 1,
                wanted=Wanted(
                    max_messages=self._batch_max,
                    max_bytes=BATCH_BYTES,
                    slices=1,
                    wait_ms=WAIT_MS,
                ),
                acquirer=_Acquired(self, self.fencing_token),
            )
        except RoutingError as error:
            raise BridgeError(f"from {self._settings.source}: {error}") from None
        self._container.run_round()

    def acquired(self, lease_batch: LeaseBatch | None) -> None:
        """Take a new batch, which the journal notes right now; None if no message came."""
        self._is_asking = False
        if lease_batch is not None:
            batch = MovingBatch(int(lease_batch.number), list(lease_batch.entries))
            self.batches.append(batch)
            self._container.journal.submit(_BatchDurable(batch, self._changed))
        self._changed()

    def refused(self, why: str) -> None:
        """Note that the lease is lost: the next attempt takes it over, or begins another one."""
        if not self._is_asking:
            return  # `stop_asking` has withdrawn the request
        self._failure = why
        self._changed()

    def stop_asking(self) -> None:
        """Withdraw the request for the next batch: messages that come now are not leased."""
        lease = self._lease
        if not self._is_asking or lease is None or lease.is_over:
            return
        self._is_asking = False
        with suppress(RoutingError):  # another one has the lease by now
            self._container.router.leases.withdraw(
                lease.name, self.fencing_token, batch=self._container.journal.batch
            )
        self._container.run_round()

    def free_groups(self) -> None:
        """Let other consumers have the groups of the lease, unless it holds messages."""
        lease = self._lease
        if lease is not None and not lease.is_over and not lease.batches:
            lease.queue.delivery.free_groups(lease)

    def release_others(self) -> None:
        """End the leases of `others`: their messages return to those queues."""
        for lease in self.others():
            self.end(lease, 0)

    def _held(self) -> BatchLease:
        lease = self._lease
        if lease is None or lease.is_over:
            raise BridgeError("the lease has ended: was it released, or its queue deleted?")
        return lease

    def leave_out(self, batch: MovingBatch) -> list[tuple[QueueEntry, str]]:
        """Make dead letters of the refused messages of `batch`, which the lease has no longer.

        Return these, with the reasons. `batch` is durable again once the store has the change.
        """
        journal = self._container.journal
        refused = batch.refused[batch.left_out :]
        try:
            lease = self._container.router.leases.checked(self._held().name, self.fencing_token)
            entries = dict.fromkeys(entry for entry, _ in refused)
            lease.take_out(batch.number, entries, journal.batch)
        except RoutingError as error:
            raise BridgeError(str(error)) from None
        batch.left_out = len(batch.refused)
        for entry, why in refused:
            _dead_letter(entry, why, journal.batch)
        batch.is_durable = False
        journal.submit(_BatchDurable(batch, self._changed))
        self._container.run_round()
        return refused

    def settle(self, batch: MovingBatch) -> None:
        """Remove the messages of `batch`: the other broker has them."""
        self.settle_up_to(batch.number)
        if batch in self.batches:
            self.batches.remove(batch)
        self._settled += 1
        if self._settled % GROW_AFTER == 0:
            self.ahead = AHEAD
            self.one_at_a_time = False
            self._batch_max = min(self._settings.batch, 2 * self._batch_max)
        self._container.run_round()

    def settle_up_to(self, number: int) -> None:
        """Accept the messages of all batches up to `number`."""
        try:
            self._container.router.leases.settle(
                self._held().name,
                self.fencing_token,
                number,
                batch=self._container.journal.batch,
            )
        except RoutingError as error:
            raise BridgeError(str(error)) from None

    def held(self) -> int:
        """Return how many messages are leased."""
        lease = self._lease
        return 0 if lease is None or lease.is_over else int(lease.held())

    def end(self, lease: BatchLease, committed: int) -> None:
        """End a lease: its batches up to `committed` are settled, other messages return."""
        leases, batch = self._container.router.leases, self._container.journal.batch
        settled = [number for number in lease.batches if number <= committed]
        if settled:
            leases.settle(lease.name, lease.fencing_token, max(settled), batch=batch)
        leases.release(lease.name, batch)
        self._container.run_round()

    def take_less(self) -> bool:
        """Lease fewer messages at a time; return whether those that are leased are too many.

        After GROW_AFTER batches it takes more again: the target may have room by then.
        """
        self._settled = 0
        sizes = [len(batch.entries) for batch in self.batches]
        if len(sizes) > 1 and self.ahead > 1:
            self.ahead = 1
            return False
        self._batch_max = max(1, max(sizes, default=self._batch_max) // 2)
        return True

    def take_one(self) -> None:
        """Lease, and send, one message at a time, for a while: one that is too large is found so.

        It takes more again as after `take_less`.
        """
        self._settled = 0
        self.ahead = self._batch_max = 1
        self.one_at_a_time = True

    def give_up(self) -> None:
        """End the lease: its messages return, and `open` begins another one, with another sink."""
        lease = self._held()
        self.fencing_token = -1
        self.end(lease, 0)
        self._lease = None


def _dead_letter(entry: QueueEntry, why: str, batch: Batch) -> None:
    condition, _, description = why.partition(": ")
    entry.queue.dispose(
        entry, Disposal.DEAD_LETTER, batch, cause=Cause(REJECTED, condition, description)
    )
