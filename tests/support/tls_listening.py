"""A listening acceptor of TLS connections, and clients for it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, cast

from broker.net.acceptor import Acceptor
from broker.net.handshake_failures import FailureReason, HandshakeFailure
from broker.net.handshakes import HandshakeLimits
from broker.net.tls import TlsContexts
from broker.tls_settings import TlsSettings
from tests.support.certificates import SERVER_NAME

HALF: Final = b"\x16\x03\x01"
"""The first bytes of a handshake that never goes on."""

LONG: Final = b"\x16\x03\x01\x3f\xff\x01\x00\x3f\x00" + bytes(10_000)
"""The begin of a first message that would have 16 KiB."""

BROKEN: Final = b"\x16\x03\x01\x00\x04\xff\xff\xff\xff"
"""A record whose content is no message of a handshake."""

PATIENCE_S: Final = 10.0
"""Maximum seconds that a test waits for what must happen."""


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_lost = False
        self.lost_by: Exception | None = None
        self.is_paused = False
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not derived from asyncio's
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.lost_by = exc

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False

    def data_received(self, data: bytes) -> None:
        self.received += data
        assert self.transport is not None
        self.transport.write(data)


class Listening:
    """An acceptor on a free port, with what it has made and reported."""

    def __init__(self, contexts: TlsContexts, limits: HandshakeLimits) -> None:
        self.contexts: Final = contexts
        self.made: Final[list[Echo]] = []
        self.failures: Final[list[HandshakeFailure]] = []
        self.acceptor: Final = Acceptor(
            contexts, self._make, on_failure=self.failures.append, limits=limits
        )
        self.port = 0

    def _make(self) -> Echo:
        self.made.append(Echo())
        return self.made[-1]

    def connect_raw(self, source: str = "127.0.0.1") -> socket.socket:
        """Return a connection without TLS from one of the loopback addresses."""
        made = socket.create_connection(("127.0.0.1", self.port), source_address=(source, 0))
        made.setblocking(False)
        return made

    async def connect(
        self, client: ssl.SSLContext, source: str = "127.0.0.1"
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1",
            self.port,
            ssl=client,
            server_hostname=SERVER_NAME,
            local_addr=(source, 0),
        )

    async def echoed(self, client: ssl.SSLContext, source: str = "127.0.0.1") -> bytes:
        """Return what an echo connection answers; the client's or server's refusal is raised."""
        reader, writer = await self.connect(client, source)
        try:
            writer.write(b"hello")
            return await asyncio.wait_for(reader.read(5), PATIENCE_S)
        finally:
            writer.transport.abort()

    async def reasons(self, count: int) -> list[FailureReason]:
        """Return the reasons of failures, once there are `count`."""
        await until(lambda: len(self.failures) >= count)
        return [failure.reason for failure in self.failures]


def blocking_handshake(port: int, client: ssl.SSLContext) -> None:
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as raw,
        client.wrap_socket(raw, server_hostname=SERVER_NAME),
    ):
        pass


async def until(is_so: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Run the loop until `is_so`. Fail after `patience_s` seconds."""
    end_s = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < end_s
        await turn()


async def turn() -> None:
    """Let the loop wait for the network for one millisecond."""
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), 0.001)


async def ended(client: socket.socket) -> bytes:
    """Return what the broker sends before it closes the connection."""
    loop = asyncio.get_running_loop()
    got = b""
    with suppress(ConnectionResetError):
        while data := await asyncio.wait_for(loop.sock_recv(client, 4096), PATIENCE_S):
            got += data
    client.close()
    return got


@asynccontextmanager
async def listening(
    settings: TlsSettings, limits: HandshakeLimits | None = None
) -> AsyncIterator[Listening]:
    here = Listening(TlsContexts(settings), limits or HandshakeLimits())
    here.port = await here.acceptor.listen("127.0.0.1", 0, backlog=100)
    try:
        yield here
    finally:
        here.acceptor.stop_accepting()
        await here.acceptor.ended()
        assert here.acceptor.pending() == 0
        for each in here.made:
            if each.transport is not None:
                each.transport.abort()
        await turn()


@asynccontextmanager
async def half_open(
    here: Listening, count: int, source: str, sent: bytes = HALF
) -> AsyncIterator[list[socket.socket]]:
    """Open connections that never finish their handshake."""
    expected = here.acceptor.pending() + count
    opened = [here.connect_raw(source) for _ in range(count)]
    try:
        for each in opened:
            each.send(sent)
        await until(lambda: here.acceptor.pending() == expected)
        yield opened
    finally:
        for each in opened:
            each.close()
