"""The HTTP server in the broker's event loop: a starlette application, run by uvicorn.

It handles no signals, writes no log of its own, and stops when the broker does: streams being sent
are cut off, without an end that a client could take for a complete stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import Final, final

import uvicorn

from broker.http.access import Access
from broker.http.admission import Displacements
from broker.http.application import Readings, ShortHeads, application
from broker.http.connection import HttpConnection
from broker.http.streams import Streams
from broker.links.container import Container
from broker.security.authenticate import is_loopback
from broker.settings import HttpSettings
from storage.api import Store

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
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_to_end.wait(), TICK_S)

    def end(self) -> None:
        """Make `serve` return soon; abort connections in the middle of a response."""
        self.should_exit = True
        self._is_to_end.set()
        for connection in list(self.server_state.connections):
            assert isinstance(connection, HttpConnection)
            connection.cut_off()


@final
class HttpServer:
    """The HTTP listener of one broker. After `start`, `port` is the port that it listens on."""

    def __init__(self, settings: HttpSettings, container: Container, store: Store) -> None:
        self._settings: Final = settings
        self._container: Final = container
        self._store: Final = store
        self._displacements: Final = Displacements()
        self._server: Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.port = settings.port or 0

    def url(self) -> str:
        """Return the URL. If the settings name no port, it is known once the server listens."""
        host = self._settings.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    async def start(self) -> None:
        """Begin to listen. Raise OSError, with the URL as its file name, if that fails."""
        host = self._settings.host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server((host, self.port), family=family, backlog=BACKLOG)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.url()) from None
        listening.setblocking(False)
        self.port = int(listening.getsockname()[1])
        self._server = Server(self._config())
        self._serving = asyncio.get_running_loop().create_task(self._server.serve([listening]))
        await self._server.is_up.wait()

    def _config(self) -> uvicorn.Config:
        settings = self._settings
        access = Access(self._container, is_local=is_loopback(settings.host))
        streams = Streams(settings.streams_max, self._container.watcher)
        readings = Readings(self._container, self._store, access=access, streams=streams)
        return uvicorn.Config(
            ShortHeads(application(readings), settings.head_bytes_max),
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

    def _crowded(self, source: str) -> None:
        """Count a connection dropped because of a limit, and log a notice if one is due."""
        self._container.stats.http_connections_dropped += 1
        notice = self._displacements.note(source, asyncio.get_running_loop().time())
        if notice is not None:
            self._container.watcher.noticed(notice)

    async def stop(self) -> None:
        """Accept no more connections, cut off streams, and wait until the server has ended."""
        if self._server is not None and self._serving is not None:
            self._server.end()
            await self._serving
