"""How far producers may be ahead of consumers that are to keep up.

What is settled soon is never written (`promptness.py`), and how soon it is settled depends on
how much lies before it: as many messages as are under way, at the rate at which they go. So
where messages of a queue stay unsettled for longer than they can be held, its producers
get less credit at a time, until consumers keep up or it shows that they are slow in
earnest: that takes `TRIAL_US`. Then producers run free, for `REST_US` before it is
tried again.
"""

from typing import Final, final

from mypy_extensions import i64

FREE: Final[i64] = 2**62
"""No limit but what a producer gets anyway."""

WIDEST: Final[i64] = 512
"""Messages ahead, where there is a limit; above that there is none."""

NARROWEST: Final[i64] = 32

TRIAL_US: Final[i64] = 50_000
"""So long consumers have time to catch up with producers that are held to a limit."""

REST_US: Final[i64] = 1_000_000

LONG_AGO: Final[i64] = -FREE


@final
class Headway:
    """The limit of one queue: `most` messages of its producers together may be ahead."""

    def __init__(self, hold_us: i64) -> None:
        self.most: i64 = FREE
        self._hold_us: Final[i64] = hold_us
        self._measured_us: i64 = LONG_AGO
        self._kept_up_us: i64 = LONG_AGO
        self._rests_until_us: i64 = LONG_AGO

    def of_each(self, producers: i64) -> i64:
        """How many messages each of so many may be ahead, one at least."""
        return FREE if self.most == FREE else max(1, self.most // max(1, producers))

    def forget(self) -> None:
        """There is nobody to be ahead of."""
        self.most = FREE

    def measured(self, lag_us: i64, now_us: i64) -> None:
        """A message has been settled so long after it came, or is still to be."""
        if now_us - self._measured_us > TRIAL_US:
            self._kept_up_us = now_us  # nobody had anything to keep up with
        self._measured_us = now_us
        if lag_us > self._hold_us // 2:
            self._narrow(lag_us, now_us)
            return
        self._kept_up_us = now_us
        if self.most != FREE and lag_us <= self._hold_us // 4:
            self.most += self.most // 16
            if self.most > WIDEST:
                self.most = FREE

    def _narrow(self, lag_us: i64, now_us: i64) -> None:
        if now_us < self._rests_until_us:
            return
        if lag_us > self._hold_us and now_us - self._kept_up_us > TRIAL_US:
            self.most = FREE
            self._rests_until_us = now_us + REST_US
            return
        self.most = max(NARROWEST, min(self.most, WIDEST) * 3 // 4)
