"""The HTTP server in the broker's event loop: a starlette application, run by uvicorn.

With TLS, an acceptor performs the handshakes, as for AMQP, and hands over the connections.

It handles no signals, writes no log of its own, and stops when the broker does: streams being sent
are cut off, without an end that a client could take for a complete stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, final

import uvicorn
from starlette.types import ASGIApp

from broker.event_within import is_set_within
from broker.http.access import Access
from broker.http.admission import Displacements
from broker.http.application import ShortHeads, application
from broker.http.connection import HttpConnection
from broker.http.failure_reports import FailureReports
from broker.http.loop_lag import LoopLag
from broker.http.mounts import routes_of
from broker.http.open_streams import OpenStreams
from broker.http.site import Site
from broker.http.streams import Streams
from broker.http_settings import HttpSettings
from broker.links.container import Container
from broker.log_events import HTTP_CROWDED
from broker.management.executor import Executor
from broker.management.later import SpawnedTasks
from broker.management.management import Management
from broker.net.listener import TLS_WATCH_S, PreparedListener
from broker.security.authenticate import is_loopback
from broker.security.entrance import HTTP
from broker.tls_settings import TlsSettings
from storage.api import Store

if TYPE_CHECKING:
    from broker.net.acceptor import Acceptor
    from broker.net.watched_tls import WatchedTls

BACKLOG: Final = 1024
"""Maximum connections that wait to be accepted. If there is no place, TCP tries again only after a
second, so hundreds of simultaneous connections must not fill it."""

TICK_S: Final = 1.0
"""Seconds between two updates of the `Date` header of responses."""

FAREWELL_S: Final = 1
"""Maximum seconds for sending a short response when the broker stops."""


@final
class Server(uvicorn.Server):
    """uvicorn's server, without signal handling, and with a main loop that wakes less often."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up: Final = asyncio.Event()
        self._is_to_end: Final = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.is_up.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await is_set_within(self._is_to_end, TICK_S)

    def new_connection(self) -> asyncio.Protocol:
        """Return the protocol of a new connection, which is not from a socket of this server."""
        made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            _loop=asyncio.get_running_loop(),
        )
        return made

    def drop_connections(self) -> None:
        """Abort all connections that are still open."""
        for connection in list(self.server_state.connections):
            assert isinstance(connection, HttpConnection)
            connection.drop()

    def end(self) -> None:
        """Make `serve` return soon; abort connections in the middle of a response."""
        self.should_exit = True
        self._is_to_end.set()
        for connection in list(self.server_state.connections):
            assert isinstance(connection, HttpConnection)
            connection.cut_off()


