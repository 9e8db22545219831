"""The HTTP server inside the broker's loop: starlette's application, run by uvicorn.

It takes no signals, writes no log of its own, and ends when the broker does: streams that are
under way are cut off, without an end that could be taken for one.
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
"""Connections that may wait until they are accepted. A client that finds no place there tries again
after a second only (TCP), so hundreds of connections at once must not fill it."""

TICK_S: Final = 1.0
"""The `Date` of responses is made so often."""

FAREWELL_S: Final = 1
"""So long a short answer may take to be sent when the broker stops."""


@final
class Server(uvicorn.Server):
    """uvicorn's, which leaves signals to the broker, and sleeps longer."""

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
        """Let `serve` return, soon."""
        self.should_exit = True
        self._is_to_end.set()
        for connection in list(self.server_state.connections):
            assert isinstance(connection, HttpConnection)
            connection.cut_off()


@final
class HttpServer:
    """The listener for HTTP of one broker."""

    def __init__(self, settings: HttpSettings, container: Container, store: Store) -> None:
        self._settings: Final = settings
        self._container: Final = container
        self._store: Final = store
        self._displacements: Final = Displacements()
        self._server: Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self.port = settings.port or 0

    def url(self) -> str:
        """Where it listens, once it does."""
        host = self._settings.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    async def start(self) -> None:
        """Listen; OSError, with the address as its file name, where that cannot be."""
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
        access = Access(self._container.authenticator, is_local=is_loopback(settings.host))
        streams = Streams(settings.streams_max, self._container.watcher)
        readings = Readings(self._container, self._store, access=access, streams=streams)
        return uvicorn.Config(
            ShortHeads(application(readings), settings.head_bytes_max),
            interface="asgi3",
            http=partial(HttpConnection, crowded=self._crowded),  # type: ignore[arg-type]  # called like a class
            ws="none",
            lifespan="off",
            loop="none",
            log_config=None,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=settings.silence_max_ms / 1000,  # type: ignore[arg-type]  # any number does
            timeout_graceful_shutdown=FAREWELL_S,
            h11_max_incomplete_event_size=settings.head_bytes_max,
        )

    def _crowded(self, source: str) -> None:
        """Count a connection that was dropped for lack of room, and report that at times."""
        self._container.stats.http_connections_dropped += 1
        notice = self._displacements.note(source, asyncio.get_running_loop().time())
        if notice is not None:
            self._container.watcher.noticed(notice)

    async def stop(self) -> None:
        """Refuse newcomers, cut off streams, and wait until nothing of this is left."""
        if self._server is not None and self._serving is not None:
            self._server.end()
            await self._serving
