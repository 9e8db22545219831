"""Messages that deleted queues had in memory, released some at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.context import RoutingContext
from broker.routing.credit.memory import MemoryBudget
from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.schedule import Schedule
from broker.routing.timer_queue import TimerCallback

if TYPE_CHECKING:
    from broker.routing.queues.queue_state import QueueState

LET_GO_AT_ONCE: Final[i64] = 10_000
"""Maximum entries released in one turn of the event loop: some two milliseconds of work."""


@final
class Remains:
    """The entries that a deleted queue had in memory: `slots` of its backlogs, and its schedule."""

    def __init__(self, slots: list[list[QueueEntry | None]], schedule: Schedule | None) -> None:
        self._slots: Final = slots
        self._schedule = schedule

    def drain(self, at_most: i64) -> list[QueueEntry]:
        """Remove and return up to `at_most` entries; fewer if there are no more."""
        found: list[QueueEntry] = []
        slots = self._slots
        while slots and i64(len(found)) < at_most:
            last = slots[-1]
            while last and i64(len(found)) < at_most:
                entry = last.pop()
                if entry is not None:
                    found.append(entry)
            if not last:
                slots.pop()
        if self._schedule is not None and i64(len(found)) < at_most:
            found += self._schedule.drain(at_most - i64(len(found)))
        return found


@final
class DeletedEntries(TimerCallback):
    """Entries of deleted queues, in memory and counted in its budget until they are released.

    Subscriptions that end together may have a million entries. To release them in slices lets
    the event loop serve other clients in between.
    """

    def __init__(self, memory: MemoryBudget, context: RoutingContext) -> None:
        self._memory: Final = memory
        self._context: Final = context
        self._queues: Final[list[tuple[QueueState, Remains]]] = []
        self._left: i64 = LET_GO_AT_ONCE
        self._is_due = False

    def take(self, queue: QueueState, remains: Remains) -> None:
        """Release the entries that `queue` had, beyond LET_GO_AT_ONCE in later turns."""
        self._queues.append((queue, remains))
        self._let_go()

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - the next slice, whatever the time
        """Release the next slice."""
        self._is_due = False
        self._left = LET_GO_AT_ONCE
        if self._queues:
            self._let_go()

    def _let_go(self) -> None:
        while self._queues and self._left > 0:
            queue, remains = self._queues[-1]
            wanted = self._left
            found = remains.drain(wanted)
            for entry in found:
                queue.bytes -= entry.message.size
                self._memory.leaves(entry.message)
            self._left -= i64(len(found))
            if i64(len(found)) < wanted:
                self._queues.pop()
        if not self._is_due:  # even if nothing is left: `due` renews `_left`
            self._is_due = True
            self._context.call_after(0, self)
