"""The clock of an embedded broker: the machine's time, plus the time a test has let pass."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.links.container import Container
from broker.routing.timer_queue import NOTHING

STEPS_MAX: Final = 1000
"""Limits the steps of an advance: each takes at least 1/STEPS_MAX of the time, in whole ms."""

MILLISECOND: Final = timedelta(milliseconds=1)


@final
class VirtualClock(Clock):
    """The machine's clock plus an offset that a test increases.

    It also runs by itself, because pauses and pacing have to end.
    """

    def __init__(self, let_pass: Callable[[int], None]) -> None:
        self._let_pass: Final = let_pass
        self._ahead_ms = 0

    def now_ms(self) -> i64:
        return time.monotonic_ns() // 1_000_000 + self._ahead_ms

    def wall_ms(self) -> i64:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def jump(self, milliseconds: int) -> None:
        """Increase the offset by `milliseconds`. Timers are not called: `advance` does that."""
        self._ahead_ms += milliseconds

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> None:
        """Let time pass at once; timers due in that time have been called when this returns.

        Raise ValueError if the time is negative.
        """
        passing = timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        if passing < timedelta():
            raise ValueError(f"time does not go back: {passing}")
        self._let_pass(passing // MILLISECOND)


def let_pass(milliseconds: int, clock: VirtualClock, container: Container) -> None:
    """Advance `clock` by steps from deadline to deadline, so that each timer sees its own time."""
    timer_queue = container.router.timer_queue
    least = max(1, milliseconds // STEPS_MAX)
    left = milliseconds
    while left > 0:
        deadline = timer_queue.next_deadline_ms()
        wait = left if deadline == NOTHING else int(deadline - clock.now_ms())
        step = min(left, max(wait, least))
        clock.jump(step)
        left -= step
        container.tick()
    deadline = timer_queue.next_deadline_ms()
    if timer_queue.driver is not None and deadline != NOTHING:
        timer_queue.driver.wake_at(deadline)  # it was set before the jump, and would wake too late
