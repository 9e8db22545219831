"""The bytes of a conversation: on a socket itself, with or without TLS, or within WebSocket."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Final

from .verdict import Options


class Transport(ABC):
    """Bytes to and from the broker. OSError and ssl.SSLError mean that the connection is lost."""

    @abstractmethod
    async def read(self, size: int) -> bytes:
        """Return the next `size` bytes. Raise asyncio.IncompleteReadError at the end."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Send `data`."""

    @abstractmethod
    async def drain(self) -> None:
        """Hand the data written so far to the network."""

    @abstractmethod
    def end(self) -> None:
        """Send nothing more, and go on reading if the transport allows it."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection once everything is sent."""

    @abstractmethod
    def abort(self) -> None:
        """Close the connection at once."""


class SocketTransport(Transport):
    """AMQP on the socket itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader: Final = reader
        self._writer: Final = writer

    async def read(self, size: int) -> bytes:
        return await self._reader.readexactly(size)

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def drain(self) -> None:
        await self._writer.drain()

    def end(self) -> None:
        if self._writer.can_write_eof():  # TLS has no halves
            self._writer.write_eof()
        else:
            self._writer.close()

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    def abort(self) -> None:
        self._writer.transport.abort()


async def opened(options: Options) -> Transport:
    """Connect to the broker. Raise OSError if that fails, or TimeoutError after the timeout."""
    async with asyncio.timeout(options.timeout_s):
        reader, writer = await asyncio.open_connection(
            options.host, options.port, ssl=options.context
        )
        if options.websocket is None:
            return SocketTransport(reader, writer)
        # a harness that is never asked for WebSocket needs no package for it
        from .websocket import WebSocketTransport

        return await WebSocketTransport.opened(reader, writer, options)
