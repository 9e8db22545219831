"""The two clocks of the broker: one that never jumps, and the one on the wall.

Whatever decides by time is handed a number or a `Clock`, so that tests run on
simulated time. Deadlines (idle, pacing, redelivery pauses) count on
`now_ms`; what a message says of itself (time to live, expiry) on `wall_ms`.
"""

import time
from abc import abstractmethod
from typing import final

from mypy_extensions import i64, mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """A source of time in whole milliseconds."""

    @abstractmethod
    def now_ms(self) -> i64:
        """Milliseconds since an arbitrary moment; never goes back."""

    def now_us(self) -> i64:
        """The same clock in microseconds, where it is that fine."""
        return self.now_ms() * 1000

    @abstractmethod
    def wall_ms(self) -> i64:
        """Milliseconds since 1970-01-01T00:00Z; jumps when the operator sets the clock."""

    def wall_us(self) -> i64:
        """The same in microseconds, as far as the source tells."""
        return self.wall_ms() * 1000


@final
class SystemClock(Clock):
    """The machine's own clocks."""

    def now_ms(self) -> i64:
        return i64(time.monotonic_ns() // 1_000_000)

    def now_us(self) -> i64:
        return i64(time.monotonic_ns() // 1_000)

    def wall_ms(self) -> i64:
        return i64(time.time_ns() // 1_000_000)

    def wall_us(self) -> i64:
        return i64(time.time_ns() // 1000)
