"""What of a queue may leave it now, with regard to what the store holds of it.

A message waits for its commit where nobody may see it before (`durable_publish.py`). And no durable
message leaves without the store knowing that it may have left: after a kill it could not say
that it is redelivered (RCV-08). To write that for each would cost as much as the message
does; so the store knows a position up to which any may have left, raised in blocks, ahead of need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import NOT_STORED, QueueEntry
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue

EVERY: Final[i64] = 2**62
"""More than any number or position."""

NOWHERE: Final[i64] = -1
"""No position is as low."""

BLOCK: Final[i64] = 10_000
"""So far the position is raised beyond what leaves."""

AHEAD: Final[i64] = BLOCK // 2
"""So far ahead of need that happens: a commit is over long before."""


@final
class CommitGate:
    """The gate of one queue. `defers`: everything here waits for its commit.

    Stored messages with numbers up to `open_up_to` need not wait for theirs. Up to the position
    `_durable` the store knows that messages may have left, up to `_noted` it soon will:
    once it has committed the batch of the page `_noted_on`. `is_closed`: something was kept back.
    Up to `suspected_up_to` messages may have left before the start.
    """

    def __init__(self, queue: Queue) -> None:
        gates = queue.router.gates
        self.defers: Final = queue.stores_all or not queue.policy.deliver_before_commit
        self.is_closed = False
        self.open_up_to: i64 = EVERY
        self._gates: Final = gates
        self._barred_up_to: i64 = NOT_STORED
        self._durable: i64 = NOWHERE if gates.in_force else EVERY
        self._noted: i64 = self._durable
        self._noted_on: i64 = NOWHERE
        self._passes_up_to: i64 = self._durable
        self.suspected_up_to: i64 = NOWHERE

    def bar(self, entry: QueueEntry, batch: Batch) -> None:
        """`entry`, which has just come, waits for its commit, and for no other if that can be."""
        if not self._gates.in_force:
            return
        queue = entry.queue
        if self.open_up_to == EVERY:
            self.open_up_to = entry.stored_number - 1
        self._barred_up_to = entry.stored_number
        self._gates.add(queue)
        if queue.consumers and entry.position + AHEAD > self._noted:
            self._advance(entry, batch)

    def passes(self, entry: QueueEntry, batch: Batch) -> bool:
        """Whether `entry`, which is stored, may leave now. Where not, the queue is woken later."""
        if entry.stored_number > self.open_up_to:
            self.is_closed = True
            return False
        if entry.is_volatile:
            return True  # no start brings it back
        return entry.position <= self._passes_up_to or self._advance_if_due(entry, batch)

    def _advance_if_due(self, entry: QueueEntry, batch: Batch) -> bool:
        """Advance the delivered mark if `entry` is within AHEAD of it.

        Return True if `entry` may be delivered before that mark is committed.
        """
        if entry.position + AHEAD > self._noted:
            self._advance(entry, batch)
        # what is not written yet itself comes to the disk no earlier than that
        if entry.position <= self._durable or batch.has(entry.stored_number):
            return True
        self.is_closed = True
        batch.is_urgent = True
        return False

    def _advance(self, entry: QueueEntry, batch: Batch) -> None:
        """Mark positions up to a block beyond `entry` as possibly delivered, in the store."""
        queue = entry.queue
        self._noted = entry.position + BLOCK
        self._noted_on = batch.page
        batch.mark_delivered(queue.stored_as, self._noted * 10 + 9)
        self._gates.add(queue)
        self._passes_up_to = min(self._durable, self._noted - AHEAD)

    def restore(self, position: i64) -> None:
        """After a kill: the store knows that position, in its own count."""
        self.suspected_up_to = position // 10
        if self._gates.in_force:
            self._durable = position // 10
            self._noted = self._durable
            self._passes_up_to = self._durable - AHEAD

    def lift(self, durable_up_to: i64, durable_page: i64) -> bool:
        """Messages up to that number, and batches up to that page, are durable.

        Whether something here still waits.
        """
        self.is_closed = False
        if self._noted_on <= durable_page:
            self._durable = self._noted
            self._passes_up_to = self._noted - AHEAD
        if self._barred_up_to <= durable_up_to:
            self.open_up_to = EVERY
        else:
            self.open_up_to = max(self.open_up_to, durable_up_to)
        return self.open_up_to != EVERY or self._noted_on > durable_page


@final
class Gates:
    """The queues in which something waits for a commit. `any` tells whether there are some.

    A store that commits at once lets nobody wait, and outlives no kill: then nothing is `in_force`.
    """

    def __init__(self, *, in_force: bool) -> None:
        self.any = False
        self.in_force: Final = in_force
        self._queues: dict[Queue, None] = {}
        self._page: i64 = NOWHERE

    def add(self, queue: Queue) -> None:
        """Something in `queue` waits for a commit."""
        self._queues[queue] = None
        self.any = True

    def lift(self, durable_up_to: i64, durable_page: i64) -> None:
        """Messages up to that number, and batches up to that page, are durable."""
        if durable_page == self._page:
            return
        self._page = durable_page
        waiting = self._queues
        self._queues = {}
        for queue in waiting:
            if not queue.is_deleted:
                if queue.gate.lift(durable_up_to, durable_page):
                    self._queues[queue] = None
                queue.router.wake(queue)
        self.any = bool(self._queues)
