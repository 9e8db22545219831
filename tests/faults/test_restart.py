"""Promises that hold when a broker ends, by `kill -9` or a stop, and starts again."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from librt.strings import BytesWriter

from broker.amqp.encode import put_binary, put_descriptor, put_value
from broker.amqp.sections import put_header
from broker.amqp.types import Map, Symbol, Timestamp
from tests.faults.client import Client
from tests.faults.links import Delivery, Sender, is_accepted
from tests.faults.server import Place, Server

pytestmark = pytest.mark.slow

MANY = 1000

PREFETCHED = 20
"""More messages than a consumer with credit for ten is sent before it has read ten."""

SCHEDULED = b"scheduled"

WAYS = [pytest.param(True, id="kill -9"), pytest.param(False, id="a stop")]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    broker = Server(Place(tmp_path))
    await broker.start()
    yield broker
    await broker.close()


async def again(server: Server, *, killed: bool) -> None:
    """End the broker and start it again."""
    if killed:
        await server.kill()
    else:
        assert await server.stop() == 0
    await server.start()


def encoded(body: bytes, *, durable: bool = True, due_ms: int | None = None) -> bytes:
    """Return a message, with a delivery time if `due_ms` is given."""
    out = BytesWriter()
    put_header(out, durable=durable, priority=4, ttl=-1, first_acquirer=False, delivery_count=0)
    if due_ms is not None:
        put_descriptor(out, 0x72)
        put_value(out, Map([(Symbol("x-opt-delivery-time"), Timestamp(due_ms))]))
    put_descriptor(out, 0x75)
    put_binary(out, body)
    return out.getvalue()


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%06d" % number for number in range(first, first + count)]


async def send(sender: Sender, payloads: list[bytes], *, transaction: bytes | None = None) -> None:
    """Send the messages and check that each is accepted."""
    told = []
    for payload in payloads:
        await sender.room()
        told.append(await sender.send(payload, transaction=transaction))
    for each in told:
        assert is_accepted(await each)


async def fill(server: Server, address: str, *, durable: bool = True, kind: str = "") -> None:
    """Send MANY messages."""
    async with Client(server.port, "filler") as client:
        sender = await client.sender(address, kind=kind)
        await send(sender, [encoded(body, durable=durable) for body in numbers(MANY)])


async def subscribe(server: Server, topic: str) -> None:
    async with Client(server.port, "reader") as client:
        await client.receiver(topic, subscription="letters")


async def drained(server: Server, address: str, subscription: str = "") -> list[Delivery]:
    """Consume and return all messages that are there."""
    async with Client(server.port, "reader") as client:
        receiver = await client.receiver(address, credit=0, subscription=subscription)
        found = await receiver.all()
        if found:
            receiver.accept(found[0], found[-1])
    return found


def bodies(deliveries: list[Delivery]) -> list[bytes]:
    return [delivery.body for delivery in deliveries]


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize("killed", WAYS)
async def test_durable_messages_are_there_in_order_and_others_are_not(
    server: Server, killed: bool
) -> None:
    async with Client(server.port, "sender") as client:
        sender = await client.sender("q")
        mixed = [
            each
            for body in numbers(MANY)
            for each in (encoded(body), encoded(b"not durable", durable=False))
        ]
        await send(sender, mixed)
        receiver = await client.receiver("q", credit=10)
        seen = [await receiver.next() for _ in range(10)]
        assert all(seen)
        await again(server, killed=killed)
    found = await drained(server, "q")
    assert bodies(found) == numbers(MANY)
    had = {each.body for each in seen if each is not None}
    assert all(delivery.flagged for delivery in found if delivery.body in had)
    if not killed:  # after a kill, more messages are flagged than were delivered
        assert not any(delivery.flagged for delivery in found[PREFETCHED:])
    assert await drained(server, "q") == []


@pytest.mark.requirement("DST-11")
@pytest.mark.parametrize("killed", WAYS)
async def test_a_durable_address_keeps_messages_whatever_they_say(
    server: Server, killed: bool
) -> None:
    await subscribe(server, "/topic/durable/news")
    await fill(server, "/queue/durable/orders", durable=False)
    await fill(server, "/topic/durable/news", durable=False)
    await again(server, killed=killed)
    assert bodies(await drained(server, "/queue/durable/orders")) == numbers(MANY)
    found = await drained(server, "/topic/durable/news", "letters")
    assert bodies(found) == numbers(MANY)


@pytest.mark.requirement("DST-12")
@pytest.mark.parametrize("killed", WAYS)
async def test_a_transient_address_keeps_messages_no_longer_than_its_broker(
    server: Server, killed: bool
) -> None:
    await fill(server, "/queue/transient/ticks")
    await fill(server, "q")
    assert len(await drained(server, "/queue/transient/ticks")) == MANY
    await fill(server, "/queue/transient/ticks")
    await again(server, killed=killed)
    assert await drained(server, "/queue/transient/ticks") == []
    assert bodies(await drained(server, "q")) == numbers(MANY)


@pytest.mark.requirement("DLY-03")
@pytest.mark.parametrize("killed", WAYS)
async def test_what_is_scheduled_comes_when_it_is_due_or_at_once_where_that_was_meanwhile(
    server: Server, killed: bool
) -> None:
    """On a queue, on a subscription that existed at the publication, and in a transaction."""
    await subscribe(server, "t")
    now_ms = time.time_ns() // 1_000_000
    due_ms = now_ms + 5000
    async with Client(server.port, "sender") as client:
        queue = await client.sender("q")
        topic = await client.sender("t", kind="topic")
        transactions = await client.transactions()
        transaction = await transactions.declare()
        soon = encoded(b"soon", due_ms=now_ms + 1)
        await send(queue, [encoded(SCHEDULED, due_ms=due_ms), encoded(b"now"), soon])
        await send(topic, [encoded(SCHEDULED, due_ms=due_ms)])
        committed = encoded(b"committed", due_ms=due_ms)
        await send(queue, [committed], transaction=transaction)
        assert is_accepted(await transactions.discharge(transaction))
    await again(server, killed=killed)
    found = bodies(await drained(server, "q")), bodies(await drained(server, "t", "letters"))
    assert time.time_ns() // 1_000_000 < due_ms, "the machine is too slow for this test"
    assert (sorted(found[0]), found[1]) == ([b"now", b"soon"], [])
    for address, subscription, expected in (
        ("q", "", [SCHEDULED, b"committed"]),
        ("t", "letters", [SCHEDULED]),
    ):
        async with Client(server.port, "reader") as client:
            receiver = await client.receiver(address, subscription=subscription)
            came = [await receiver.next() for _ in expected]
            assert time.time_ns() // 1_000_000 >= due_ms
            assert [each.body for each in came if each] == expected
            for each in came:
                assert each is not None
                receiver.accept(each)


@pytest.mark.requirement("PRD-03", "DLY-03")
async def test_a_thousand_messages_a_subscription_and_a_schedule_outlive_a_kill(
    server: Server,
) -> None:
    """All of them at once, after two kills in a row."""
    await subscribe(server, "t")
    await fill(server, "q")
    await fill(server, "t", kind="topic")
    due_ms = time.time_ns() // 1_000_000 + 3000
    async with Client(server.port, "sender") as client:
        await send(await client.sender("later"), [encoded(SCHEDULED, due_ms=due_ms)])
    await again(server, killed=True)
    await again(server, killed=True)
    assert bodies(await drained(server, "q")) == numbers(MANY)
    assert bodies(await drained(server, "t", "letters")) == numbers(MANY)
    async with Client(server.port, "reader") as client:
        receiver = await client.receiver("later")
        delivery = await receiver.next()
        assert delivery is not None
        assert delivery.body == SCHEDULED
        assert time.time_ns() // 1_000_000 >= due_ms
        receiver.accept(delivery)
    assert await server.stop() == 0
