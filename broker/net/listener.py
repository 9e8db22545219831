"""The sockets on which the broker accepts AMQP connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from broker.links.container import Container
from broker.listener_settings import ListenerSettings
from broker.net.connection_admission import ConnectionAdmission
from broker.net.connection_gate import ConnectionLimits
from broker.net.loop_timer import LoopTimer
from broker.net.refusal_log import RefusalLog
from broker.net.socket_protocol import SocketProtocol

CUT_OFF_S: Final = 1.0
"""Maximum seconds that aborted transports take to close; it takes them one turn of the loop."""

BACKLOG: Final = 4096
"""Connections that may wait in the kernel: a fleet of clients reconnects all at once."""

TLS_WATCH_S: Final = 30.0
"""Seconds between two looks at the files of certificates."""


@dataclass(frozen=True)
class PreparedListener:
    """The change of one listener by a reload: a call of `adopt` puts it into force.

    `certificates` tells the certificates that it has then, and what is new; None without TLS.
    """

    name: str
    adopt: Callable[[], None]
    certificates: str | None = None


class Listener:
    """One listening address. `port` is the port in use once it listens."""

    def __init__(self, settings: ListenerSettings) -> None:
        self.settings = settings
        self.port = settings.port
        self._server: asyncio.Server | None = None

    def url(self) -> str:
        """Return the URL; if the settings leave the port to the kernel, once it listens."""
        return self.settings.url(self.port)

    async def listen(self, listeners: Listeners) -> None:
        """Accept connections. Raise OSError, with the URL as its file name, if that fails."""
        try:
            self.port = await self._listen(self._maker(listeners))
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.url()) from None

    def _maker(self, listeners: Listeners) -> Callable[[], SocketProtocol]:
        """Return what makes the protocol of a connection."""
        if not self.settings.is_websocket:
            return lambda: SocketProtocol(listeners, self.settings)
        # a broker without WebSocket is spared its modules, and the library
        from broker.net.websocket_protocol import WebSocketProtocol

        refusals = RefusalLog(self.settings.name, listeners.container)
        return lambda: WebSocketProtocol(listeners, self.settings, refusals)

    async def _listen(self, make_protocol: Callable[[], SocketProtocol]) -> int:
        self._server = await asyncio.get_running_loop().create_server(
            make_protocol,
            self.settings.bind,
            self.port,
            backlog=BACKLOG,
            family=socket.AF_UNSPEC,
        )
        return int(self._server.sockets[0].getsockname()[1])

    def stop_accepting(self) -> None:
        """Refuse new connections; open ones stay."""
        if self._server is not None:
            self._server.close()

    async def ended(self) -> None:
        """Wait, after `stop_accepting`, until no connection is being accepted any more."""

    def prepare(self, settings: ListenerSettings) -> PreparedListener:
        """Return what puts `settings`, which may have another `tls`, into force.

        They count for connections whose handshake begins afterwards. Raise TlsError if a file of
        them cannot be used.
        """

        def adopt() -> None:
            self.settings = settings

        return PreparedListener(settings.name, adopt)

    def watch_tls(self) -> None:
        """Use changed certificates, and report those that are about to end."""


def listener_of(settings: ListenerSettings, container: Container) -> Listener:
    """Return the listener of `settings`. Raise TlsError if its certificates cannot be used."""
    # a broker without TLS, or without proxies, is spared its modules
    if settings.tls is not None:
        from broker.net.tls_listener import TlsListener

        return TlsListener(settings, settings.tls, container)
    if settings.is_proxied:
        from broker.net.proxy_listener import ProxyListener

        return ProxyListener(settings, container)
    return Listener(settings)


class Listeners:
    """All listeners of one container, and their connections.

    `stall_timeout_ms` and `limits` apply to new connections. Raise TlsError if certificates cannot
    be used.
    """

    def __init__(
        self,
        container: Container,
        settings: Sequence[ListenerSettings],
        *,
        stall_timeout_ms: int,
        limits: ConnectionLimits,
    ) -> None:
        self.container: Final = container
        self.admission: Final = ConnectionAdmission(container, limits)
        self.stall_timeout_ms = stall_timeout_ms
        self.each: Final = [listener_of(one, container) for one in settings]
        for one in settings:
            container.stats.listener(one.name)  # so that metrics show it before its first client
        self.connections: Final[set[SocketProtocol]] = set()
        self.is_frozen = False
        self._timer: LoopTimer | None = None
        self._tls_watch: asyncio.TimerHandle | None = None

    async def listen(self) -> None:
        """Accept connections on every listener. Raise OSError if one of them cannot."""
        self._timer = LoopTimer(self.container, asyncio.get_running_loop())
        for listener in self.each:
            await listener.listen(self)
        if any(listener.settings.tls is not None for listener in self.each):
            self._look_after_tls()

    def admit(self, connection: SocketProtocol, host: str) -> bool:
        """Return whether a new connection from `host` may stay; one that gives way is cut."""
        return self.admission.admit(connection, host, present=len(self.connections))

    def _look_after_tls(self) -> None:
        self.watch_tls()
        loop = asyncio.get_running_loop()
        self._tls_watch = loop.call_later(TLS_WATCH_S, self._look_after_tls)

    def prepare(self, settings: Sequence[ListenerSettings]) -> list[PreparedListener]:
        """Return what puts the settings of each listener, in their order, into force.

        Raise TlsError if a file of one cannot be used.
        """
        return [
            listener.prepare(wanted) for listener, wanted in zip(self.each, settings, strict=True)
        ]

    def watch_tls(self) -> None:
        """Use changed certificates, and report those that are about to end."""
        for listener in self.each:
            listener.watch_tls()

    def stop_accepting(self) -> None:
        """Refuse new connections; open ones stay."""
        if self._tls_watch is not None:
            self._tls_watch.cancel()
        for listener in self.each:
            listener.stop_accepting()

    def drop_connections(self) -> int:
        """Cut off every connection at once, as a failing network does. Return their number."""
        open_now = list(self.connections)
        for connection in open_now:
            connection.cut()
        return len(open_now)

    def freeze(self) -> None:
        """Read from no connection, including new ones, until `thaw`."""
        self.is_frozen = True
        for connection in self.connections:
            connection.freeze()

    def thaw(self) -> None:
        """Read from all connections again."""
        self.is_frozen = False
        for connection in self.connections:
            connection.thaw()

    def beat(self, now_ms: int) -> None:
        """Send the empty frames that are due."""
        for connection in self.connections:
            connection.beat(now_ms)

    async def close(self, patience_s: float) -> None:
        """Wait `patience_s` for clients to leave, and cut off the rest. No timer fires later."""
        self.stop_accepting()
        for listener in self.each:
            await listener.ended()
        for connection in list(self.connections):
            connection.broker_stops()
        waited = await self._until_gone(patience_s)
        for connection in list(self.connections):
            connection.abort()
        if not waited:
            await self._until_gone(CUT_OFF_S)
        if self._timer is not None:
            self._timer.close()

    async def _until_gone(self, patience_s: float) -> bool:
        """Return whether all connections have ended within `patience_s`."""
        gone = [connection.gone() for connection in self.connections]
        if not gone:
            return True
        _, left = await asyncio.wait(gone, timeout=patience_s)
        return not left
