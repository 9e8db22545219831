"""Time of an embedded broker: the machine's, and as much more as a test has let pass."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.links.container import Container
from broker.routing.timer_queue import NOTHING

STEPS_MAX: Final = 1000
"""Into so many steps at most is passing time cut, however much of it there is."""

MILLISECOND: Final = timedelta(milliseconds=1)


@final
class VirtualClock(Clock):
    """Runs on by itself, for pauses and pacing have to end, and jumps when told to."""

    def __init__(self, let_pass: Callable[[int], None]) -> None:
        self._let_pass: Final = let_pass
        self._ahead_ms = 0

    def now_ms(self) -> i64:
        return time.monotonic_ns() // 1_000_000 + self._ahead_ms

    def wall_ms(self) -> i64:
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def jump(self, milliseconds: int) -> None:
        """Show so much more from now on, and leave it at that."""
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
        """Let time pass at once. What falls due meanwhile has happened when this returns."""
        passing = timedelta(
            days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
        )
        if passing < timedelta():
            raise ValueError(f"time does not go back: {passing}")
        self._let_pass(passing // MILLISECOND)


def let_pass(milliseconds: int, clock: VirtualClock, container: Container) -> None:
    """Go from one deadline of the broker to the next, so that each finds its own time."""
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
        timer_queue.driver.wake_at(deadline)  # set by the old time, it would wake too late
