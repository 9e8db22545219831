"""Reports failed TLS handshakes to the operator: each is counted, few have a line of the log."""

from __future__ import annotations

from typing import Final

from broker.links.container import Container
from broker.net.handshake_failures import HandshakeFailure

INTERVAL_MS: Final = 60_000
"""Minimum milliseconds between two lines about the failures of one listener."""


class HandshakeLog:
    """The failed handshakes of one listener."""

    def __init__(self, listener: str, container: Container) -> None:
        self._listener: Final = listener
        self._container: Final = container
        self._next_ms = 0
        self._untold = 0

    def note(self, failure: HandshakeFailure) -> None:
        """Count a failure; log it unless there was a line within the last minute."""
        container = self._container
        container.stats.tls_handshakes_failed += 1
        now_ms = int(container.clock.now_ms())
        if now_ms < self._next_ms:
            self._untold += 1
            return
        more = f"; {self._untold} more since the last report" if self._untold else ""
        self._next_ms = now_ms + INTERVAL_MS
        self._untold = 0
        container.watcher.noticed(f"listener {self._listener}: {failure.text()}{more}")
