"""Reports refused connections to the operator: few of them have a line of the log."""

from __future__ import annotations

from typing import Final

from broker.links.container import Container
from broker.log_events import NOT_ACCEPTED

INTERVAL_MS: Final = 60_000
"""Minimum milliseconds between two lines about the refusals of one listener."""


class RefusalLog:
    """The refused connections of one listener, of one kind."""

    def __init__(self, listener: str, container: Container) -> None:
        self._listener: Final = listener
        self._container: Final = container
        self._next_ms = 0
        self._untold = 0

    def note(self, text: str) -> None:
        """Log a refusal unless there was a line within the last minute."""
        container = self._container
        now_ms = int(container.clock.now_ms())
        if now_ms < self._next_ms:
            self._untold += 1
            return
        more = f"; {self._untold} more since the last report" if self._untold else ""
        self._next_ms = now_ms + INTERVAL_MS
        self._untold = 0
        container.watcher.noticed(NOT_ACCEPTED.notice(f"listener {self._listener}: {text}{more}"))
