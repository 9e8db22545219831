"""The log: lines for connections that open, close or are refused, and for notices.

Nothing is logged per message. Of the lines that the clients of one address cause, ten are written
in a second (`line_limit.py`); lines about changes by administrators are all written.
"""

from typing import Final

import structlog

from broker.links.access import Right
from broker.links.container import Container
from broker.links.peer import Peer
from broker.links.watcher import Watcher
from broker.log_events import (
    CLOSED,
    CUT,
    DENIED,
    INTERNAL_ERROR,
    LIMITED,
    LINES_LEFT_OUT,
    MANAGED,
    NOT_RENEWED,
    OPENED,
    REFUSED,
    LogEvent,
    Notice,
)
from broker.log_lines import LEVELS, write_line
from broker.net.line_limit import LINES_PER_S, LineLimit
from broker.security.decision import Decision
from broker.security.entrance import Entrance
from broker.security.identity import Identity

TEXT_MAX: Final = 256


def printable(text: str) -> str:
    """Return a peer's text, cut and escaped, so that it forges no lines.

    `docs/design/hostile-input.md` S8 says what else protects the log.
    """
    cut = text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


class Log(Watcher):
    """Writes to the log what an operator should know."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("broker")
        self._limit: Final = LineLimit(self._tell_left_out)

    def opened(self, peer: Peer) -> None:
        if self._may_write(peer, OPENED):
            self._write(OPENED, **self._facts(peer))

    def refused(self, peer: Peer, reason: str) -> None:
        if self._may_write(peer, REFUSED):
            self._write(REFUSED, reason=printable(reason), **self._facts(peer))

    def denied(self, peer: Peer, right: Right, decision: Decision) -> None:
        if self._may_write(peer, DENIED):
            refusal = printable(decision.text(right.verb, right.resource))
            self._write(DENIED, refusal=refusal, **self._facts(peer))

    def not_renewed(self, peer: Peer, reason: str) -> None:
        if self._may_write(peer, NOT_RENEWED):
            self._write(NOT_RENEWED, reason=printable(reason), **self._facts(peer))

    def limited(self, peer: Peer, refusal: str) -> None:
        if self._may_write(peer, LIMITED):
            self._write(LIMITED, refusal=printable(refusal), **self._facts(peer))

    def closed(self, peer: Peer, reason: str) -> None:
        if self._may_write(peer, CLOSED):
            self._write(CLOSED, reason=printable(reason), **self._facts(peer))

    def stalled(self, peer: Peer, timeout_ms: int) -> None:
        if self._may_write(peer, CUT):
            self._write(CUT, stall_timeout_ms=timeout_ms, **self._facts(peer))

    def managed(self, identity: Identity, address: str, change: dict[str, str]) -> None:
        facts = {name: printable(text) for name, text in change.items()}
        facts.update(address=address, user=printable(identity.name()))
        self._write(MANAGED, **facts)

    def noticed(self, notice: Notice) -> None:
        event = notice.event
        self._log.log(LEVELS[event.level], printable(notice.text), code=event.code)

    def failed(self, peer: Peer, error: Exception) -> None:
        if self._may_write(peer, INTERNAL_ERROR):
            self._write(INTERNAL_ERROR, exc_info=error, **self._facts(peer))

    def request_failed(self, container: Container, entrance: Entrance, error: Exception) -> None:
        if self._admits(container, entrance, INTERNAL_ERROR):
            self._write(INTERNAL_ERROR, exc_info=error, address=entrance.address, via="http")

    def _may_write(self, peer: Peer, event: LogEvent) -> bool:
        """Return whether a line about `peer` is to be written; if not for its number, count it."""
        return self._admits(peer.container, peer.entrance, event)

    def _admits(self, container: Container, entrance: Entrance, event: LogEvent) -> bool:
        """Do as `_may_write` does, for any client."""
        if not self._log.is_enabled_for(LEVELS[event.level]):
            return False
        now_ms = int(container.clock.now_ms())
        return self._limit.admits(entrance.host, now_ms, container.router.timer_queue)

    def _tell_left_out(self, source: str, count: int) -> None:
        self._log.warning(
            LINES_LEFT_OUT.title.format(LINES_PER_S),
            code=LINES_LEFT_OUT.code,
            address=source,
            left_out=count,
        )

    def _write(self, event: LogEvent, **facts: object) -> None:
        write_line(self._log, event, **facts)

    def _facts(self, peer: Peer) -> dict[str, str]:
        facts = {
            "address": peer.entrance.address,
            "container_id": printable(peer.container_id),
            "user": printable(peer.identity.name()),
        }
        if peer.identity.claimed_user:
            facts["claimed_user"] = printable(peer.identity.claimed_user)
        return facts
