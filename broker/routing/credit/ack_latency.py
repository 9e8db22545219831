"""Measures whether a queue's consumers acknowledge fast enough for writing to wait for them.

Now and then a message is timed, from its arrival to its settlement; a moving mean of these times
decides. Only one message is timed at a time, so that any other message costs no more than one
comparison of two numbers.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.credit.commit_delay import CommitDelay
from broker.routing.credit.producer_window import ProducerWindow

NOTHING: Final[i64] = 0
"""The number that `timed` has while no message is timed: no message has it."""

NEVER_SEEN: Final[i64] = -1
"""A scope that no batch and no transaction has."""

SLOW: Final[i64] = 4
"""Maximum of a lag, in multiples of the commit delay; longer lags count as this one. The mean of
a queue begins with it, so consumers count as prompt after some ten prompt settlements."""

GIVEN_UP_AFTER: Final[i64] = 100
"""Multiple of the commit delay after which the broker gives up timing a message that stays
unsettled, and times another one."""


@final
class AckLatency:
    """The mean time between arrival and settlement of one queue's messages, as measured so far.

    `lag_us` is that mean in µs; `is_prompt` if it is short enough for writing to wait for
    consumers. `timed` is the number of the message that is being timed, NOTHING if none is;
    `scope` is that of the batch of which no further message has to be looked at now.
    """

    def __init__(self, commit_delay: CommitDelay) -> None:
        self.timed: i64 = NOTHING
        self.scope: i64 = NEVER_SEEN
        self.is_prompt = False
        self.lag_us: i64 = SLOW * commit_delay.us
        self.commit_delay: Final = commit_delay
        self.producer_window: Final = ProducerWindow(commit_delay)
        self._since_us: i64 = 0

    def arrived(self, number: i64, scope: i64, now_us: i64) -> None:
        """Time message `number`, or check how long the timed one has been unsettled by `now_us`.

        Call this for the first message of each batch, of the given `scope`, and for the first
        one after the timed message was settled or left. The queue has consumers.
        """
        self.scope = scope
        if self.timed != NOTHING:
            waited_us = now_us - self._since_us
            if waited_us <= self.commit_delay.patience_us:
                return
            # it was written before it was settled: other messages of its batch waited in vain
            self._learn(max(waited_us, self.lag_us), now_us)
            self.is_prompt = False
            if waited_us < GIVEN_UP_AFTER * self.commit_delay.us:
                return
        self.timed = number
        self._since_us = now_us
        self.producer_window.begin()

    def settled(self, now_us: i64) -> i64:
        """Measure the timed message, which a consumer has settled at `now_us`; stop timing it.

        Return the µs since its arrival.
        """
        lag_us = now_us - self._since_us
        self._learn(lag_us, now_us)
        if self.lag_us <= self.commit_delay.us // 2:
            self.is_prompt = True
        elif self.lag_us > self.commit_delay.us:
            self.is_prompt = False
        self.left()
        return lag_us

    def left(self) -> None:
        """Stop timing the message, so that the next one is timed.

        Call this if it left its queue unsettled: that says nothing about consumers.
        """
        self.timed = NOTHING
        self.scope = NEVER_SEEN

    def nobody_consumes(self, scope: i64) -> None:
        """Stop timing, and free producers from their window: the queue has no consumers.

        Call this for the first message of each batch, of the given `scope`.
        """
        self.left()
        self.scope = scope
        self.is_prompt = False
        self.producer_window.forget()

    def _learn(self, lag_us: i64, now_us: i64) -> None:
        """Include `lag_us` in the mean, and let the window of producers follow both."""
        self.lag_us += (min(lag_us, SLOW * self.commit_delay.us) - self.lag_us) // 4
        self.producer_window.measured(lag_us, self.lag_us, now_us)
