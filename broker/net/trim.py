"""Gives freed memory back to the system once a broker that was busy has become quiet.

The C library keeps freed memory for further messages. After a peak that is hundreds of MiB, which
other programs of the machine could use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from broker.stats import Stats

LOOK_EVERY_S: Final = 10.0

QUIET: Final = 1000
"""Maximum messages, in and out, between two looks at a broker that is quiet."""

WORTH_TRIMMING: Final = 16 * 1024 * 1024
"""Minimum bytes of messages received since the last trim: after fewer, a trim frees little."""


def trim_function() -> Callable[[int], int] | None:
    """Return the C library's `malloc_trim`; None if it has none (musl, macOS)."""
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None


class Trimmer:
    """Checks every ten seconds whether the broker was busy and is quiet now; then trims once."""

    def __init__(
        self, stats: Stats, find: Callable[[], Callable[[int], int] | None] = trim_function
    ) -> None:
        self._stats: Final = stats
        self._find: Final = find
        self._messages = 0
        self._trimmed_at_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Check every ten seconds from now on, in the running loop."""
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._again)

    def stop(self) -> None:
        """Stop checking."""
        if self._timer is not None:
            self._timer.cancel()

    def _again(self) -> None:
        self.look()
        self.start()

    def look(self) -> bool:
        """Trim if the broker was busy since the last trim and is quiet now. True if it did."""
        stats = self._stats
        before, self._messages = self._messages, int(stats.published + stats.delivered)
        size = int(stats.published_bytes)
        if self._messages - before > QUIET or size - self._trimmed_at_bytes < WORTH_TRIMMING:
            return False
        self._trimmed_at_bytes = size
        trim = self._find()
        if trim is not None:
            trim(0)
        return trim is not None
