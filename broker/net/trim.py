"""Giving freed memory back to the system once a broker that was busy has become quiet.

The C library keeps what was freed for the next messages. After a peak that is hundreds of MiB,
which other programs of the machine could use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from broker.stats import Stats

LOOK_EVERY_S: Final = 10.0

QUIET: Final = 1000
"""With fewer messages in and out than these between two looks a broker is quiet."""

WORTH_TRIMMING: Final = 16 * 1024 * 1024
"""Bytes of messages that came since the last time: with less there is little to give back."""


def trim_function() -> Callable[[int], int] | None:
    """Return the C library's `malloc_trim`; None where it has none (musl, macOS)."""
    import ctypes

    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None


class Trimmer:
    """Looks every ten seconds whether the broker was busy and is quiet now; trims once then."""

    def __init__(
        self, stats: Stats, find: Callable[[], Callable[[int], int] | None] = trim_function
    ) -> None:
        self._stats: Final = stats
        self._find: Final = find
        self._messages = 0
        self._trimmed_at_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on, in the running loop."""
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._again)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _again(self) -> None:
        self.look()
        self.start()

    def look(self) -> bool:
        """Trim if the broker was busy since the last time and is quiet now; return whether."""
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
