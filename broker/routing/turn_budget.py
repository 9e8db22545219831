"""Work of one kind that all queues together may do in one turn of the event loop."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from broker.clock import Clock
from broker.routing.timer_queue import TimerCallback, TimerQueue


class TurnBudget(TimerCallback):
    """An amount of work, of which `left` is left in this turn.

    It is not renewed in each turn, but in the turn after it is spent: so nothing is done for it in
    most turns. A queue that finds nothing left sets a timer for now, and so goes on after that.
    """

    def __init__(self, amount: i64, clock: Clock, timer_queue: TimerQueue) -> None:
        self.left: i64 = amount
        self._amount: Final[i64] = amount
        self._clock: Final = clock
        self._timer_queue: Final = timer_queue
        self._is_armed = False

    def spend(self, work: i64) -> None:
        """Count `work`."""
        self.left -= work
        if self.left <= 0 and not self._is_armed:
            self._is_armed = True
            self._timer_queue.at(self._clock.now_ms(), self)

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - at once, whatever the time
        """Renew the budget: a turn of the event loop begins."""
        self._is_armed = False
        self.left = self._amount
