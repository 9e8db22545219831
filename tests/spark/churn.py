"""Clients of every kind that work on one broker at random while it is killed again and again.

What they do is not recorded: the broker's event log is, and an audit must find no fault in it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Final

from broker.amqp.outcomes import DeliveryState, Modified, Rejected
from broker.amqp.performatives import Detach
from broker.amqp.terminus import COPY, Source
from broker.amqp.types import Timestamp
from tests.conformance.frames import Disposition
from tests.faults.asking import Asking
from tests.faults.client import Client
from tests.faults.links import Delivery, Lost, Receiver, Refused
from tests.faults.server import Server
from tests.support.frames import message

SETTINGS: Final = """\
event_log = true
max_delivery_count = 3
expiry = "late"

[[address]]
pattern = "q2"
dead_letter = "unseen"
redelivery_delay_ms = 20

[[address]]
pattern = "unseen"
event_log = false

[[address]]
pattern = "small"
max_messages = 30
full = "drop-oldest"
"""
"""Settings of the broker: dead letters of `q2` go where nothing is recorded."""

QUEUES: Final = ("q0", "q1", "q2", "small")
TOPIC: Final = "topic"
SUBSCRIPTION: Final = "sub"

IDENTITIES: Final = 1000
"""Messages of a queue that one request names, from the first one on, whether they are there."""

WORKERS: Final = 5

QUIET_S: Final = 0.05
"""Seconds without a message after which a consumer stops waiting."""

Work = Callable[[Client, random.Random, str], Awaitable[None]]


def text(chosen: random.Random, name: str) -> bytes:
    """Return a message: durable or not, with an id or none, with or without expiry and delay."""
    said: dict[str, object] = {}
    if chosen.random() < 0.15:
        said["x-opt-delivery-time"] = Timestamp(int(time.time() * 1000) + chosen.randint(1, 2000))
    return message(
        name.encode(),
        durable=chosen.random() < 0.6,
        priority=chosen.choice((4, 4, 4, 9)),
        ttl=chosen.choice((-1, -1, -1, chosen.randint(1, 100))),
        annotations=said,
        message_id=f"ID:{name}" if chosen.random() < 0.9 else None,
    )


def place(chosen: random.Random) -> str:
    return chosen.choice((*QUEUES, *QUEUES, TOPIC))


async def produce(client: Client, chosen: random.Random, name: str) -> None:
    """Send some messages, alone or in a transaction that is committed, rolled back or left."""
    address = place(chosen)
    sender = await client.sender(address, kind="topic" if address == TOPIC else "queue")
    coordinator = await client.transactions() if chosen.random() < 0.3 else None
    transaction = None if coordinator is None else await coordinator.declare()
    outcomes = []
    for number in range(chosen.randint(1, 20)):
        await sender.room()
        payload = text(chosen, f"{name}-{number}")
        outcomes.append(await sender.send(payload, transaction=transaction))
    if coordinator is not None and transaction is not None and chosen.random() < 0.9:
        await coordinator.discharge(transaction, fail=chosen.random() < 0.3)
    for outcome in outcomes[:-1]:
        await outcome


def settle(client: Client, chosen: random.Random, receiver: Receiver, delivery: Delivery) -> None:
    """Settle a delivery in any way, or leave it."""
    act = chosen.choices(("accept", "release", "reject", "fail", "refuse", ""), [70, 6, 5, 8, 3, 8])
    if act == ["accept"]:
        receiver.accept(delivery)
    elif act == ["release"]:
        receiver.release(delivery)
    elif act != [""]:
        states: dict[str, DeliveryState] = {
            "reject": Rejected(),
            "fail": Modified(delivery_failed=True),
            "refuse": Modified(undeliverable_here=True),
        }
        client.say(
            Disposition(
                role=True,
                first=delivery.delivery_id,
                last=delivery.delivery_id,
                settled=True,
                state=states[act[0]],
            )
        )


async def receive(client: Client, chosen: random.Random, receiver: Receiver) -> None:
    """Take some messages, at times within a transaction."""
    coordinator = await client.transactions() if chosen.random() < 0.3 else None
    transaction = None if coordinator is None else await coordinator.declare()
    for _ in range(chosen.randint(1, 40)):
        delivery = await receiver.next(QUIET_S)
        if delivery is None:
            break
        if transaction is not None and chosen.random() < 0.8:
            receiver.accept(delivery, transaction=transaction)
        else:
            settle(client, chosen, receiver, delivery)
    if coordinator is not None and transaction is not None and chosen.random() < 0.9:
        await coordinator.discharge(transaction, fail=chosen.random() < 0.3)


async def consume(client: Client, chosen: random.Random, name: str) -> None:
    """Consume a queue or dead letters; end the link in order, or leave it to the connection."""
    address = chosen.choice((*QUEUES, *QUEUES, "DLQ", "late", "moved"))
    receiver = await client.receiver(address, credit=chosen.choice((1, 10, 100)), name=name)
    await receive(client, chosen, receiver)
    if chosen.random() < 0.5:
        client.say(Detach(handle=0, closed=True))
        await client.sender("q0")  # the broker has read the detach when it answers


async def subscribe(client: Client, chosen: random.Random, name: str) -> None:
    """Consume a topic: with a durable subscription, or without a name, which loses the rest."""
    subscription = SUBSCRIPTION if chosen.random() < 0.5 else ""
    source = None if subscription else Source(address=TOPIC, capabilities=["topic"])
    receiver = await client.receiver(TOPIC, subscription=subscription, source=source)
    sender = await client.sender(TOPIC, kind="topic")
    for number in range(3):
        await sender.room()
        await sender.send(text(chosen, f"{name}-{number}"))
    await receive(client, chosen, receiver)
    if subscription and chosen.random() < 0.2:
        await client.unsubscribe(subscription)


async def browse(client: Client, chosen: random.Random, _: str) -> None:
    address = chosen.choice(QUEUES)
    source = Source(address=address, distribution_mode=COPY)
    receiver = await client.receiver(address, credit=0, source=source)
    await receiver.all()


async def lease(client: Client, chosen: random.Random, name: str) -> None:
    """Acquire a batch; settle it, release it, or leave it to its time or to the next driver."""
    asking = await Asking.of(client)
    queue = chosen.choice(QUEUES)
    own = f"lease-{queue}-{name[-1]}"
    told = (await asking.ask("OPEN", "lease", own, {"address": queue, "ttl_ms": 1000})).map
    token = {"fencing_token": told["fencing_token"]}
    for number in range(chosen.randint(1, 3)):
        batch = {**token, "batch": int(str(told["batch"])) + 1 + number}
        found = await asking.ask("ACQUIRE", "lease", own, {**batch, "max_messages": 30})
        if found.status != 200 or found.map["messages"] == 0:
            return
        if chosen.random() < 0.7:
            await asking.ask("SETTLE", "lease", own, batch)
    if chosen.random() < 0.2:
        await asking.ask("RELEASE", "lease", own, token)


async def stage(client: Client, chosen: random.Random, name: str) -> None:
    """Stage messages in one or two attempts, and commit one of them unless it is abandoned."""
    counts = []
    outcomes = []
    for attempt in (1, 2):
        counts.append(chosen.randint(1, 10))
        task = {"stage-query": name, "stage-batch": 0, "stage-partition": 0}
        sender = await client.sender("q0", properties={**task, "stage-attempt": attempt})
        for number in range(counts[-1]):
            await sender.room()
            outcomes.append(await sender.send(text(chosen, f"{name}-{attempt}-{number}")))
    for outcome in outcomes:
        await outcome
    if chosen.random() < 0.8:
        body = {"batch": 0, "partitions": [0], "attempts": [2], "counts": [counts[1]]}
        await (await Asking.of(client)).ask("COMMIT", "sink", name, body)


async def operate(client: Client, chosen: random.Random, _: str) -> None:
    """Do what operators do: move, retry, purge, delete, hurry; delete and make queues."""
    asking = await Asking.of(client)
    queue = chosen.choice(QUEUES)
    some = {"queue": queue, "all": True, "count": 3}
    await asking.ask("CREATE", "queue", "moved")
    act = chosen.choice(("MOVE", "COPY", "RETRY", "DELETE", "DELIVER", "CANCEL", "PURGE", "ANEW"))
    if act == "PURGE":
        await asking.ask(act, "queue", queue)
    elif act == "ANEW":
        await asking.ask("DELETE", "queue", chosen.choice((queue, "late", "DLQ")))
    elif act in {"DELIVER", "CANCEL"}:
        identities = [str(number * 10 + 4) for number in range(IDENTITIES)]
        await asking.ask(act, "message", "", {"queue": queue, "identities": identities})
    elif act == "RETRY":
        await asking.ask(act, "message", "", {**some, "queue": "DLQ"})
    elif act == "DELETE":
        await asking.ask(act, "message", "", some)
    else:
        await asking.ask(act, "message", "", {**some, "to": "moved", "to_type": "queue"})


WORKS: Final[dict[Work, int]] = {
    produce: 30,
    consume: 30,
    subscribe: 10,
    browse: 5,
    lease: 10,
    stage: 5,
    operate: 8,
}
"""The kinds of work by how often they are chosen."""


async def worker(server: Server, chosen: random.Random, number: int, until: float) -> None:
    """Do one kind of work after the other, each on its own connection, until that time.

    Worker `number` is client `number % WORKERS`, so a later one has the same subscription.
    """
    loop = asyncio.get_running_loop()
    turn = 0
    while loop.time() < until:
        turn += 1
        (work,) = chosen.choices(list(WORKS), list(WORKS.values()))
        name = f"w{number}-{turn}-{chosen.randint(0, 3)}"
        try:
            async with Client(server.port, f"client-{number % WORKERS}") as client:
                await work(client, chosen, name)
                if chosen.random() < 0.3:
                    client.abort()
        except (Lost, Refused, OSError, TimeoutError, KeyError):
            await asyncio.sleep(0.02)  # the broker was killed, or it refused what it must


async def churned(server: Server, seed: int, lives_s: tuple[float, ...]) -> None:
    """Let WORKERS work during lives of the broker of that many seconds; kill it after each."""
    loop = asyncio.get_running_loop()
    chosen = random.Random(seed)
    for life, seconds in enumerate(lives_s):
        await server.start()
        until = loop.time() + seconds
        works = [
            asyncio.create_task(
                worker(server, random.Random(chosen.random()), life * WORKERS + number, until)
            )
            for number in range(WORKERS)
        ]
        await asyncio.sleep(seconds)
        await server.kill()
        await asyncio.gather(*works)
    await server.start()