@final
class HttpServer:
    """The HTTP listener of one broker. After `start`, `port` is the port that it listens on.

    `site` has its parts. `management` carries out the requests of its API. With `tls` it speaks
    HTTPS. `obstacles` and `has_started` are those of `Site`. Raise TlsError if its certificates
    cannot be used.
    """

    def __init__(
        self,
        settings: HttpSettings,
        container: Container,
        store: Store,
        *,
        management: Management,
        tls: TlsSettings | None = None,
        obstacles: Callable[[], list[str]] = list,
        has_started: Callable[[], bool] = lambda: True,
    ) -> None:
        self._settings: Final = settings
        self._container: Final = container
        self.site: Final = Site(
            settings=settings,
            container=container,
            store=store,
            executor=Executor(management, container),
            access=Access(container, is_local=is_loopback(settings.host)),
            tasks=SpawnedTasks(),
            streams=Streams(settings.streams_max, container.watcher),
            event_streams=OpenStreams(container),
            loop_lag=LoopLag(),
            obstacles=obstacles,
            has_started=has_started,
        )
        # now, not at the start: a library that a part of it needs may be missing
        self._application: Final = application(routes_of(self.site))
        self._displacements: Final = Displacements()
        self._server: Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._tls: Final = None if tls is None else _watched(tls, container)
        self._acceptor: Acceptor | None = None
        self._watch: asyncio.TimerHandle | None = None
        self.port = settings.port or 0

    def url(self) -> str:
        """Return the URL. If the settings name no port, it is known once the server listens."""
        host = self._settings.host
        scheme = "http" if self._tls is None else "https"
        return (
            f"{scheme}://[{host}]:{self.port}" if ":" in host else f"{scheme}://{host}:{self.port}"
        )

    async def start(self) -> None:
        """Begin to listen. Raise OSError, with the URL as its file name, if that fails."""
        self._server = Server(self._config())
        if self._settings.metrics:
            self.site.loop_lag.start()
        try:
            # with TLS, connections come from the acceptor, and the server has no socket
            sockets = [self._listening()] if self._tls is None else []
            self._serving = asyncio.get_running_loop().create_task(self._server.serve(sockets))
            await self._server.is_up.wait()
            if self._tls is not None:
                self._acceptor = self._tls.acceptor(self._server.new_connection)
                host, port = self._settings.host, self.port
                self.port = await self._acceptor.listen(host, port, backlog=BACKLOG)
                self._watch_tls(self._tls)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.url()) from None

    def _listening(self) -> socket.socket:
        host = self._settings.host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, self.port), family=family, backlog=BACKLOG)
        listening.setblocking(False)
        self.port = int(listening.getsockname()[1])
        return listening

    def _watch_tls(self, tls: WatchedTls) -> None:
        tls.watch()
        loop = asyncio.get_running_loop()
        self._watch = loop.call_later(TLS_WATCH_S, self._watch_tls, tls)

    def prepare(self, tls: TlsSettings) -> PreparedListener:
        """Return what puts `tls` into force. Raise TlsError if a file of it cannot be used."""
        assert self._tls is not None, "whether HTTP has TLS does not change"
        return self._tls.prepare(tls)

    def _config(self) -> uvicorn.Config:
        settings = self._settings
        return uvicorn.Config(
            FailureReports(ShortHeads(self._answering(), settings.head_bytes_max), self._container),
            interface="asgi3",
            # uvicorn expects a class, and only calls it
            http=partial(HttpConnection, crowded=self._crowded),  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            # declared as an int, but any number works
            timeout_keep_alive=settings.silence_max_ms / 1000,  # type: ignore[arg-type]
            timeout_graceful_shutdown=FAREWELL_S,
            h11_max_incomplete_event_size=settings.head_bytes_max,
        )

    def _answering(self) -> ASGIApp:
        """Return the application; of a member of a group, one that answers while it leads."""
        if self._container.group is None:
            return self._application
        # a broker without a group is spared the module
        from broker.http.leader_answers import LeaderAnswers

        return LeaderAnswers(self._application, self._container)

    def _crowded(self, source: str) -> None:
        """Count a connection dropped because of a limit, and log a notice if one is due."""
        self._container.stats.http_connections_dropped += 1
        notice = self._displacements.note(source, asyncio.get_running_loop().time())
        if notice is not None:
            self._container.watcher.noticed(HTTP_CROWDED.notice(notice))

    async def stop(self) -> None:
        """Accept no more connections, cut off streams, and wait until the server has ended."""
        if self._watch is not None:
            self._watch.cancel()
        self.site.loop_lag.stop()
        if self._acceptor is not None:
            self._acceptor.stop_accepting()
            await self._acceptor.ended()
        await self.site.tasks.end(cancel=True)
        if self._server is not None and self._serving is not None:
            self._server.end()
            await self._serving
            # a client of TLS that does not answer its end would keep the connection open
            self._server.drop_connections()


def _watched(tls: TlsSettings, container: Container) -> WatchedTls:
    # a broker without TLS is spared its modules
    from broker.net.watched_tls import WatchedTls

    return WatchedTls(HTTP, tls, container, place="tls")
