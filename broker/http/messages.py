"""Messages as Arrow record batches: their encoded bytes and their positions in the queue.

The bytes are those that a consumer would receive; nothing is decoded. The body of a large message
is loaded from the store, as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker.http.arrow_streams import Batches
from broker.http.streams import BrokenOff
from broker.large_body import LargeBody
from broker.large_body_store import LargeBodyStore
from broker.links.container import Container
from broker.links.copies import Copies, Gathered, gathered_from
from broker.routing.entries.browse_slice import BrowseSlice
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.queue import Queue
from storage.contents import CHUNK_SIZE

LARGE_AT_ONCE: Final = 2
"""Maximum streams that have the whole of a large message in memory at the same time."""

SCHEMA: Final = pa.schema(
    [
        ("position", pa.int64()),
        ("enqueuedAt", pa.timestamp("us", "UTC")),
        ("message", pa.binary()),
        ("messageFormat", pa.int64()),
        ("ttlEndsAt", pa.timestamp("us", "UTC")),
    ]
)

UNKNOWN: Final = pa.scalar(None, pa.int64())


def batch_of(gathered: Gathered, messages: pa.Array) -> pa.RecordBatch:
    """Return `messages` with their columns, in the order of `gathered`.

    `enqueuedAt` is null if the time of arrival is unknown, `messageFormat` if it is AMQP's own, and
    `ttlEndsAt` without a ttl.
    """
    arrived_ms = pa.array(gathered.arrived_ms, pa.int64())
    arrived_us = pc.if_else(pc.equal(arrived_ms, 0), UNKNOWN, pc.multiply(arrived_ms, 1000))
    return pa.record_batch(
        [
            pa.array(gathered.positions, pa.int64()),
            arrived_us.cast(SCHEMA.field("enqueuedAt").type),
            messages,
            _sparse(gathered.formats, len(messages)),
            pc.multiply(_sparse(gathered.ttl_ends_ms, len(messages)), 1000).cast(
                SCHEMA.field("ttlEndsAt").type
            ),
        ],
        schema=SCHEMA,
    )


def _sparse(values: dict[int, int], count: int) -> pa.Array:
    """Return an array of `count` rows with `values` by row, null in the others."""
    if not values:
        return pa.nulls(count, pa.int64())
    return pa.array([values.get(row) for row in range(count)], pa.int64())


class Reading:
    """Reads messages of one broker, for all streams, which share the limit LARGE_AT_ONCE."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._room: Final = asyncio.Semaphore(LARGE_AT_ONCE)

    async def browse(
        self, queue: Queue, *, part: BrowseSlice | None = None, wanted: ConsumerFilter | None = None
    ) -> Batches:
        """Yield the ready messages of `queue`, in order, without removing them.

        `part` and `wanted` restrict them; messages that arrive later are left out. Raise BrokenOff
        if the queue is deleted, or a body in the store cannot be read.
        """
        container = self._container
        something = asyncio.Event()
        copies = Copies(queue, container.clock, something.set, part=part, wanted=wanted)
        queue.attach_browser(copies)
        try:
            while not copies.is_over:
                gathered = await self._gather(queue, copies, something)
                async with self._room_for(gathered):
                    yield await self.batch(gathered)
        finally:
            queue.detach_consumer(copies, queue, container.journal.batch)

    async def held(self, entries: list[QueueEntry]) -> Batches:
        """Yield the leased messages of `entries`, in this order; BrokenOff as in `browse`."""
        at = 0
        while at < len(entries):
            gathered = gathered_from(entries, at, self._container.clock)
            at += len(gathered.messages)
            async with self._room_for(gathered):
                yield await self.batch(gathered)
            await asyncio.sleep(0)

    async def _gather(self, queue: Queue, copies: Copies, something: asyncio.Event) -> Gathered:
        """Return messages for one batch, or the last ones; BrokenOff if the queue is deleted."""
        while True:
            something.clear()
            copies.go_on()
            queue.consumer_ready(copies, drain=True)
            self._container.run_round()
            await something.wait()
            # a long queue must not keep the event loop from its other tasks
            await asyncio.sleep(0)
            if copies.is_deleted:
                raise BrokenOff(f"{queue.address} was deleted")
            gathered = copies.take()
            if gathered is not None:
                return gathered

    @asynccontextmanager
    async def _room_for(self, gathered: Gathered) -> AsyncGenerator[None, None]:
        """Wait for one of LARGE_AT_ONCE places and hold it, if there are large messages."""
        if gathered.large:
            async with self._room:
                yield
        else:
            yield

    async def batch(self, gathered: Gathered) -> pa.RecordBatch:
        """Return the messages with the bodies of large ones; BrokenOff if a body is damaged."""
        if not gathered.large:
            return batch_of(gathered, pa.array(gathered.messages, pa.binary()))
        bodies = dict(gathered.large)
        ends = list(
            accumulate(
                len(message) + (bodies[row].size if row in bodies else 0)
                for row, message in enumerate(gathered.messages)
            )
        )
        # chunk by chunk into the final place: one copy of 100 MiB would block the event loop
        data = pa.allocate_buffer(ends[-1])
        out = pa.FixedSizeBufferWriter(data)
        for row, message in enumerate(gathered.messages):
            out.write(message)
            if row in bodies:
                async for chunk in self._body(bodies[row]):
                    out.write(chunk)
        offsets = pa.array([0, *ends], pa.int32()).buffers()[1]
        whole = pa.Array.from_buffers(pa.binary(), len(ends), [None, offsets, data])
        return batch_of(gathered, whole)

    async def _body(self, large: LargeBody) -> AsyncGenerator[bytes, None]:
        """Yield the chunks of a body, once it is in the store; BrokenOff if one is damaged."""
        contents = self._container.contents
        assert contents is not None
        saved: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        large.call_when_saved(partial(_done, saved, b""))
        await saved
        for index in range(-(-large.size // CHUNK_SIZE)):
            yield await _chunk(contents, int(large.stored.number), index)


async def _chunk(contents: LargeBodyStore, content: int, index: int) -> bytes:
    read: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    contents.read(content, index, arrived=partial(_done, read), damaged=partial(_failed, read))
    return await read


def _done(future: asyncio.Future[bytes], data: bytes) -> None:
    if not future.done():
        future.set_result(data)


def _failed(future: asyncio.Future[bytes], why: str) -> None:
    if not future.done():
        future.set_exception(BrokenOff(why))
