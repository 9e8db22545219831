"""A producer of durable messages that records which of them were accepted."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.amqp.performatives import Flow
from broker.amqp.terminus import Source
from tests.conformance.frames import Disposition, Transfer, frame, read_frame
from tests.support.frames import attach_receiver, attach_sender, body_of, flow, message
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until

WINDOW: Final = 50
"""Maximum number of messages that wait for their outcome at a time."""

ENDLESS: Final = 10_000_000
"""A number of messages that no test waits for."""


class Producer:
    """Sends `0000000`, `0000001` and so on; `accepted` has the numbers that the broker accepted."""

    def __init__(self, client: SocketClient, first: int) -> None:
        self.accepted: Final[list[int]] = []
        self.sent = first
        self._first: Final = first
        self._credited = 0
        self._client: Final = client

    async def attach(self, address: str, *, kind: str = "") -> None:
        """Open a connection, a session and a link, and wait for credit."""
        await self._client.open("producer")
        await self._client.begin()
        self._client.send(attach_sender(address, name="producer", kind=kind))
        while self._credited == 0:
            await self._hear()

    def send(self) -> None:
        """Send the next message."""
        number = self.sent - self._first
        self._client.send_bytes(
            frame(
                Transfer(
                    delivery_id=number,
                    tag=b"%d" % number,
                    payload=message(b"%07d" % self.sent, durable=True),
                )
            )
        )
        self.sent += 1

    async def run(self, count: int) -> None:
        """Send until `count` messages have been accepted; record every acceptance meanwhile."""
        while len(self.accepted) < count:
            while self.sent - self._first < min(len(self.accepted) + WINDOW, self._credited):
                self.send()
            await self._hear()

    async def _hear(self) -> None:
        body = read_frame(await self._client.frame()).body
        if isinstance(body, Flow) and body.handle >= 0:
            self._credited = body.delivery_count + body.link_credit
        if isinstance(body, Disposition):
            last = body.first if body.last is None else body.last
            self.accepted.extend(self._first + each for each in range(body.first, last + 1))


async def publishing(client: SocketClient, topic: str) -> tuple[Producer, asyncio.Task[None]]:
    """Let a producer publish to `topic` without an end; return once 1,000 are accepted."""
    producer = Producer(client, 0)
    await producer.attach(topic, kind="topic")
    running = asyncio.create_task(producer.run(ENDLESS))
    await until(lambda: len(producer.accepted) >= 1000)
    return producer, running


async def drained(port: int, address: str, least: int, *, subscription: str = "") -> list[int]:
    """Return the numbers of all messages at `address` in the order of delivery; settle none.

    With `subscription`, those of the durable subscription to the topic `address`, which is made if
    it is not there. There must be `least` messages.
    """
    source = Source(address=address)
    if subscription:
        source = Source(address=address, durable=2, expiry_policy="never", capabilities=["topic"])
    numbers: list[int] = []
    async with SocketClient(port) as client:
        await client.open("consumer")
        await client.begin()
        client.send(attach_receiver(name=subscription or "consumer", source=source))
        client.send(
            flow(handle=0, credit=2**20, delivery_count=0, drain=True, incoming_window=2**20)
        )
        while True:
            body = read_frame(await client.frame()).body
            if isinstance(body, Transfer):
                numbers.append(int(body_of(body.payload)))
            elif isinstance(body, Flow) and body.handle == 0 and body.link_credit == 0:
                break
    assert len(numbers) >= least
    return numbers


async def died(client: SocketClient) -> None:
    """Wait until the connection has ended in some way."""
    try:
        while await client.reader.read(2**16):
            pass
    except ConnectionError:
        await asyncio.sleep(0)
