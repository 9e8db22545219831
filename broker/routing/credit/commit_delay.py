"""Computes how long a durable message may stay unwritten because a consumer may settle it soon.

A message that is consumed before the store could have written it need not be written. So if
commits take longer than the setting `hold_ms`, consumers that need no longer than a commit count
as prompt.
"""

from typing import Final, final

from mypy_extensions import i64

LONGEST: Final[i64] = 10
"""Maximum of `us`, in multiples of the setting, however long commits take."""

PATIENCE: Final[i64] = 4
"""Multiple of `us` after which a message is written: even prompt consumers are late at times."""

COMMITS_REMEMBERED: Final[i64] = 4
"""Approximate number of recent commits that the mean is taken over."""


@final
class CommitDelay:
    """The times in microseconds that one journal and its queues have in common.

    `us` is the setting, 0 for none, or the mean time of recent commits if that is longer.
    Consumers are prompt if they settle messages within about half of it. A message stays
    unwritten for `patience_us`. `is_crowded` while the journal has too many unwritten bytes, so
    that producers should send less ahead.
    """

    def __init__(self, least_us: i64) -> None:
        self.us: i64 = least_us
        self.patience_us: i64 = PATIENCE * least_us
        self.is_crowded = False
        self._least_us: Final[i64] = least_us
        self._mean_us: i64 = 0

    def committed(self, took_us: i64) -> None:
        """Update the times after a commit that took `took_us`."""
        self._mean_us += (took_us - self._mean_us) // COMMITS_REMEMBERED
        self.us = max(self._least_us, min(self._mean_us, LONGEST * self._least_us))
        self.patience_us = PATIENCE * self.us
