"""The clock, the timers, the counters and the operator's lines that all of routing shares."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.routing.timer_queue import TimerCallback, TimerQueue
from broker.stats import Stats


@final
class RoutingContext:
    """The surroundings of each part of routing.

    `notices` are lines for the operator; the code that logs them empties the list.
    """

    def __init__(self, clock: Clock, stats: Stats) -> None:
        self.clock: Final = clock
        self.stats: Final = stats
        self.timer_queue: Final = TimerQueue()
        self.notices: Final[list[str]] = []

    def call_after(self, delay_ms: i64, due: TimerCallback) -> None:
        """Call `due.due` in `delay_ms` milliseconds or soon after, never earlier."""
        self.timer_queue.at(self.clock.now_ms() + delay_ms, due)
