"""The event log's rows for messages that passed through a real broker, from socket to disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.amqp.outcomes import ACCEPTED, Error, Modified, Rejected, Released
from broker.amqp.performatives import Flow
from broker.embedding import Broker
from storage.events import EVENT_COLUMNS, EventQuery
from tests.conformance.frames import Transfer, frame
from tests.support.embedded import consume, port_of, settle
from tests.support.frames import attach_sender, message
from tests.support.socket_client import SocketClient

Row = dict[str, object]


async def rows(broker: Broker) -> list[Row]:
    """Return all events in the store, after the events recorded so far are committed."""
    app = broker._app()
    await broker.until(lambda: app.journal.batch.is_empty())
    await app.store.nodes()  # waits for the commit before it
    page = await app.store.events(EventQuery())
    return [dict(zip(EVENT_COLUMNS, row, strict=True)) for row in page.rows]


async def publish(broker: Broker, payload: bytes, *, address: str = "orders") -> None:
    """Send one message, and wait until it is accepted."""
    async with SocketClient(port_of(broker)) as client:
        await client.open("producer")
        await client.begin()
        client.send(attach_sender(address, name="out"))
        while not isinstance(await client.next(), Flow):
            pass
        client.send_bytes(frame(Transfer(delivery_id=0, tag=b"0", payload=payload)))
        await client.frame()


def of(told: list[Row], message_id: str, *columns: str) -> list[tuple[object, ...]]:
    """Return these columns of the rows about one message."""
    found = [row for row in told if row["message_id"] == message_id]
    return [tuple(row[column] for column in columns) for row in found]


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "not durable"])
async def test_from_the_producer_to_the_end(tmp_path: Path, durable: bool) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with Broker(store=store, event_log=True) as broker:
        await publish(broker, message(message_id="ID:1", durable=durable))
        async with SocketClient(port_of(broker)) as client:
            await consume(client, "orders", count=1)
            settle(client, 0, Modified(delivery_failed=True))
            await broker.until(lambda: len(broker.settled("orders")) == 1)
        async with SocketClient(port_of(broker)) as client:
            await consume(client, "orders", count=1)
            settle(client, 0, ACCEPTED)
            await broker.until(lambda: len(broker.settled("orders")) == 2)
        told = await rows(broker)
    assert of(told, "ID:1", "kind", "delivery_count", "consumer", "link", "address") == [
        ("enqueued", 0, "", "", "orders"),
        ("delivered", 0, "consumer", "in", "orders"),
        ("modified", 0, "consumer", "in", "orders"),
        ("delivered", 1, "consumer", "in", "orders"),
        ("accepted", 1, "consumer", "in", "orders"),
    ]
    assert [row["id"] for row in told] == [1, 2, 3, 4, 5]
    assert len({row["boot"] for row in told}) == 1
    assert len({row["position"] for row in told}) == 1
    times = [row["at_us"] for row in told]
    assert times == sorted(times, key=str)


async def test_released_rejected_and_expired(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with Broker(store=store, event_log=True, expiry="late") as broker:
        await publish(broker, message(message_id="ID:1", durable=True))
        async with SocketClient(port_of(broker)) as client:
            await consume(client, "orders", count=1)
            settle(client, 0, Released())
            await broker.until(lambda: len(broker.settled("orders")) == 1)
        async with SocketClient(port_of(broker)) as client:
            await consume(client, "orders", count=1)
            settle(
                client,
                0,
                Rejected(Error(condition="amqp:decode-error", description="not an order")),
            )
            await broker.until(lambda: len(broker.settled("orders")) == 2)
        await publish(broker, message(message_id="ID:2", durable=True, ttl=60_000))
        broker.clock.advance(minutes=2)
        told = await rows(broker)
    assert of(told, "ID:1", "kind", "address", "reason") == [
        ("enqueued", "orders", ""),
        ("delivered", "orders", ""),
        ("released", "orders", ""),
        ("delivered", "orders", ""),
        ("rejected", "orders", "amqp:decode-error: not an order"),
        ("deadlettered", "orders", "rejected, to queue DLQ"),
        ("enqueued", "DLQ", ""),
    ]
    assert of(told, "ID:2", "kind", "address") == [
        ("enqueued", "orders"),
        ("expired", "orders"),
        ("enqueued", "late"),
    ]


async def test_ids_go_on_after_a_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    boots = set()
    told: list[Row] = []
    for number in (1, 2):
        async with Broker(store=store, event_log=True) as broker:
            await publish(broker, message(message_id=f"ID:{number}", durable=True))
            told = await rows(broker)
            boots.add(told[-1]["boot"])
    assert [(row["id"], row["message_id"]) for row in told] == [(1, "ID:1"), (2, "ID:2")]
    assert len(boots) == 2, "each process has a clock of its own"


async def test_an_address_that_does_not_ask_has_no_rows(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    async with Broker(store=store, address=[{"pattern": "orders", "event_log": True}]) as broker:
        await publish(broker, message(message_id="ID:1", durable=True), address="others")
        await publish(broker, message(message_id="ID:2", durable=True))
        assert [row["message_id"] for row in await rows(broker)] == ["ID:2"]
