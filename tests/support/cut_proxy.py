"""A proxy that simulates faults of a network: it loses bytes, all or of one kind, and cuts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Self

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class CutLink:
    """One connection through a proxy. Bytes of a link that `is_held` are lost, and its end, too."""

    def __init__(self, near: Streams, far: Streams) -> None:
        self.near: Final = near
        self.far: Final = far
        self.is_held = False

    def abort(self) -> None:
        """Reset both sides."""
        for _, writer in (self.near, self.far):
            writer.transport.abort()


class CutProxy:
    """A local port that forwards to another place; subclasses connect to it in `reach`.

    `lose_requests` and `lose_answers` apply from the next byte on; `lost` is set once a byte has
    been lost.
    """

    def __init__(self) -> None:
        self._links: Final[list[CutLink]] = []
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

    async def listen(self, port: int, *, host: str = "127.0.0.1") -> None:
        """Listen on a port of an address of this machine; 0 is any port."""
        self._listener = await asyncio.start_server(self._serve, host, port)

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def port(self) -> int:
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    async def reach(self) -> Streams:
        """Connect to the place that this proxy forwards to."""
        raise NotImplementedError

    def refuse(self) -> None:
        """Accept no more connections; existing ones stay."""
        if self._listener is not None:
            self._listener.close()

    def lose(self) -> None:
        """Lose every byte from now on, as a network that is cut."""
        self.lose_requests = self.lose_answers = True

    def cut(self) -> None:
        """Reset every connection; later ones are forwarded without loss again."""
        for link in self._links:
            link.abort()
        self._links.clear()
        self.lose_requests = self.lose_answers = False
        self.lost = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far = await self.reach()
        except OSError:
            writer.transport.abort()
            return
        link = CutLink((reader, writer), far)
        self._links.append(link)
        self.connected.put_nowait(None)
        for pump in (self._requests(link), self._answers(link)):
            task = asyncio.create_task(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _requests(self, link: CutLink) -> None:
        await self._pump(
            link, link.near[0], link.far[1], loses=lambda: self.lose_requests, see=self.see_request
        )

    async def _answers(self, link: CutLink) -> None:
        await self._pump(
            link, link.far[0], link.near[1], loses=lambda: self.lose_answers, see=self.see_answer
        )

    async def _pump(
        self,
        link: CutLink,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        *,
        loses: Callable[[], bool],
        see: Callable[[CutLink, bytes], bytes],
    ) -> None:
        while data := await _some(source):
            if link.is_held or loses():
                self.lost.set()
            else:
                sink.write(see(link, data))
        if not link.is_held:
            sink.close()

    def see_request(self, link: CutLink, data: bytes) -> bytes:  # noqa: ARG002 - for subclasses
        """Return what to forward of the bytes of a client, which are not lost."""
        return data

    def see_answer(self, link: CutLink, data: bytes) -> bytes:  # noqa: ARG002 - for subclasses
        """Return what to forward of the bytes for a client, which are not lost."""
        return data


class PortProxy(CutProxy):
    """A proxy of a port, for instance between clients and a broker."""

    def __init__(self, target: int, *, host: str = "127.0.0.1") -> None:
        super().__init__()
        self._target: Final = target
        self._host: Final = host

    async def reach(self) -> Streams:
        return await asyncio.open_connection(self._host, self._target)


async def _some(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(2**16)
    except ConnectionError:
        return b""
