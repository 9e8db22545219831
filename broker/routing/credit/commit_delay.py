"""How long a durable message may stay unwritten for the sake of consumers that acknowledge soon.

A message that is consumed before the store could have written it need not be written. So where
commits take longer than the setting `hold_ms`, consumers count as prompt that need no longer than
a commit.
"""

from typing import Final, final

from mypy_extensions import i64

LONGEST: Final[i64] = 10
"""So many times the setting `us` is at most, however long commits take."""

PATIENCE: Final[i64] = 4
"""After so many times `us` a message is written: prompt consumers, too, are late at times."""

COMMITS_REMEMBERED: Final[i64] = 4
"""The mean is one over about so many commits."""


@final
class CommitDelay:
    """The times in microseconds that one journal and its queues have in common.

    Consumers are prompt that settle messages within about half of `us`: the setting, 0 for none,
    or the time of recent commits where that is longer. A message stays unwritten for
    `patience_us`. `is_crowded` while so much is unwritten that producers should send less ahead.
    """

    def __init__(self, least_us: i64) -> None:
        self.us: i64 = least_us
        self.patience_us: i64 = PATIENCE * least_us
        self.is_crowded = False
        self._least_us: Final[i64] = least_us
        self._mean_us: i64 = 0

    def committed(self, took_us: i64) -> None:
        """Take a commit into account that took so long."""
        self._mean_us += (took_us - self._mean_us) // COMMITS_REMEMBERED
        self.us = max(self._least_us, min(self._mean_us, LONGEST * self._least_us))
        self.patience_us = PATIENCE * self.us
