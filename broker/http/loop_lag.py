"""Measures how late the event loop calls a timer: for so long other work has kept it busy."""

from __future__ import annotations

import asyncio
from typing import Final, final

from broker.stats import SHORTEST_US, Histogram

EVERY_S: Final = 0.25
"""Seconds between two measurements."""


@final
class LoopLag:
    """A timer that measures its own lateness, from `start` to `stop`."""

    def __init__(self) -> None:
        self.lag_us: Final = Histogram(SHORTEST_US)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Measure from now on."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(EVERY_S, self._tick, loop.time() + EVERY_S)

    def _tick(self, due_s: float) -> None:
        loop = asyncio.get_running_loop()
        self.lag_us.observe(int((loop.time() - due_s) * 1_000_000))
        self.start()

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
