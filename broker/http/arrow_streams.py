"""Responses that are Arrow IPC streams, sent batch by batch, as fast as the client reads them.

A complete stream ends with Arrow's end-of-stream marker and HTTP's last chunk. One that fails has
neither: the connection is closed after the bytes sent so far.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
from starlette.responses import Response

from broker.http.connection import CONNECTION, HttpConnection
from broker.http.streams import BrokenOff, Check, Streams
from broker.log_events import STREAM_BROKEN
from storage.api import StoreError

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"

PIECE: Final = 512 * 1024
"""Maximum bytes written to the socket at a time: about a millisecond of the event loop."""

SMALL: Final = 16 * 1024
"""Parts of an Arrow message with fewer bytes than this are joined before they are sent."""

Piece = bytes | memoryview

Batches = AsyncGenerator[pa.RecordBatch, None]


@final
class Encoder:
    """Encodes a stream as pieces for the socket, without copying the large buffers of a batch.

    It is also the file that the Arrow writer writes to.
    """

    closed = False

    def __init__(self, schema: pa.Schema) -> None:
        self._parts: Final[list[pa.Buffer | bytes]] = []
        self._writer: Final = pa.ipc.new_stream(pa.PythonFile(self, mode="w"), schema)

    def encode(self, batch: pa.RecordBatch) -> deque[Piece]:
        """Return the encoded `batch` in pieces; nothing is encoded for a batch without rows."""
        if batch.num_rows:
            self._writer.write_batch(batch)
        return self._pieces()

    def end(self) -> deque[Piece]:
        """Return the end-of-stream marker, after the schema if no batch was encoded."""
        self._writer.close()
        return self._pieces()

    def _pieces(self) -> deque[Piece]:
        """Return the parts written since the last call: small ones joined, large ones cut."""
        pieces: deque[Piece] = deque()
        small: list[pa.Buffer | bytes] = []
        for part in self._parts:
            if len(part) < SMALL:
                small.append(part)
                continue
            pieces.append(b"".join(small))
            small.clear()
            whole = memoryview(part)
            pieces.extend(whole[at : at + PIECE] for at in range(0, len(whole), PIECE))
        pieces.append(b"".join(small))
        self._parts.clear()
        return pieces

    # -- the file that the Arrow writer writes to

    def write(self, data: pa.Buffer | bytes) -> int:
        """Keep `data` from the Arrow writer; return its number of bytes."""
        self._parts.append(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Do nothing: there is no file to close."""


class ArrowStream(Response):
    """A response with the batches of one generator, which is closed however the stream ends.

    `check` raises BrokenOff if the client may have no further batch.
    """

    def __init__(
        self, streams: Streams, schema: pa.Schema, batches: Batches, *, check: Check
    ) -> None:
        super().__init__(status_code=200, media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._streams: Final = streams
        self._check: Final = check
        self._encoder: Final = Encoder(schema)
        self._batches: Final = batches
        # pieces to be sent next; None at the end
        self._ready: deque[Piece] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.begin()
        gone = asyncio.get_running_loop().create_task(_gone(receive))
        try:
            # an error before the first batch still gets a response with a status of its own
            self._ready = await self._next(gone)
            await self._send(scope, gone, send)
        finally:
            gone.cancel()
            await self._batches.aclose()
            self._streams.end()

    async def _send(self, scope: Scope, gone: asyncio.Task[None], send: Send) -> None:
        connection: HttpConnection = scope["state"][CONNECTION]
        start: Message = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        try:
            if scope["method"] != "HEAD" and not await self._send_all(gone, send):
                return  # the peer has disconnected: nothing is sent or reported
        except Exception as error:
            connection.break_off()
            why = str(error) or type(error).__name__
            text = f"a stream over HTTP to {_address(scope)} broke off: {why}"
            self._streams.watcher.noticed(STREAM_BROKEN.notice(text))
            if not isinstance(error, BrokenOff | StoreError):
                raise
        else:
            await send(_body(b"", more=False))

    async def _send_all(self, gone: asyncio.Task[None], send: Send) -> bool:
        """Send all pieces. Return False if the peer disconnected before the end."""
        while self._ready is not None:
            self._check()  # a slow client takes hours, in which rights may be withdrawn
            # each piece is dropped when it is sent, because a batch may be large
            while self._ready:
                if gone.done():
                    return False
                await send(_body(self._ready.popleft()))
            self._ready = await self._next(gone)
        for piece in self._encoder.end():
            await send(_body(piece))
        return not gone.done()

    async def _next(self, gone: asyncio.Task[None]) -> deque[Piece] | None:
        """Return the pieces of the next batch; None at the end, or if the peer has disconnected."""
        coming = asyncio.get_running_loop().create_task(_first_of(self._batches))
        await asyncio.wait((coming, gone), return_when=asyncio.FIRST_COMPLETED)
        if not coming.done():
            coming.cancel()
            await asyncio.wait((coming,))
            return None
        batch = coming.result()
        return None if batch is None else self._encoder.encode(batch)


def _body(data: Piece, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


def _address(scope: Scope) -> str:
    host, port = scope["client"] or ("unknown", 0)
    return f"{host}:{port}"


async def _first_of(batches: Batches) -> pa.RecordBatch | None:
    return await anext(batches, None)


async def _gone(receive: Receive) -> None:
    """Return when the peer has closed the connection, or the response is complete."""
    while (await receive())["type"] != "http.disconnect":
        pass
