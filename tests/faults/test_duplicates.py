"""A sender in doubt sends everything again after a kill; duplicate detection keeps one of each."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from broker.amqp.performatives import Flow
from tests.conformance.frames import Disposition, Transfer, frame, read_frame
from tests.faults.producer import died, drained
from tests.interop.broker_process import BrokerProcess
from tests.support.frames import attach_sender, message
from tests.support.socket_client import SocketClient

SETTINGS = 'store = "sqlite:///data/store.db"\nduplicate_window = 10000\n'

COUNT = 300


async def attached(client: SocketClient) -> None:
    await client.open("producer")
    await client.begin()
    client.send(attach_sender(name="producer", address="q"))
    while not isinstance(await client.next(), Flow):
        pass


def send_all(client: SocketClient) -> None:
    for number in range(COUNT):
        payload = message(b"%07d" % number, durable=True, message_id=f"ID:{number}")
        client.send_bytes(frame(Transfer(delivery_id=number, tag=b"%d" % number, payload=payload)))


async def accepted(client: SocketClient, least: int) -> int:
    """Return the number of messages that the broker has accepted, once there are `least`."""
    count = 0
    while count < least:
        body = read_frame(await client.frame()).body
        if isinstance(body, Disposition):
            last = body.first if body.last is None else body.last
            count += last - body.first + 1
    return count


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize("least", [0, 1, COUNT // 2, COUNT])
async def test_who_sends_again_after_a_kill_makes_no_duplicate(tmp_path: Path, least: int) -> None:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    async with SocketClient(urlsplit(broker.url).port or 0) as client:
        await attached(client)
        send_all(client)
        await client.writer.drain()
        await accepted(client, least)
        await asyncio.to_thread(broker.kill)
        await died(client)
    again = BrokerProcess(tmp_path, settings=SETTINGS)
    port = urlsplit(again.url).port or 0
    async with SocketClient(port) as client:
        await attached(client)
        send_all(client)
        assert await accepted(client, COUNT) == COUNT
    assert await drained(port, "q", COUNT) == list(range(COUNT))
    assert again.stop() == 0
