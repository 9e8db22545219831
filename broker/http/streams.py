"""An answer that is an Arrow IPC stream: batch by batch, as fast as the peer takes them.

A stream that is whole ends with Arrow's end-of-stream marker and HTTP's last chunk. One that fails
has neither: the connection is closed behind what was sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
from starlette.responses import Response

from broker.http.connection import CONNECTION, HttpConnection
from broker.management.request import BUSY, Refused
from storage.api import StoreError

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from broker.links.container import Watcher

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"

PIECE: Final = 512 * 1024
"""So much goes to the socket at a time: a millisecond of the loop's time."""

SMALL: Final = 16 * 1024
"""Parts of a message that are smaller go together."""

Piece = bytes | memoryview

Batches = AsyncGenerator[pa.RecordBatch, None]


class BrokenOff(Exception):  # noqa: N818 - what has happened, told to the operator
    """A stream cannot be finished. The text says why."""


@final
class Streams:
    """All that are under way: only so many at once, and none once this is closed."""

    def __init__(self, at_most: int, watcher: Watcher) -> None:
        self.watcher: Final = watcher
        self.under_way = 0
        self._at_most: Final = at_most

    def begin(self) -> None:
        """One more; Refused where there are too many."""
        if self.under_way == self._at_most:
            raise Refused(BUSY, f"{self._at_most} streams are under way; ask again later")
        self.under_way += 1

    def end(self) -> None:
        """One less."""
        self.under_way -= 1


@final
class Encoder:
    """Writes a stream into pieces for the socket. The bytes of a batch are not copied for that."""

    closed = False

    def __init__(self, schema: pa.Schema) -> None:
        self._parts: Final[list[pa.Buffer | bytes]] = []
        self._writer: Final = pa.ipc.new_stream(pa.PythonFile(self, mode="w"), schema)

    def encode(self, batch: pa.RecordBatch) -> deque[Piece]:
        """The pieces of the message that `batch` becomes; none where it has no rows."""
        if batch.num_rows:
            self._writer.write_batch(batch)
        return self._pieces()

    def end(self) -> deque[Piece]:
        """The end-of-stream marker, behind what must come ahead of it."""
        self._writer.close()
        return self._pieces()

    def _pieces(self) -> deque[Piece]:
        """What has been written since, small parts together, large ones cut."""
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

    # -- as a file

    def write(self, data: pa.Buffer | bytes) -> int:
        """Keep what the writer writes."""
        self._parts.append(data)
        return len(data)

    def flush(self) -> None:
        """There is nothing behind this."""

    def close(self) -> None:
        """It may be written to no more."""


class ArrowStream(Response):
    """The batches of one generator, which is closed at the end, whatever that is."""

    def __init__(self, streams: Streams, schema: pa.Schema, batches: Batches) -> None:
        super().__init__(status_code=200, media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._streams: Final = streams
        self._encoder: Final = Encoder(schema)
        self._batches: Final = batches
        # what is to be sent next; None at the end
        self._ready: deque[Piece] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.begin()
        gone = asyncio.get_running_loop().create_task(_gone(receive))
        try:
            # what fails by now is still answered with its status
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
                return  # the peer has gone: nobody is to be told
        except Exception as error:
            connection.break_off()
            why = str(error) or type(error).__name__
            self._streams.watcher.noticed(
                f"a stream over HTTP to {_address(scope)} broke off: {why}"
            )
            if not isinstance(error, BrokenOff | StoreError):
                raise
        else:
            await send(_body(b"", more=False))

    async def _send_all(self, gone: asyncio.Task[None], send: Send) -> bool:
        """Whether everything has gone out; not where the peer has gone before."""
        while self._ready is not None:
            # what has been sent is let go: a batch may be large
            while self._ready:
                if gone.done():
                    return False
                await send(_body(self._ready.popleft()))
            self._ready = await self._next(gone)
        for piece in self._encoder.end():
            await send(_body(piece))
        return not gone.done()

    async def _next(self, gone: asyncio.Task[None]) -> deque[Piece] | None:
        """The next batch; None where there is none, or nobody is there any more to take it."""
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
