"""The time for which a request is made again, and the pauses between its attempts."""

from __future__ import annotations

import random
import time
from typing import Final, final

from pyspark_amqp.errors import TransientError
from pyspark_amqp.options import Options

FIRST_PAUSE_S: Final = 0.1
PAUSE_MAX_S: Final = 2.0
"""Seconds of the first and of the longest pause; each is twice as long as the one before."""

SHORTEST_PART: Final = 0.5
"""The part of a pause that is certain. The rest is random, so that tasks do not return together."""


@final
class Patience:
    """The pauses of one request, from its beginning until the option amqp.timeout is over."""

    def __init__(self, options: Options) -> None:
        self._timeout_s: Final = options.number("amqp.timeout") / 1000
        self.renew()

    def renew(self) -> None:
        """Let the time begin anew: the request has just begun, or a part of it succeeded."""
        self._deadline = time.monotonic() + self._timeout_s
        self._pause_s = FIRST_PAUSE_S

    def pause(self, error: TransientError) -> None:
        """Wait before the next attempt; raise `error` if the time is over.

        The last attempt is made at the end of the time.
        """
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise error
        part = random.uniform(SHORTEST_PART, 1)  # noqa: S311 - no secret depends on it
        time.sleep(min(left_s, self._pause_s * part))
        self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
