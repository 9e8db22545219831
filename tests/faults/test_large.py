"""Large messages and sudden ends: nothing partial, nothing left over, little memory (F25)."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import Flow
from storage.contents import CHUNK_SIZE
from tests.conformance.frames import Disposition, Transfer, frame, read_frame
from tests.faults.producer import Producer, died, drained
from tests.faults.test_kill import SETTINGS, port_of
from tests.interop.broker_process import BrokerProcess
from tests.support.frames import attach_receiver, attach_sender, flow
from tests.support.large import large
from tests.support.socket_client import SocketClient

SIZE: Final = 16 * 1024 * 1024
FRAME: Final = 512 * 1024

SWEPT_WITHIN_S: Final = 10.0

GROWTH_MAX_KIB: Final = 8 * 1024
"""Maximum growth of resident memory in KiB for a message of any size, received and sent."""


class Sender:
    """Sends large messages, whole or in part, on one link."""

    def __init__(self, client: SocketClient) -> None:
        self._client: Final = client
        self._number = 0
        self._frames = 0

    async def attach(self, address: str) -> None:
        await self._client.open(f"sender of {address}")
        await self._client.begin()
        self._client.send(attach_sender(name="sender", address=address))
        await self._heard_flow()

    async def _heard_flow(self) -> None:
        while not isinstance(await self._client.next(), Flow):
            pass

    async def send(self, payload: bytes, *, share: int = 100) -> None:
        """Send `share` percent of a message."""
        number = self._number
        self._number += 1
        for at in range(0, len(payload) * share // 100, FRAME):
            piece = payload[at : at + FRAME]
            transfer = Transfer(
                delivery_id=number,
                tag=b"%d" % number,
                payload=piece,
                more=at + FRAME < len(payload),
            )
            self._client.send_bytes(frame(transfer))
            self._frames += 1
            await self._client.writer.drain()

    async def settled(self) -> None:
        """Wait until the broker has read everything that was sent."""
        told = flow(next_outgoing_id=self._frames, next_incoming_id=0, echo=True)
        self._client.send(told)
        await self._heard_flow()

    async def accepted(self) -> None:
        """Wait until the broker has accepted the message."""
        while True:
            body = read_frame(await self._client.frame()).body
            if isinstance(body, Disposition):
                assert isinstance(body.state, Accepted)
                return


async def received(client: SocketClient, address: str) -> bytes:
    """Return the payload of the next message at `address`."""
    await client.open(f"receiver of {address}")
    await client.begin()
    client.send(attach_receiver(name="receiver", address=address))
    client.send(flow(handle=0, credit=1, delivery_count=0, incoming_window=2**20))
    pieces: list[bytes] = []
    while True:
        body = read_frame(await client.frame()).body
        if isinstance(body, Transfer):
            pieces.append(body.payload)
            if not body.more:
                return b"".join(pieces)


def chunks(folder: Path) -> int:
    """Return the number of chunks in the store."""
    database = f"file:{folder}/data/store.db?mode=ro"
    with closing(sqlite3.connect(database, uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM chunk").fetchone()[0])


async def ticks(broker: BrokerProcess, seconds: float) -> AsyncIterator[None]:
    """Yield repeatedly for `seconds`, each time after the broker has answered a new connection."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        async with SocketClient(port_of(broker)) as client:
            await client.open("observer")
            yield


async def all_swept(broker: BrokerProcess, folder: Path) -> bool:
    """Wait until the store has no chunk left; return False if that takes more than ten seconds."""
    async for _ in ticks(broker, SWEPT_WITHIN_S):
        if chunks(folder) == 0:
            return True
    return False


@pytest.mark.parametrize("share", [1, 50, 99])
@pytest.mark.parametrize("end", ["kill", "disconnect"])
async def test_half_a_message_is_never_delivered_and_leaves_no_chunks(
    tmp_path: Path, share: int, end: str
) -> None:
    payload, _ = large(SIZE, durable=True)
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    async with SocketClient(port_of(broker)) as client:
        sender = Sender(client)
        await sender.attach("q")
        await sender.send(payload, share=share)
        await sender.settled()
        if share > 1:
            assert chunks(tmp_path) >= (SIZE * share // 100) // CHUNK_SIZE - 8
        if end == "kill":
            await asyncio.to_thread(broker.kill)
            await died(client)
    if end == "kill":
        broker = BrokerProcess(tmp_path, settings=SETTINGS)
    assert await all_swept(broker, tmp_path)
    assert await drained(port_of(broker), "q", 0) == []
    assert broker.stop() == 0


@pytest.mark.requirement("PRD-03", "PRD-05")
async def test_a_large_message_that_was_accepted_outlives_a_kill(tmp_path: Path) -> None:
    payload, _ = large(SIZE, durable=True)
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    async with SocketClient(port_of(broker)) as client:
        sender = Sender(client)
        await sender.attach("q")
        await sender.send(payload)
        await sender.accepted()
        await asyncio.to_thread(broker.kill)
        await died(client)
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    async with SocketClient(port_of(again)) as client:
        whole = await received(client, "q")
    assert whole.endswith(payload[-SIZE:])
    assert again.stop() == 0


async def test_one_that_is_not_durable_is_gone_after_a_restart(tmp_path: Path) -> None:
    payload, _ = large(SIZE)
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    async with SocketClient(port_of(broker)) as client:
        sender = Sender(client)
        await sender.attach("q")
        await sender.send(payload)
        await sender.accepted()
    assert broker.stop() == 0
    assert chunks(tmp_path) > 0, "it waited on the disk"
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    assert await all_swept(again, tmp_path)
    assert await drained(port_of(again), "q", 0) == []
    assert again.stop() == 0


async def test_twenty_at_once_arrive_whole(tmp_path: Path) -> None:
    payload, _ = large(3 * 1024 * 1024, durable=True)
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    port = port_of(broker)

    async def there_and_back(address: str) -> bytes:
        async with SocketClient(port, patience_s=30) as client:
            sender = Sender(client)
            await sender.attach(address)
            await sender.send(payload)
            await sender.accepted()
        async with SocketClient(port, patience_s=30) as client:
            return await received(client, address)

    found = await asyncio.gather(*[there_and_back(f"q{number}") for number in range(20)])
    assert all(whole.endswith(payload[-3 * 1024 * 1024 :]) for whole in found)
    assert broker.stop() == 0


def resident_kib(pid: int, what: str) -> int:
    """Return a figure of /proc/PID/status, in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1])
    raise AssertionError(what)


async def test_memory_does_not_grow_with_the_size_of_a_message(tmp_path: Path) -> None:
    """After some ordinary work, 32 MiB go in and out; the limit is for the highest value ever."""
    payload, _ = large(2 * SIZE, durable=True)
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    port = port_of(broker)
    async with SocketClient(port) as client:
        producer = Producer(client, 0)
        await producer.attach("small")
        await producer.run(2000)
    await drained(port, "small", 2000)
    before = resident_kib(broker.pid, "VmRSS")
    async with SocketClient(port) as client:
        sender = Sender(client)
        await sender.attach("q")
        await sender.send(payload)
        await sender.accepted()
    async with SocketClient(port) as client:
        assert len(await received(client, "q")) >= 2 * SIZE
    grown = resident_kib(broker.pid, "VmHWM") - before
    assert grown <= GROWTH_MAX_KIB, f"{grown} KiB for a message of {2 * SIZE // 1024} KiB"
    assert broker.stop() == 0
