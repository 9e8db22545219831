"""The commit gate of a queue: delivery waits for the commits that must come before it.

Some messages may not be delivered before they are committed (`queue_persistence.py`). And no stored
message is delivered unless the store knows that it may have been: after a kill the broker could
otherwise not say that it is redelivered (RCV-08). To write that for each message would cost as much
as to write the message; so the store has, for each queue, a delivered mark: the position up to
which any message may have been delivered. It is raised in blocks, ahead of need.

A lease needs no mark: the store has each of its batches, with delivery counts, before a client can
read one. So messages that only leases acquire raise none.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.participants import Wakeable
from storage.batch import Batch

EVERY: Final[i64] = 2**62
"""Greater than any store number or position."""

NOWHERE: Final[i64] = -1
"""Lower than any position."""

BLOCK: Final[i64] = 10_000
"""Positions by which the delivered mark is raised beyond the entry to be delivered."""

AHEAD: Final[i64] = BLOCK // 2
"""Positions before the mark at which it is raised: its commit is over long before it is reached."""


@final
class CommitGate:
    """The gate of one queue, which the store knows by the name `stored_as`.

    Stored messages with numbers up to `open_up_to` need not wait for their commit. The delivered
    mark in the store is the position `_durable`; it becomes `_noted` with the commit of the batch
    of page `_noted_on`. Until the commit of page `_shut_until` nothing passes. `is_closed`: an
    entry was kept back since the last commit.
    """

    def __init__(self, queue: Wakeable, gates: Gates, stored_as: str) -> None:
        self.is_closed = False
        self.open_up_to: i64 = EVERY
        self.queue: Final = queue
        self._gates: Final = gates
        self._stored_as: Final = stored_as
        self._barred_up_to: i64 = NOT_STORED
        self._durable: i64 = NOWHERE
        self._noted: i64 = NOWHERE
        self._noted_on: i64 = NOWHERE
        self._passes_up_to: i64 = NOWHERE
        self._shut_until: i64 = NOWHERE

    def shut(self, batch: Batch) -> None:
        """Keep all entries back until the commit of `batch`."""
        self.open_up_to = NOT_STORED
        self._shut_until = batch.page
        self._gates.add(self)

    def bar(self, entry: QueueEntry, batch: Batch, *, is_consumed: bool) -> None:
        """Keep the new `entry` back until its commit, and if possible for no later one.

        `is_consumed`: the queue has consumers other than leases.
        """
        if self.open_up_to == EVERY:
            self.open_up_to = entry.stored_number - 1
        self._barred_up_to = entry.stored_number
        self._gates.add(self)
        if is_consumed and entry.position + AHEAD > self._noted:
            self._advance(entry, batch)  # one commit then has the mark, too

    def admit(self, entry: QueueEntry, batch: Batch, *, is_leased: bool) -> bool:
        """Let the stored `entry` pass if it may be delivered now; return whether it may.

        If not, close the gate until a commit wakes its queue. `is_leased`: a lease acquires it.
        """
        if entry.stored_number > self.open_up_to:
            self.is_closed = True
            return False
        if entry.is_volatile or is_leased:
            return True  # no start brings it back, or the store has who acquired it
        return entry.position <= self._passes_up_to or self._advance_if_due(entry, batch)

    def _advance_if_due(self, entry: QueueEntry, batch: Batch) -> bool:
        """Advance the delivered mark if `entry` is within AHEAD of it.

        Return True if `entry` may be delivered before that mark is committed.
        """
        if entry.position + AHEAD > self._noted:
            self._advance(entry, batch)
        # a message of this batch is committed no earlier than the mark
        if entry.position <= self._durable or batch.has(entry.stored_number):
            return True
        self.is_closed = True
        batch.is_urgent = True
        return False

    def _advance(self, entry: QueueEntry, batch: Batch) -> None:
        """Raise the delivered mark to a block beyond `entry`, in `batch`."""
        self._noted = entry.position + BLOCK
        self._noted_on = batch.page
        # the last stored position of that position, whatever its priority (`stored_position`)
        batch.mark_delivered(self._stored_as, self._noted * 10 + 9)
        self._gates.add(self)
        self._passes_up_to = min(self._durable, self._noted - AHEAD)

    def restore(self, position: i64) -> None:
        """Take over the delivered mark `position` at a start after a kill."""
        self._durable = position
        self._noted = position
        self._passes_up_to = position - AHEAD

    def lift(self, durable_up_to: i64, durable_page: i64) -> bool:
        """Let entries pass whose commits are over; return whether a commit is still awaited here.

        Messages up to number `durable_up_to`, and batches up to page `durable_page`, are durable.
        """
        self.is_closed = False
        if self._noted_on <= durable_page:
            self._durable = self._noted
            self._passes_up_to = self._noted - AHEAD
        if self._shut_until > durable_page:
            return True
        self._shut_until = NOWHERE
        if self._barred_up_to <= durable_up_to or self._barred_up_to == NOT_STORED:
            self.open_up_to = EVERY
            self._barred_up_to = NOT_STORED
        else:
            self.open_up_to = max(self.open_up_to, durable_up_to)
        return self.open_up_to != EVERY or self._noted_on > durable_page


@final
class Gates:
    """The gates that wait for a commit. `any`: there is at least one.

    With a store that commits at once no entry waits, and no message outlives a kill: then gates
    are not `in_force`, and no queue has one.
    """

    def __init__(self, *, in_force: bool) -> None:
        self.any = False
        self.in_force: Final = in_force
        self._gates: dict[CommitGate, None] = {}
        self._page: i64 = NOWHERE

    def add(self, gate: CommitGate) -> None:
        """Add `gate`, which waits for a commit."""
        self._gates[gate] = None
        self.any = True

    def lift(self, durable_up_to: i64, durable_page: i64) -> None:
        """Let entries pass whose commits are over, and wake their queues (`CommitGate.lift`)."""
        if durable_page == self._page:
            return
        self._page = durable_page
        waiting = self._gates
        self._gates = {}
        for gate in waiting:
            if gate.lift(durable_up_to, durable_page):
                self._gates[gate] = None
            gate.queue.wake()
        self.any = bool(self._gates)
