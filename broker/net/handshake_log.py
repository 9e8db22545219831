"""Reports failed TLS handshakes to the operator: each is counted, few have a line of the log."""

from __future__ import annotations

from typing import Final

from broker.links.container import Container
from broker.net.handshake_failures import HandshakeFailure
from broker.net.refusal_log import RefusalLog


class HandshakeLog:
    """The failed handshakes of one listener."""

    def __init__(self, listener: str, container: Container) -> None:
        self._container: Final = container
        self._log: Final = RefusalLog(listener, container)

    def note(self, failure: HandshakeFailure) -> None:
        """Count a failure; log it unless there was a line within the last minute."""
        self._container.stats.tls_handshakes_failed += 1
        self._log.note(failure.text())
