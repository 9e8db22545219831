"""AMQP within WebSocket: the handshake and the frames of a client, by the package `websockets`."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, Self

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from .transport import Transport
from .verdict import Options

AMQP: Final = Subprotocol("amqp")
DATA: Final = frozenset({Opcode.BINARY, Opcode.CONT})

READ_BYTES: Final = 65_536
MESSAGE_BYTES_MAX: Final = 16 << 20
"""Maximum bytes of a message from the broker: no case makes it send more at once."""


class WebSocketTransport(Transport):
    """AMQP within WebSocket messages, each write one of them, whatever frames are in it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uri: str
    ) -> None:
        self._raw: Final = reader
        self._writer: Final = writer
        self._protocol: Final = ClientProtocol(
            parse_uri(uri), subprotocols=[AMQP], max_size=MESSAGE_BYTES_MAX
        )
        self._data: Final = asyncio.StreamReader()
        self._answered: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()
        self._receiving: asyncio.Task[None] | None = None

    @classmethod
    async def opened(
        cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: Options
    ) -> Self:
        """Perform the handshake on an open socket. Raise ConnectionError if the broker refuses."""
        scheme = "ws" if options.context is None else "wss"
        host = f"[{options.host}]" if ":" in options.host else options.host
        made = cls(reader, writer, f"{scheme}://{host}:{options.port}{options.websocket}")
        made._protocol.send_request(made._protocol.connect())
        made._flush()
        made._receiving = asyncio.create_task(made._receive())
        try:
            await made._answered
        except BaseException:
            made.abort()
            raise
        return made

    async def read(self, size: int) -> bytes:
        return await self._data.readexactly(size)

    def write(self, data: bytes) -> None:
        if self._protocol.state is State.OPEN:  # else the broker has closed, as a socket would be
            self._protocol.send_binary(data)
            self._flush()

    async def drain(self) -> None:
        await self._writer.drain()

    def end(self) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            self._flush()

    async def close(self) -> None:
        self.end()
        if self._receiving is not None:
            await self._receiving
        self._writer.close()
        await self._writer.wait_closed()

    def abort(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
        self._writer.transport.abort()

    def _flush(self) -> None:
        """Send what the protocol has to send. Its end of the stream is not: TLS has no halves."""
        self._writer.write(b"".join(self._protocol.data_to_send()))

    async def _receive(self) -> None:
        """Pass on what the broker sends, until the connection ends."""
        lost: Exception = ConnectionResetError("the broker ends the connection")
        try:
            while data := await self._raw.read(READ_BYTES):
                self._protocol.receive_data(data)
                for event in self._protocol.events_received():
                    self._take(event)
                self._flush()
        except (ConnectionError, ssl.SSLError) as error:
            lost = error
            self._data.set_exception(error)
        else:
            self._data.feed_eof()
        if not self._answered.done():
            self._answered.set_exception(lost)

    def _take(self, event: Frame | Response | object) -> None:
        if isinstance(event, Response):
            self._met(event)
        elif isinstance(event, Frame) and event.opcode is Opcode.TEXT:
            raise ConnectionAbortedError("the broker sends a text message")
        elif isinstance(event, Frame) and event.opcode in DATA:
            self._data.feed_data(bytes(event.data))

    def _met(self, answer: Response) -> None:
        """Raise ConnectionRefusedError unless the broker speaks AMQP within WebSocket here."""
        if self._protocol.handshake_exc is not None:
            raise ConnectionRefusedError(
                f"the broker refuses WebSocket: HTTP {answer.status_code} {answer.reason_phrase}"
            )
        if self._protocol.subprotocol != AMQP:
            raise ConnectionRefusedError(f"the broker does not offer the subprotocol {AMQP}")
        self._answered.set_result(None)
