"""The two clocks of the broker: the steady clock, which never jumps, and the wall clock.

All code that decides by time is given a number or a `Clock`, so that tests run on simulated time.
Deadlines (idle, pacing, redelivery pauses) use `now_ms`; times that a message states (time to
live, expiry) use `wall_ms`.
"""

import time
from abc import abstractmethod
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

# Compiled code has a Final at hand, and searches two dictionaries for `time.monotonic_ns`.
# Nanoseconds become i64 before they are divided, since Python's division makes an object. Each read
# of a connection asks for the time three times: 17 % of the instructions if it has one message.
_steady_ns: Final = time.monotonic_ns
_wall_ns: Final = time.time_ns


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """A source of time in whole milliseconds."""

    @abstractmethod
    def now_ms(self) -> i64:
        """Return ms since an arbitrary moment; they never decrease."""

    def now_us(self) -> i64:
        """Return `now_ms` in microseconds, as precisely as the source allows."""
        return self.now_ms() * 1000

    @abstractmethod
    def wall_ms(self) -> i64:
        """Return ms since 1970-01-01T00:00Z; they jump when the operator sets the clock."""

    def wall_us(self) -> i64:
        """Return `wall_ms` in microseconds, as precisely as the source allows."""
        return self.wall_ms() * 1000


@final
class SystemClock(Clock):
    """The machine's own clocks."""

    def now_ms(self) -> i64:
        return i64(_steady_ns()) // 1_000_000

    def now_us(self) -> i64:
        return i64(_steady_ns()) // 1_000

    def wall_ms(self) -> i64:
        return i64(_wall_ns()) // 1_000_000

    def wall_us(self) -> i64:
        return i64(_wall_ns()) // 1_000
