"""Admits new connections within the limits of the settings, and reports those that gave way."""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.links.container import Container
from broker.log_events import NO_ROOM
from broker.net.connection_gate import (
    CONNECTIONS_MAX,
    UNAUTHENTICATED_MAX,
    ConnectionGate,
    ConnectionLimits,
)
from broker.security.authenticate import is_loopback
from broker.security.turns import source_of
from broker.settings import Settings

if TYPE_CHECKING:
    from broker.net.socket_protocol import SocketProtocol

DESCRIPTORS_RESERVED: Final = 100
"""Open files that connections leave to the store, listeners and HTTP."""

REPORT_EVERY_MS: Final = 10_000
"""Minimum milliseconds between two lines of the log about connections over a limit."""


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the limits of the settings, and no more connections than the process may open."""
    limits = ConnectionLimits(
        connections=settings.connections_max,
        unauthenticated=settings.unauthenticated_max,
        unauthenticated_of_source=settings.unauthenticated_source_max,
        limits_loopback=settings.limit_loopback,
    )
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return limits
    # else clients without a login could take every file, and keep all others out
    possible = max(1, files - DESCRIPTORS_RESERVED)
    if 0 < limits.connections <= possible:
        return limits
    return replace(limits, connections=possible)


class ConnectionAdmission:
    """The admission of the connections of one broker. `limits` may be replaced at any time."""

    def __init__(self, container: Container, limits: ConnectionLimits) -> None:
        self._container: Final = container
        self._gate: Final = ConnectionGate["SocketProtocol"](limits)
        self._next_report_ms = 0
        self._unreported = 0

    @property
    def limits(self) -> ConnectionLimits:
        """The limits for new connections."""
        return self._gate.limits

    @limits.setter
    def limits(self, limits: ConnectionLimits) -> None:
        self._gate.limits = limits

    def unauthenticated(self) -> int:
        """Return the number of open connections without a login."""
        return len(self._gate)

    def admit(self, connection: SocketProtocol, host: str, *, present: int) -> bool:
        """Return whether a new connection from `host`, beside `present` others, may stay.

        A connection that gives way to it is cut.
        """
        entry = self._gate.admit(
            connection, source_of(host), is_local=is_loopback(host), present=present
        )
        if entry.limit:
            self._report(entry.limit, host)
        if entry.displaced is not None:
            entry.displaced.cut()
        return entry.admitted

    def leave(self, connection: SocketProtocol) -> None:
        """Count a connection no longer as one without a login: it has logged in, or has ended."""
        self._gate.leave(connection)

    def _report(self, limit: str, host: str) -> None:
        container = self._container
        container.stats.connections_over_limit += 1
        now_ms = int(container.clock.now_ms())
        if now_ms < self._next_report_ms:
            self._unreported += 1
            return
        more = f"; {self._unreported} more since the last report" if self._unreported else ""
        self._next_report_ms = now_ms + REPORT_EVERY_MS
        self._unreported = 0
        value = self._value(limit)
        text = f"a connection was closed for lack of room when {host} connected: {value}{more}"
        container.watcher.noticed(NO_ROOM.notice(text))

    def _value(self, limit: str) -> str:
        limits = self._gate.limits
        if limit == CONNECTIONS_MAX:
            return (
                f"at most {limits.connections} connections ({limit}, and the limit of open files"
                f" less {DESCRIPTORS_RESERVED}; raise the lower one)"
            )
        if limit == UNAUTHENTICATED_MAX:
            return f"at most {limits.unauthenticated} without a login ({limit})"
        return f"at most {limits.unauthenticated_of_source} without a login of one source ({limit})"
