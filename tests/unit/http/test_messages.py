"""Messages of a queue in Arrow's format: in batches, complete, and with large bodies."""

import asyncio
import contextlib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from broker.amqp.sections import split
from broker.embedding import Broker
from broker.http.messages import SCHEMA, Reading, batch_of
from broker.http.streams import BrokenOff
from broker.links.copies import Gathered
from tests.support.embedded import put
from tests.support.http import ask, begin, socket_to
from tests.support.large import StreamingBroker, large, pieces

pytestmark = pytest.mark.requirement("PIP-18")


def bodies(table: pa.Table) -> list[bytes]:
    """Return the bodies of the messages in a stream; check that every message is complete."""
    found = []
    for message in table["message"].to_pylist():
        sections = split(message, 0, len(message))
        assert sections.end == len(message)
        found.append(message[sections.body :])
    return found


def test_the_columns() -> None:
    gathered = Gathered()
    gathered.positions.extend([4, 14])
    gathered.arrived_ms.extend([0, 1_750_000_000_001])
    gathered.messages.extend([b"a", b""])
    gathered.formats[1] = 0x8001_3700
    gathered.ttl_ends_ms[1] = 1_750_000_000_001
    batch = batch_of(gathered, pa.array(gathered.messages))
    assert batch.schema == SCHEMA
    types = ["int64", "timestamp[us, tz=UTC]", "binary", "int64", "timestamp[us, tz=UTC]"]
    assert [str(field.type) for field in SCHEMA] == types
    at = datetime.fromtimestamp(1_750_000_000, UTC).replace(microsecond=1000)
    assert batch.to_pydict() == {
        "position": [4, 14],
        "enqueuedAt": [None, at],
        "message": [b"a", b""],
        "messageFormat": [None, 0x8001_3700],
        "ttlEndsAt": [None, at],
    }


async def test_a_long_backlog_comes_whole_and_stays_in_the_store(tmp_path: Path) -> None:
    """The backlog exceeds the window in memory; the disk and the socket are real."""
    sent = [b"%06d" % number + b"x" * 200 for number in range(20_000)]
    async with Broker(
        store=f"sqlite:///{tmp_path}/store.db", http={"port": 0}, paging_window=64
    ) as running:
        put(running, "orders", *sent, durable=True)
        queue = running._app().container.router.queues["orders"]
        await running.until(lambda: in_memory(queue) < 2000, within_s=20)
        answer = await ask(f"{running.http_url}/arrow/browse?address=orders")
        again = await ask(f"{running.http_url}/arrow/browse?address=orders&slice=3&slices=4")
        assert in_memory(queue) < 5000
        assert (queue.backlogs.waiting, queue.state.acquired) == (len(sent), 0)
    table = answer.table()
    assert table["position"].to_pylist() == [number * 10 + 4 for number in range(len(sent))]
    assert [body[-206:] for body in bodies(table)] == sent
    assert again.table()["position"].to_pylist() == table["position"].to_pylist()[3::4]


def in_memory(queue: object) -> int:
    backlogs = queue.backlogs  # type: ignore[attr-defined]
    return sum(len(each.loaded(-1, 10**6)) for each in backlogs.existing())


BROWSE = "/arrow/browse?address=orders"

LONG = [b"x" * 10_000] * 4000
"""More bytes than socket buffers hold for a client that does not read."""


async def test_a_peer_that_goes_away_browses_no_more() -> None:
    async with Broker(http={"port": 0}) as running:
        put(running, "orders", *LONG)
        queue = running._app().container.router.queues["orders"]
        async with socket_to(running.http_url) as (reader, writer):
            await begin(BROWSE, reader, writer)
            assert queue.consumers.count() == 1
        await running.until(lambda: queue.consumers.count() == 0)
        assert queue.backlogs.waiting == len(LONG)


async def test_a_queue_that_is_deleted_ends_the_stream_without_its_end() -> None:
    async with Broker(http={"port": 0}) as running:
        put(running, "orders", *LONG)
        app = running._app()
        async with socket_to(running.http_url) as (reader, writer):
            await begin(BROWSE, reader, writer)
            app.container.router.delete(
                app.container.router.queues["orders"], app.container.journal.batch
            )
            rest = await reader.read()
        assert not rest.endswith(b"0\r\n\r\n")


@pytest.mark.requirement("PIP-20")
async def test_a_broker_that_stops_does_not_wait_for_readers() -> None:
    running = Broker(http={"port": 0})
    async with running:
        put(running, "orders", *LONG)
        async with contextlib.AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(socket_to(running.http_url)) for _ in "abc"]
            for reader, writer in opened:
                await begin(BROWSE, reader, writer)
            loop = asyncio.get_running_loop()
            begun = loop.time()
            await running._stop()
            assert loop.time() - begun < 5
            for reader, _ in opened:
                try:
                    assert not (await reader.read()).endswith(b"0\r\n\r\n")
                except ConnectionError:
                    continue  # the broker cut the connection


# -- large messages


async def filled(streaming: StreamingBroker) -> list[bytes]:
    """Send a small, a large and a small message to the queue; return the large one's payload."""
    payload, _ = large()
    sender = streaming.broker.session("sender")
    sender.attach_sender()
    sender.transfer(0, settled=True)
    for piece in pieces(payload, 1, settled=True):
        sender.send(piece)
        await streaming.work()
    sender.transfer(2, settled=True)
    await streaming.work()
    return [payload]


async def read(streaming: StreamingBroker) -> list[bytes]:
    """Browse the queue to its end while the simulated disk works; return the messages."""

    async def browse() -> list[bytes]:
        reading = Reading(streaming.broker.container)
        batches = reading.browse(streaming.broker.queue())
        return [each async for batch in batches for each in batch["message"].to_pylist()]

    reading = asyncio.create_task(browse())
    while not reading.done():
        await streaming.work()
    return await reading


async def test_a_large_message_comes_whole() -> None:
    async with StreamingBroker() as streaming:
        (payload,) = await filled(streaming)
        found = await read(streaming)
        again = await read(streaming)
    assert len(found) == 3
    assert found[1].endswith(payload)
    assert len(found[1]) - len(payload) < 20
    assert again == found


async def test_a_damaged_body_breaks_the_stream_off() -> None:
    async with StreamingBroker() as streaming:
        await filled(streaming)
        streaming.store.damaged.add((1, 2))
        with pytest.raises(BrokenOff, match="chunk 2 of content 1 is damaged"):
            await read(streaming)
        queue = streaming.broker.queue()
        assert queue.consumers.count() == 0
        assert queue.backlogs.waiting == 3
