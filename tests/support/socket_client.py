"""A client on a real socket that sends raw frames, so that a test decides what is sent when."""

import asyncio
import ssl
from types import TracebackType
from typing import Self

from librt.strings import BytesWriter

from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import (
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    END,
    FLOW,
    OPEN,
    SASL_CHALLENGE,
    SASL_MECHANISMS,
    SASL_OUTCOME,
)
from broker.amqp.frames import (
    AMQP_HEADER,
    SASL_HEADER,
    body_at,
    put_frame,
    put_sasl_frame,
)
from broker.amqp.performatives import (
    Begin,
    Close,
    Open,
    Performative,
    read_attach,
    read_begin,
    read_close,
    read_detach,
    read_end,
    read_flow,
    read_open,
)
from broker.amqp.sasl_frames import (
    SaslInit,
    SaslResponse,
    read_sasl_challenge,
    read_sasl_mechanisms,
    read_sasl_outcome,
)

READERS = {
    OPEN: read_open,
    BEGIN: read_begin,
    ATTACH: read_attach,
    FLOW: read_flow,
    DETACH: read_detach,
    END: read_end,
    CLOSE: read_close,
    SASL_MECHANISMS: read_sasl_mechanisms,
    SASL_CHALLENGE: read_sasl_challenge,
    SASL_OUTCOME: read_sasl_outcome,
}

PATIENCE_S = 5.0


class SocketClient:
    """A client, connected within `async with`; an operation that exceeds `patience_s` fails."""

    def __init__(
        self,
        port: int,
        *,
        read_limit: int = 2**16,
        patience_s: float = PATIENCE_S,
        local: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Make a client of `port`; `local` is the address of this machine to connect from."""
        self._tls = tls
        self._port = port
        self._read_limit = read_limit
        self._patience_s = patience_s
        self._local = None if local is None else (local, 0)

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1",
            self._port,
            limit=self._read_limit,
            local_addr=self._local,
            ssl=self._tls,
            server_hostname=None if self._tls is None else "localhost",
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.writer.close()

    def send_bytes(self, data: bytes) -> None:
        self.writer.write(data)

    def send(self, *performatives: Performative, channel: int = 0) -> None:
        for performative in performatives:
            out = BytesWriter()
            put_frame(out, channel, performative)
            self.writer.write(out.getvalue())

    def login(self, mechanism: str, response: bytes | None) -> None:
        """Send the SASL header and an init, without waiting for the mechanisms."""
        out = BytesWriter()
        put_sasl_frame(out, SaslInit(mechanism=mechanism, initial_response=response))
        self.writer.write(SASL_HEADER + out.getvalue())

    def respond(self, response: bytes) -> None:
        """Send the response to a challenge."""
        out = BytesWriter()
        put_sasl_frame(out, SaslResponse(response))
        self.writer.write(out.getvalue())

    async def header(self) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(8), self._patience_s)

    async def frame(self) -> bytes:
        """Return the next frame, complete."""
        head = await asyncio.wait_for(self.reader.readexactly(8), self._patience_s)
        size = int.from_bytes(head[:4], "big")
        rest = await asyncio.wait_for(self.reader.readexactly(size - 8), self._patience_s)
        return head + rest

    async def next(self) -> object:
        """Return the next performative, or its descriptor code if there is no reader for it."""
        frame = await self.frame()
        code, at = descriptor_at(frame, body_at(frame, 0), len(frame))
        reader = READERS.get(int(code))
        return reader(frame, at, len(frame)) if reader is not None else int(code)

    async def open(self, container_id: str = "test", *, idle_time_out: int = -1) -> Open:
        """Exchange headers and opens, without a SASL layer."""
        self.send_bytes(AMQP_HEADER)
        self.send(Open(container_id=container_id, idle_time_out=idle_time_out))
        assert await self.header() == AMQP_HEADER
        opened = await self.next()
        assert isinstance(opened, Open)
        return opened

    async def begin(self) -> Begin:
        self.send(Begin(next_outgoing_id=0, incoming_window=1000, outgoing_window=1000))
        begun = await self.next()
        assert isinstance(begun, Begin)
        return begun

    async def closed(self) -> Close:
        """Return the broker's close, which must be the next frame."""
        close = await self.next()
        assert isinstance(close, Close)
        return close

    async def eof(self) -> bool:
        """Return whether the broker closes the socket without sending anything more."""
        return await asyncio.wait_for(self.reader.read(), self._patience_s) == b""
