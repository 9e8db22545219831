"""A receiver whose unsettled deliveries the store keeps, and brokers that follow one another."""

from __future__ import annotations

from typing import Any, Final

from broker.amqp.outcomes import State
from broker.amqp.performatives import Attach
from broker.amqp.terminus import NEVER, UNSETTLED_STATE, Source
from storage.api import Store
from storage.memory import MemoryStore
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, body_of, message
from tests.support.resuming import STORED, come_back

SUBSCRIBED: Final = Source(
    address="q", durable=UNSETTLED_STATE, expiry_policy=NEVER, capabilities=["topic"]
)


def filled(store: MemoryStore, count: int, *, durable: bool = True, kind: str = "queue") -> Broker:
    broker = Broker(store=store)
    put(broker, count, durable=durable, kind=kind)
    return broker


def put(broker: Broker, count: int, *, durable: bool = True, kind: str = "queue") -> None:
    """Send messages with the bodies `0`, `1`, … to `q`."""
    sender = broker.session("filler")
    sender.attach_sender("q", kind=kind)
    for number in range(count):
        payload = message(b"%d" % number, durable=durable)
        sender.transfer(number, settled=True, payload=payload)
    sender.hang_up()


def attach(
    client: Client,
    states: dict[bytes, State | None] | None,
    *,
    source: Source = STORED,
    **fields: Any,
) -> Attach:
    return come_back(client, states, source=source, **fields)


def holding_stored(store: MemoryStore, count: int = 3, *, source: Source = STORED) -> Client:
    """Return a client that holds all messages of `q` unsettled, as the store knows."""
    client = filled(store, count).session()
    attach(client, {}, source=source)
    client.expect_deliveries(*[b"%d" % number for number in range(count)])
    return client


async def held(store: Store) -> list[list[int]]:
    """Return the numbers of the messages in each stored batch."""
    return [each.numbers for each in (await store.leases()).batches]


async def leases_in(store: MemoryStore) -> int:
    return len((await store.leases()).leases)


def bodies_of(client: Client) -> list[bytes]:
    return [body_of(each.payload) for each in client.bodies() if isinstance(each, Transfer)]
