"""Messages that deleted queues had in memory, released some at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.routing.context import RoutingContext
from broker.routing.credit.memory import MemoryBudget
from broker.routing.entries.entry import QueueEntry
from broker.routing.timer_queue import TimerCallback

if TYPE_CHECKING:
    from broker.routing.queues.queue_state import QueueState

LET_GO_AT_ONCE: Final[i64] = 10_000
"""Maximum entries released in one turn of the event loop: about two milliseconds of work."""


@final
class DeletedEntries(TimerCallback):
    """Entries of deleted queues, in memory and counted in its budget until they are released.

    Subscriptions that end together may have a million entries. To release them in slices lets
    the event loop serve other clients in between.
    """

    def __init__(self, memory: MemoryBudget, context: RoutingContext) -> None:
        self._memory: Final = memory
        self._context: Final = context
        self._queues: Final[list[tuple[QueueState, list[list[QueueEntry | None]]]]] = []
        self._left: i64 = LET_GO_AT_ONCE
        self._is_due = False

    def take(self, queue: QueueState, slots: list[list[QueueEntry | None]]) -> None:
        """Release the entries of `queue` in `slots`, beyond LET_GO_AT_ONCE in later turns."""
        self._queues.append((queue, slots))
        self._let_go()

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - the next slice, whatever the time
        """Release the next slice."""
        self._is_due = False
        self._left = LET_GO_AT_ONCE
        if self._queues:
            self._let_go()

    def _let_go(self) -> None:
        while self._queues and self._left > 0:
            queue, slots = self._queues[-1]
            while slots and self._left > 0:
                self._empty(slots[-1], queue)
                if not slots[-1]:
                    slots.pop()
            if not slots:
                self._queues.pop()
        if not self._is_due:  # even if nothing is left: `due` renews `_left`
            self._is_due = True
            self._context.call_after(0, self)

    def _empty(self, slots: list[QueueEntry | None], queue: QueueState) -> None:
        while slots and self._left > 0:
            entry = slots.pop()
            if entry is not None:
                self._left -= 1
                queue.bytes -= entry.message.size
                self._memory.leaves(entry.message)
