"""A client that sends raw AMQP frames over WebSocket, and raw WebSocket frames where it must."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from types import TracebackType
from typing import Self, cast

from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State

from tests.support.socket_client import PATIENCE_S, SocketClient
from tests.support.websocket_frames import client_of


class MessageWriter:
    """Sends each write as one binary message, as the writer of a `SocketClient`."""

    def __init__(self, client: WebSocketClient) -> None:
        self._client = client

    def write(self, data: bytes) -> None:
        self._client.protocol.send_binary(data)
        self._client.flush()

    def close(self) -> None:
        self._client.raw.close()

    @property
    def transport(self) -> asyncio.WriteTransport:
        return self._client.raw.transport


class WebSocketClient(SocketClient):
    """A `SocketClient` whose bytes go through WebSocket.

    `messages` are the sizes of the messages that it got, in bytes; `raw` is the socket.
    """

    def __init__(
        self, port: int, *, path: str = "/", tls: ssl.SSLContext | None = None, before: bytes = b""
    ) -> None:
        """Make a client of `port`; `before` is sent before everything else."""
        super().__init__(port, tls=tls)
        self.protocol = client_of(f"{'ws' if tls is None else 'wss'}://localhost{path}")
        self.messages: list[int] = []
        self._before = before
        self._answered = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.raw_reader, self.raw = self.reader, self.writer
        self.reader = asyncio.StreamReader()
        self.writer = cast(asyncio.StreamWriter, MessageWriter(self))
        if self._before:
            self.raw.write(self._before)
        self.flush()
        self._pump = asyncio.create_task(self._receive())
        await asyncio.wait_for(self._answered.wait(), PATIENCE_S)
        assert self.protocol.state is State.OPEN
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.raw.close()
        if self._pump is not None:
            await self._pump

    def flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self.raw.write(data)

    async def closed_with(self) -> int:
        """Return the code with which the connection ended; the broker must have closed it."""
        assert self._pump is not None
        await asyncio.wait_for(self._pump, PATIENCE_S)
        assert self.protocol.close_rcvd is not None
        return self.protocol.close_rcvd.code

    async def _receive(self) -> None:
        with suppress(ConnectionError):
            while data := await self.raw_reader.read(65_536):
                self.protocol.receive_data(data)
                for event in self.protocol.events_received():
                    self._take(event)
                self.flush()
        self.reader.feed_eof()
        self._answered.set()

    def _take(self, event: Frame | Response | object) -> None:
        if isinstance(event, Response):
            self._answered.set()
        elif isinstance(event, Frame) and event.opcode is Opcode.BINARY:
            assert event.fin
            self.messages.append(len(event.data))
            self.reader.feed_data(bytes(event.data))
