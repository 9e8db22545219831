"""Whether the consumers of a queue acknowledge so soon that writing can wait for them.

Now and then one message is timed, from its arrival to its settlement; a moving mean of that
decides. One at a time, so that it costs the others one comparison of two numbers.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.credit.commit_delay import CommitDelay
from broker.routing.credit.producer_window import ProducerWindow

NOTHING: Final[i64] = 0
"""No message has this number."""

NEVER_SEEN: Final[i64] = -1
"""No batch has this scope, and no transaction."""

SLOW: Final[i64] = 4
"""So many times the hold a lag counts at most, and this is what a queue begins with: some ten
prompt settlements then speak for themselves."""

GIVEN_UP_AFTER: Final[i64] = 100
"""After so many times the hold another message is timed in place of one that stays unsettled."""


@final
class AckLatency:
    """The lag between arrival and settlement in one queue, as far as it has been measured.

    `timed` is the number of the message that is being timed, `scope` that of the batch for
    which there is nothing more to find out now.
    """

    def __init__(self, hold: CommitDelay) -> None:
        self.timed: i64 = NOTHING
        self.scope: i64 = NEVER_SEEN
        self.is_prompt = False
        self.lag_us: i64 = SLOW * hold.us
        self.hold: Final = hold
        self.producer_window: Final = ProducerWindow(hold)
        self._since_us: i64 = 0

    def arrived(self, number: i64, scope: i64, now_us: i64) -> None:
        """A message has come, the first since a batch was begun or one was timed."""
        self.scope = scope
        if self.timed != NOTHING:
            waited_us = now_us - self._since_us
            if waited_us <= self.hold.patience_us:
                return
            # it went to the disk unsettled: what came with it waited in vain
            self._learn(max(waited_us, self.lag_us))
            self.producer_window.measured(waited_us, now_us)
            self.is_prompt = False
            if waited_us < GIVEN_UP_AFTER * self.hold.us:
                return
        self.timed = number
        self._since_us = now_us
        self.producer_window.begin()

    def settled(self, now_us: i64) -> None:
        """The message that was being timed has been consumed."""
        lag_us = now_us - self._since_us
        self._learn(lag_us)
        self.producer_window.measured(lag_us, now_us)
        if self.lag_us <= self.hold.us // 2:
            self.is_prompt = True
        elif self.lag_us > self.hold.us:
            self.is_prompt = False
        self.left()

    def left(self) -> None:
        """It has gone otherwise, and tells nothing; another is to be timed."""
        self.timed = NOTHING
        self.scope = NEVER_SEEN

    def nobody_consumes(self, scope: i64) -> None:
        """A message has come, and there is nobody to be prompt."""
        self.left()
        self.scope = scope
        self.is_prompt = False
        self.producer_window.forget()

    def _learn(self, lag_us: i64) -> None:
        self.lag_us += (min(lag_us, SLOW * self.hold.us) - self.lag_us) // 4
