"""The log of an embedded broker, written with Python's `logging`, silent unless configured."""

import logging
from typing import Final, final

from broker.links.access import Right
from broker.links.container import Container
from broker.links.peer import Peer
from broker.links.watcher import Watcher
from broker.log_events import Notice
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity

LOGGER: Final = "jms-broker"


@final
class Watch(Watcher):
    """Writes to the logger `jms-broker`, whose output pytest shows with a failed test."""

    def __init__(self) -> None:
        self._log: Final = logging.getLogger(LOGGER)
        if not self._log.handlers:
            # without a handler, and with logging not configured, warnings go to standard error
            self._log.addHandler(logging.NullHandler())

    def opened(self, peer: Peer) -> None:
        self._log.debug("connection of %r opened", peer.container_id)

    def refused(self, peer: Peer, reason: str) -> None:
        self._log.warning("connection of %r refused: %r", peer.container_id, reason)

    def denied(self, peer: Peer, right: Right, decision: Decision) -> None:
        refusal = decision.text(right.verb, right.resource)
        self._log.warning("access of %r denied: %r", peer.container_id, refusal)

    def not_renewed(self, peer: Peer, reason: str) -> None:
        self._log.warning("login of %r not renewed: %r", peer.container_id, reason)

    def limited(self, peer: Peer, refusal: str) -> None:
        self._log.warning("request of %r refused: %r", peer.container_id, refusal)

    def closed(self, peer: Peer, reason: str) -> None:
        self._log.debug("connection of %r closed: %r", peer.container_id, reason)

    def stalled(self, peer: Peer, timeout_ms: int) -> None:
        self._log.warning(
            "connection of %r cut: its client read nothing for %d ms", peer.container_id, timeout_ms
        )

    def managed(self, identity: Identity, address: str, change: dict[str, str]) -> None:
        self._log.debug("management change by %r at %s: %r", identity.name(), address, change)

    def noticed(self, notice: Notice) -> None:
        self._log.warning("%s %r", notice.event.code, notice.text)

    def failed(self, peer: Peer, error: Exception) -> None:
        self._log.error("internal error, serving %r", peer.container_id, exc_info=error)

    def request_failed(self, container: Container, entrance: Entrance, error: Exception) -> None:  # noqa: ARG002
        self._log.error("internal error, serving %s over HTTP", entrance.address, exc_info=error)
