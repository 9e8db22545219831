"""A line per connection that opens, closes or is refused, and per notice; none per message."""

import logging
import sys
from typing import Final, TextIO

import structlog

from broker.links.container import Watcher
from broker.links.peer import Peer

TEXT_MAX: Final = 256


def printable(text: str) -> str:
    """A peer's text, cut and escaped, so that it forges no lines (`reliability.md` S8)."""
    cut = text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


class Log(Watcher):
    """Writes what an operator should know to the log."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("broker")

    def opened(self, peer: Peer) -> None:
        self._log.info("connection opened", **self._facts(peer))

    def refused(self, peer: Peer, reason: str) -> None:
        self._log.warning("connection refused", reason=printable(reason), **self._facts(peer))

    def closed(self, peer: Peer, reason: str) -> None:
        self._log.info("connection closed", reason=printable(reason), **self._facts(peer))

    def stalled(self, peer: Peer, timeout_ms: int) -> None:
        self._log.warning(
            "connection cut: its client read nothing of what waited for it; what it had not"
            " settled returns to its queues",
            stall_timeout_ms=timeout_ms,
            **self._facts(peer),
        )

    def noticed(self, notice: str) -> None:
        self._log.warning(printable(notice))

    def failed(self, peer: Peer, error: Exception) -> None:
        self._log.error("internal error", exc_info=error, **self._facts(peer))

    def _facts(self, peer: Peer) -> dict[str, str]:
        facts = {
            "address": peer.address,
            "container_id": printable(peer.container_id),
            "user": printable(peer.user) or "anonymous",
        }
        if peer.claimed_user:
            facts["claimed_user"] = printable(peer.claimed_user)
        return facts


def configure_logging(form: str, level: str, stream: TextIO = sys.stderr) -> None:
    """Write lines of `level` and above to `stream`, for people (`console`) or programs (`json`)."""
    for_programs = form == "json"
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([structlog.processors.dict_tracebacks] if for_programs else []),
            structlog.processors.JSONRenderer()
            if for_programs
            else structlog.dev.ConsoleRenderer(colors=stream.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.WriteLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
