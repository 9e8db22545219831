"""Sweeps for expired entries that no delivery meets: once a second, some entries at a time."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.message import NEVER
from broker.routing.context import RoutingContext
from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.backlogs import Backlogs
from broker.routing.timer_queue import TimerCallback
from broker.routing.turn_budget import TurnBudget

SWEEP_EVERY_MS: Final[i64] = 1000
NO_SWEEP: Final[i64] = -1


@final
class Sweep:
    """The place and time of the next sweep of one queue.

    `expiring` counts the queue's entries with an expiry; sweeps go on while there are any.
    `is_due`: it is time for one. `is_complete`: the last one has reached the end of the queue.
    The sweeps of all queues share a budget for each turn of the event loop
    (`docs/design/hostile-input.md` R7): a sweep for which nothing is left begins in the next turn.
    """

    def __init__(self) -> None:
        self.expiring: i64 = 0
        self.is_due = False
        self.is_complete = False
        self._at_ms: i64 = NO_SWEEP
        self._is_put_off = False
        self._priority: i64 = 0
        self._from: i64 = -1

    def arm(self, owner: TimerCallback, context: RoutingContext) -> None:
        """Have `owner` called when it is time for the next sweep, if there is one to do."""
        if self._at_ms == NO_SWEEP and self.expiring > 0:
            self._at_ms = context.clock.now_ms()
            if not self._is_put_off:
                self._at_ms += SWEEP_EVERY_MS
            context.timer_queue.at(self._at_ms, owner)

    def tick(self, now_ms: i64) -> None:
        """Set `is_due` if it is time for a sweep."""
        if self._at_ms != NO_SWEEP and now_ms >= self._at_ms:
            self.is_due = True

    def run(self, backlogs: Backlogs, budget: TurnBudget) -> list[QueueEntry]:
        """Look at entries in memory, from where the last sweep ended, as far as `budget` goes.

        Return those that have an expiry.
        """
        self.is_due = False
        self._at_ms = NO_SWEEP
        found: list[QueueEntry] = []
        left = budget.left
        self._is_put_off = left <= 0
        while left > 0 and self._priority < 10:
            left -= self._part(backlogs, left, found)
            if left > 0:
                self._priority += 1
                self._from = -1
        budget.spend(budget.left - left)
        self.is_complete = self._priority == 10
        if self.is_complete:
            self._priority = 0
        return found

    def _part(self, backlogs: Backlogs, at_most: i64, found: list[QueueEntry]) -> i64:
        """Sweep on within one priority; return the number of entries looked at."""
        backlog = backlogs.by_priority[self._priority]
        if backlog is None:
            return 0
        looked_at = backlog.loaded(self._from, at_most)
        for entry in looked_at:
            self._from = entry.position
            if entry.message.expires_at_ms != NEVER:
                found.append(entry)
        return i64(len(looked_at))
