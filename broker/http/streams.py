"""An answer that is an Arrow IPC stream: batch by batch, as fast as the peer takes them.

A stream that is whole ends with Arrow's end-of-stream marker and HTTP's last chunk. One that fails
has neither: the connection is closed behind what was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
from starlette.responses import Response

from broker.http.connection import CONNECTION, Connection
from broker.management.request import BUSY, Refused
from storage.api import StoreError

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

    from broker.links.container import Watcher

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"

END_OF_STREAM: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""A message of no length: `Encapsulated message format` of Arrow's specification."""

PIECE: Final = 512 * 1024
"""So much goes to the socket at a time: a millisecond of the loop's time."""

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


class ArrowStream(Response):
    """The batches of one generator, which is closed at the end, whatever that is."""

    def __init__(self, streams: Streams, schema: pa.Schema, batches: Batches) -> None:
        super().__init__(status_code=200, media_type=MEDIA_TYPE)
        del self.headers["content-length"]
        self._streams: Final = streams
        self._schema: Final = schema
        self._batches: Final = batches

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._streams.begin()
        gone = asyncio.get_running_loop().create_task(_gone(receive))
        try:
            # what fails by now is still answered with its status
            first = await self._next(gone)
            await self._send(scope, first, gone=gone, send=send)
        finally:
            gone.cancel()
            await self._batches.aclose()
            self._streams.end()

    async def _send(
        self, scope: Scope, first: pa.RecordBatch | None, *, gone: asyncio.Task[None], send: Send
    ) -> None:
        connection: Connection = scope["state"][CONNECTION]
        start: Message = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        try:
            if scope["method"] != "HEAD" and not await self._send_all(first, gone, send):
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
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(
        self, first: pa.RecordBatch | None, gone: asyncio.Task[None], send: Send
    ) -> bool:
        """Whether everything has gone out; not where the peer has gone before."""
        await send(_body(self._schema.serialize()))
        batch = first
        while batch is not None:
            for piece in _pieces(batch):
                if gone.done():
                    return False
                await send(_body(piece))
            batch = await self._next(gone)
        await send(_body(END_OF_STREAM))
        return not gone.done()

    async def _next(self, gone: asyncio.Task[None]) -> pa.RecordBatch | None:
        """The next batch; None where there is none, or nobody is there any more to take it."""
        coming = asyncio.get_running_loop().create_task(_first_of(self._batches))
        await asyncio.wait((coming, gone), return_when=asyncio.FIRST_COMPLETED)
        if coming.done():
            return coming.result()
        coming.cancel()
        await asyncio.wait((coming,))
        return None


def _body(data: pa.Buffer | memoryview | bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


def _pieces(batch: pa.RecordBatch) -> Iterator[memoryview]:
    """The bytes of `batch`, none where it has no rows."""
    whole = memoryview(batch.serialize() if batch.num_rows else b"")
    for at in range(0, len(whole), PIECE):
        yield whole[at : at + PIECE]


def _address(scope: Scope) -> str:
    host, port = scope["client"] or ("unknown", 0)
    return f"{host}:{port}"


async def _first_of(batches: Batches) -> pa.RecordBatch | None:
    return await anext(batches, None)


async def _gone(receive: Receive) -> None:
    """Return when the peer has closed the connection, or the response is complete."""
    while (await receive())["type"] != "http.disconnect":
        pass
