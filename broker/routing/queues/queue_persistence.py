"""Note messages of a queue for the store, and keep back those that must be committed first.

Most messages are delivered before they are stored. Some are not: those published by the commit of
a transaction or a sink, those moved from one queue to another, those whose id is remembered for
duplicate detection, those of durable queues, and those of addresses with
`deliver_before_commit = false`. In a queue no message overtakes one that waits for its commit
(`commit_gate.py`). When messages of a lease return to their queue, it delivers none until the store
no longer has them as leased.

Messages that are not durable are written, too, if memory is short: they are spilled. The store
keeps them until they are consumed, or until it is opened the next time. A queue that it does not
know otherwise, temporary or of a volatile subscription, has a name there from its first such
message on.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import AT_ONCE
from broker.routing.addresses.address import SUBSCRIPTION_PREFIX
from broker.routing.credit.ack_latency import AckLatency
from broker.routing.credit.credit_pool import UNLIMITED
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer, Producer, Wakeable
from broker.routing.entries.record_mapping import as_stored
from broker.routing.queues.commit_gate import NOWHERE, CommitGate
from storage.batch import DISCHARGE, Batch

if TYPE_CHECKING:
    from broker.routing.queues.node_context import NodeContext


@final
class QueuePersistence:
    """The stored side of one queue.

    `stored_as` is the name of the queue in the store, empty if the store does not know it. If
    `is_stored`, its durable messages are stored. Entries at positions up to `suspected_up_to` may
    have been delivered before the start. With `defers` every stored message waits for its commit.
    """

    def __init__(
        self,
        queue: Wakeable,
        context: NodeContext,
        *,
        stored_as: str,
        is_stored: bool,
        defers: bool,
        consumers: list[Consumer],
        producers: list[Producer],
    ) -> None:
        self.stored_as = stored_as
        self.is_stored: Final = is_stored
        self.suspected_up_to: i64 = NOWHERE
        self._queue: Wakeable | None = queue
        self._context: Final = context
        self._defers: Final = defers
        self._consumers: Final = consumers
        self._producers: Final = producers
        self.ack_latency: AckLatency | None = None
        self._gate: CommitGate | None = None
        self._has_spilled = False

    # -- in

    def store(self, entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
        """Note `entry` for the store under a new number.

        `deliver_at_ms` is AT_ONCE or wall time.
        """
        entry.stored_number = self._context.next_stored_number()
        batch.append(as_stored(entry, self.stored_as, deliver_at_ms))
        ack_latency = self.ack_latency
        if ack_latency is None or batch.scope != ack_latency.scope:
            self._judge(entry, batch)
        if deliver_at_ms != AT_ONCE:
            batch.is_urgent = True

    def _judge(self, entry: QueueEntry, batch: Batch) -> None:
        """Keep `entry` back if it must be committed first; decide whether `batch` is urgent.

        It is not urgent if the queue's consumers acknowledge so soon that the write may be avoided.
        """
        if batch.scope == DISCHARGE or self._defers:
            gate = self._gate_in_force()
            if gate is not None:
                gate.bar(entry, batch, is_consumed=self._is_consumed())
            batch.is_urgent = True
            return
        ack_latency = self.ack_latency
        if ack_latency is None:
            ack_latency = self.ack_latency = AckLatency(self._context.commit_delay)
        if batch.is_urgent and ack_latency.commit_delay.us == 0:
            ack_latency.scope = batch.scope
            return
        if self._consumers:
            now_us = self._context.clock.now_us()
            ack_latency.arrived(entry.stored_number, batch.scope, now_us)
        else:
            ack_latency.nobody_consumes(batch.scope)
        if not ack_latency.is_prompt:
            batch.is_urgent = True
        self._narrow(ack_latency)

    def _is_consumed(self) -> bool:
        """Return whether the queue has a consumer other than leases."""
        for consumer in self._consumers:  # noqa: SIM110 - generators are slow here
            if not consumer.leases:
                return True
        return False

    def _narrow(self, ack_latency: AckLatency) -> None:
        """Have producers give back credit that exceeds their window, if it has become smaller."""
        window = ack_latency.producer_window
        if window.has_narrowed:
            window.has_narrowed = False
            for producer in self._producers:
                producer.narrow()

    def producer_window(self) -> i64:
        """Return how many messages each producer may be ahead, so that consumers keep up."""
        return UNLIMITED if self.ack_latency is None else self.ack_latency.producer_window.most

    def spill(self, entry: QueueEntry, batch: Batch) -> None:
        """Note `entry`, which only memory has, for the store."""
        self._has_spilled = True
        if self.stored_as == "":
            self.stored_as = SUBSCRIPTION_PREFIX + secrets.token_urlsafe(16)
        entry.stored_number = self._context.next_stored_number()
        entry.is_volatile = True
        batch.append(as_stored(entry, self.stored_as))
        batch.is_urgent = True
        self._context.stats.spilled += 1

    # -- out

    def admit(self, entry: QueueEntry, batch: Batch, *, is_leased: bool) -> bool:
        """Let the stored `entry` pass the gate if it may be delivered now; return whether so.

        `is_leased`: a lease is about to acquire it.
        """
        gate = self._gate_in_force()
        return gate is None or gate.admit(entry, batch, is_leased=is_leased)

    def wait_for(self, batch: Batch) -> None:
        """Let no stored entry be delivered before `batch` is durable."""
        gate = self._gate_in_force()
        if gate is not None:
            gate.shut(batch)
            batch.is_urgent = True

    def is_closed(self) -> bool:
        """Return whether an entry was kept back since the last commit."""
        return self._gate is not None and self._gate.is_closed

    def forget(self, entry: QueueEntry, batch: Batch, *, consumed: bool) -> None:
        """Remove `entry` from the store; `consumed` if a consumer has settled it."""
        number = entry.stored_number
        if consumed:
            batch.consume(number)
        else:
            batch.remove(number)
        ack_latency = self.ack_latency
        if ack_latency is not None and number == ack_latency.timed:
            if consumed:
                lag_us = ack_latency.settled(self._context.clock.now_us())
                self._context.stats.measured.settle_us.observe(lag_us)
                self._narrow(ack_latency)
            else:
                ack_latency.left()

    def stop_timing(self, number: i64) -> None:
        """Stop timing the message of that number, if it is timed: it stays unsettled."""
        ack_latency = self.ack_latency
        if ack_latency is not None and number == ack_latency.timed:
            ack_latency.left()

    def close(self, batch: Batch) -> None:
        """Forget the deleted queue; remove its messages if the store does not know it otherwise."""
        self._queue = None
        self._gate = None
        if self._has_spilled and not self.is_stored:
            batch.remove_subscription(self.stored_as)

    # -- the gate

    def restore(self, position: i64) -> None:
        """Take over the delivered mark of the store, a stored position, at a start after a kill.

        Call it before the queue has any messages: new ones get positions behind it.
        """
        self.suspected_up_to = position // 10
        gate = self._gate_in_force()
        if gate is not None:
            gate.restore(self.suspected_up_to)

    def _gate_in_force(self) -> CommitGate | None:
        """Return the gate, made on first use; None if commits take no time, or after `close`."""
        gate = self._gate
        if gate is None and self._context.gates.in_force and self._queue is not None:
            gate = self._gate = CommitGate(self._queue, self._context.gates, self.stored_as)
        return gate
