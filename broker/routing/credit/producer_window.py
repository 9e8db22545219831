"""Limits the unsettled messages of producers, so that consumers can keep up with them.

Messages that consumers settle soon are never written (`ack_latency.py`), and how soon consumers
settle a message depends on how many messages are in front of it. So if they take longer than they
should, the producers of their queue get a smaller window of unsettled messages, until consumers
keep up, or until `TRIAL_US` have shown that the consumers themselves are slow. Then producers
have no window for `REST_US`, before the broker tries it again.
"""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.credit.commit_delay import CommitDelay
from broker.routing.credit.credit_pool import UNLIMITED

FIRST: Final[i64] = 64
"""Window, in messages, that each producer begins with when a queue gets consumers."""

WIDEST: Final[i64] = 1024

NARROWEST: Final[i64] = 2

TRIAL_US: Final[i64] = 250_000
"""Time in µs that consumers have to catch up with producers that have a window."""

REST_US: Final[i64] = 2_000_000
"""Time in µs without a window after a first trial; it doubles with each further trial."""

LONGEST_REST_US: Final[i64] = 16_000_000

LONG_AGO: Final[i64] = -(2**62)


@final
class ProducerWindow:
    """The window of each producer of one queue: `most` unsettled messages, or UNLIMITED.

    `has_narrowed` from a new limit on until the queue has told its producers, and resets this.
    """

    def __init__(self, commit_delay: CommitDelay) -> None:
        self.most: i64 = UNLIMITED
        self.has_narrowed = False
        self._commit_delay: Final = commit_delay
        self._has_begun = False
        self._measured_us: i64 = LONG_AGO
        self._kept_up_us: i64 = LONG_AGO
        self._narrowed_us: i64 = LONG_AGO
        self._rests_until_us: i64 = LONG_AGO
        self._rest_us: i64 = REST_US

    def begin(self) -> None:
        """Give producers their first window. Idempotent until `forget`."""
        if not self._has_begun:
            self._has_begun = True
            self._limit(FIRST)

    def forget(self) -> None:
        """Remove the window: the queue has no consumers."""
        self.most = UNLIMITED
        self._has_begun = False

    def measured(self, lag_us: i64, mean_us: i64, now_us: i64) -> None:
        """Take into account that a message was unsettled for `lag_us`, or still is.

        `mean_us` is the mean of recent lags with this one, so that a single pause of a scheduler
        does not narrow the window; and no lag narrows it that is short itself.
        """
        if now_us - self._measured_us > TRIAL_US:
            self._kept_up_us = now_us  # consumers had nothing to keep up with
        self._measured_us = now_us
        hold_us = self._commit_delay.us
        too_long_us = hold_us * 3 // 4
        if min(lag_us, mean_us) > too_long_us or self._commit_delay.is_crowded:
            self._narrow(lag_us, mean_us, now_us)
            return
        self._kept_up_us = now_us
        self._rest_us = REST_US
        if mean_us > hold_us // 2:
            return
        if self.most == UNLIMITED:
            self._limit(WIDEST)
        else:
            self.most = min(WIDEST, self.most + max(i64(1), self.most // 16))

    def _narrow(self, lag_us: i64, mean_us: i64, now_us: i64) -> None:
        """Make the window smaller by as much as the lag is too long, once for each window.

        If consumers have not kept up for a whole trial, remove the window for a rest.
        """
        # a message that arrived before the window was narrowed last shows no effect of that
        if now_us < self._rests_until_us or now_us - lag_us < self._narrowed_us:
            return
        if self._rests_until_us != LONG_AGO:
            self._rests_until_us = LONG_AGO
            self._kept_up_us = now_us  # the rest is over: the next trial begins
        hold_us = self._commit_delay.us
        if mean_us > hold_us and now_us - self._kept_up_us > TRIAL_US:
            self.most = UNLIMITED
            self._rests_until_us = now_us + self._rest_us
            self._rest_us = min(2 * self._rest_us, LONGEST_REST_US)
            return
        most = min(self.most, WIDEST)
        fitting = most * hold_us // max(i64(1), mean_us)
        self._limit(max(NARROWEST, most // 4, min(fitting, most * 3 // 4)))
        self._narrowed_us = now_us

    def _limit(self, most: i64) -> None:
        self.most = most
        self.has_narrowed = True
