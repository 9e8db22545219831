"""A proxy that simulates faults between a broker and its database.

It loses answers or requests, and cuts connections.
"""

from __future__ import annotations

import asyncio
from typing import Final, Self

from tests.support.postgres import Server

AUTHENTICATED: Final = b"K"
"""Type of the message that contains the process id of a client's session."""


class Proxy:
    """A local port that forwards to the server's socket.

    `lose_requests` and `lose_answers` apply from the next byte on; `lost` is set once a byte has
    been lost. If it `pools`, clients see process ids that are not the server's, as with a pooler.
    """

    def __init__(self, server: Server, *, pools: bool = False) -> None:
        self._server: Final = server
        self._pools: Final = pools
        self._links: Final[list[asyncio.StreamWriter]] = []
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._listener: asyncio.Server | None = None
        self.lose_requests = False
        self.lose_answers = False
        self.lost = asyncio.Event()
        self.connected: Final[asyncio.Queue[None]] = asyncio.Queue()
        """Contains an item for each accepted connection."""

    async def __aenter__(self) -> Self:
        await self.listen(0)
        return self

    async def listen(self, port: int) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", port)

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    def url(self, database: str) -> str:
        return self._server.url(database, host=f"127.0.0.1:{self.port}")

    def refuse(self) -> None:
        """Accept no more connections; existing ones stay."""
        if self._listener is not None:
            self._listener.close()

    def cut(self) -> None:
        """Reset every connection; later ones are forwarded without loss again."""
        for link in self._links:
            link.transport.abort()
        self._links.clear()
        self.lose_requests = self.lose_answers = False
        self.lost = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, away = await asyncio.open_unix_connection(self._server.socket)
        self._links.extend([writer, away])
        self.connected.put_nowait(None)
        for pump in (self._requests(reader, away), self._answers(there, writer)):
            task = asyncio.create_task(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _requests(self, reader: asyncio.StreamReader, away: asyncio.StreamWriter) -> None:
        while data := await _some(reader):
            if self.lose_requests:
                self.lost.set()
            else:
                away.write(data)
        away.close()

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await _some(there):
            if self.lose_answers:
                self.lost.set()
            else:
                writer.write(_with_another_process(data) if self._pools else data)
        writer.close()


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(2**16)
    except ConnectionError:
        return b""


def _with_another_process(data: bytes) -> bytes:
    """Return the greeting with another process id, as from a pooler."""
    at = data.find(AUTHENTICATED + (12).to_bytes(4))
    return data if at < 0 else data[: at + 5] + (4711).to_bytes(4) + data[at + 9 :]
