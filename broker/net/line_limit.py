"""Limits the lines of the log that one address causes: clients cause them as often as they like.

Lines are counted in each second. Those beyond the limit are left out, and told as a number when the
second has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from broker.routing.timer_queue import TimerCallback, TimerQueue
from broker.security.turns import source_of

SECOND_MS: Final = 1000

LINES_PER_S: Final = 10
"""Maximum lines that one source causes in a second, with the one that tells how many were not
written."""

SOURCES_MAX: Final = 100
"""Maximum sources that are counted in a second; further ones are one source.

A thousand refused logins in a second, each from an address of its own, would spend a tenth of the
event loop's time on lines.
"""

FURTHER_SOURCES: Final = f"more than {SOURCES_MAX} addresses"


class LineLimit(TimerCallback):
    """The lines of the current second, by their source (an IPv4 address, an IPv6 /64).

    `tell` is called with a source and the number of its lines that were left out.
    """

    def __init__(self, tell: Callable[[str, int], None], *, sources_max: int = SOURCES_MAX) -> None:
        self._tell: Final = tell
        self._sources_max: Final = sources_max
        self._second = -1
        self._lines: Final[Counter[str]] = Counter()
        self._left_out: Final[Counter[str]] = Counter()

    def __len__(self) -> int:
        """Return the number of sources that are counted."""
        return len(self._lines)

    def admits(self, host: str, now_ms: int, timers: TimerQueue) -> bool:
        """Return whether a line that the client at `host` causes is to be written.

        If it is not, `timers` end the second, also if no further line comes.
        """
        self._begin(now_ms // SECOND_MS)
        source = source_of(host)
        if source not in self._lines and len(self._lines) >= self._sources_max:
            source = FURTHER_SOURCES
        if self._lines[source] < LINES_PER_S:
            self._lines[source] += 1
            return True
        if not self._left_out:
            timers.at(i64((self._second + 1) * SECOND_MS), self)
        self._left_out[source] += 1
        return False

    def due(self, now_ms: i64) -> None:
        self._begin(int(now_ms) // SECOND_MS)

    def _begin(self, second: int) -> None:
        """Begin a second, unless it is the current one, and tell what was left out before."""
        if second == self._second:
            return
        self._second = second
        left_out = dict(self._left_out)
        self._left_out.clear()
        self._lines.clear()
        for source, count in left_out.items():
            self._lines[source] += 1
            self._tell(source, count)
