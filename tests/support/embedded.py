"""Operations of a test on an embedded broker, without a client library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from broker.amqp.descriptors import TRANSFER
from broker.amqp.outcomes import DeliveryState
from broker.amqp.performatives import RECEIVER, Attach
from broker.amqp.sections import split
from broker.amqp.terminus import Source
from broker.app import App
from broker.embedding import Broker
from broker.message import read_message
from tests.support.frames import Disposition, flow, frame, message
from tests.support.socket_client import SocketClient


def put(
    broker: Broker,
    address: str,
    *bodies: bytes,
    kind: str = "queue",
    ttl: int = -1,
    delay: int = 0,
    durable: bool = False,
    priority: int = 4,
) -> None:
    """Put messages into a node, as if a client had sent them; `ttl` and `delay` are in ms."""

    def publish(app: App) -> None:
        container = app.container
        annotations: dict[str, object] = {}
        if delay:
            annotations["x-opt-delivery-time"] = int(container.clock.wall_ms()) + delay
        batch = container.journal.batch
        for body in bodies:
            data = message(
                body, ttl=ttl, annotations=annotations, durable=durable, priority=priority
            )
            sections = split(data, 0, len(data))
            node = container.router.resolve(container.router.parse(address, kind), batch)
            node.put(read_message(sections, data, container.clock), batch)
        container.run_round()

    broker._call(publish)


def waiting(broker: Broker, address: str) -> list[object]:
    """Return the bodies of the ready messages at an address."""
    return [each.body for each in broker.messages(address)]


def port_of(broker: Broker) -> int:
    return int(broker.url.rpartition(":")[2])


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[int]:
    """Run a broker with `settings`; yield its port."""
    async with Broker(**settings) as running:
        yield port_of(running)


async def consume(client: SocketClient, address: str, *, count: int) -> None:
    """Open, attach and receive `count` deliveries, which stay unsettled."""
    await client.open("consumer")
    await client.begin()
    client.send(Attach(name="in", handle=0, role=RECEIVER, source=Source(address=address)))
    assert isinstance(await client.next(), Attach)
    client.send(flow(handle=0, delivery_count=0, credit=count))
    for _ in range(count):
        assert await client.next() == TRANSFER


def settle(client: SocketClient, delivery: int, state: DeliveryState | None) -> None:
    """Settle a delivery as its consumer, with the outcome `state`."""
    client.send_bytes(frame(Disposition(first=delivery, state=state)))
