"""Mixed work on a broker that is killed and restarted; each step is recorded in the history."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Final

from librt.strings import BytesWriter

from broker.amqp.composite import FieldWriter
from broker.amqp.descriptors import DATA, PROPERTIES
from broker.amqp.encode import put_binary, put_descriptor
from broker.amqp.outcomes import DeliveryState
from broker.amqp.sections import put_header
from tests.faults.client import Client
from tests.faults.history import Action, Phase, Recorder
from tests.faults.links import Delivery, Receiver, Refused, Sender, is_accepted

NOISE: Final = random.Random(0).randbytes(2**21)
"""Random bytes from which bodies are cut."""

GONE: Final = (ConnectionError, EOFError, Refused)
"""Errors that a dying broker causes. One that hangs causes TimeoutError, which is a finding."""


def body_for(subject: str, size: int, chosen: random.Random) -> bytes:
    """Return the body of a message, which begins with the message's name."""
    start = chosen.randrange(len(NOISE) - size)
    return subject.encode() + b"|" + NOISE[start : start + size]


def subject_of(body: bytes) -> str:
    """Return the name of the message with that body."""
    return body.partition(b"|")[0][:40].decode(errors="replace")


def encoded(subject: str, body: bytes, priority: int) -> bytes:
    """Return a durable message whose message-id is its name, as JMS clients set it."""
    out = BytesWriter()
    put_header(out, durable=True, priority=priority, ttl=-1, first_acquirer=False, delivery_count=0)
    fields = FieldWriter()
    fields.string(subject)
    fields.close(out, PROPERTIES)
    put_descriptor(out, DATA)
    put_binary(out, body)
    return out.getvalue()


class Station:
    """Knows the broker's port; clients wait here while the broker is down.

    `survived` are the errors after which a client connects again.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder: Final = recorder
        self.survived: tuple[type[Exception], ...] = GONE
        self.stopping = False
        self._up: Final = asyncio.Event()
        self._port = 0

    def came_up(self, port: int) -> None:
        self._port = port
        self.recorder.note(Phase.OK, Action.OUTAGE, "broker")
        self._up.set()

    def going_down(self) -> None:
        """Record an outage; call this before the broker is killed."""
        self._up.clear()
        self.recorder.note(Phase.INVOKE, Action.OUTAGE, "broker")

    async def port(self) -> int:
        """Return the port of the running broker; wait for it if there is none."""
        await self._up.wait()
        return self._port

    def stop(self) -> None:
        """Let all workers end, after they have received all outcomes."""
        self.stopping = True
        self._up.set()


class Worker:
    """A client that reconnects whenever the broker is back. `heard` is why the broker closed it."""

    def __init__(self, station: Station, name: str, seed: int) -> None:
        self.station: Final = station
        self.name: Final = name
        self.chosen: Final = random.Random(f"{seed} {name}")
        self.attaches = 0
        self.count = 0
        self.heard = ""
        self.client: Client | None = None

    async def work(self) -> None:
        """Work until the station stops."""
        while not self.station.stopping:
            port = await self.station.port()
            client = Client(port, self.name)
            with suppress(*self.station.survived):
                async with client:
                    self.client = client
                    self.attaches += 1
                    await self.shift(client)
            if client.error is not None:
                self.heard = client.error.condition
            await asyncio.sleep(0.005)

    async def shift(self, client: Client) -> None:
        """Do the work of one connection."""
        raise NotImplementedError

    @property
    def by(self) -> str:
        """Return the name of the current attach's link."""
        return f"{self.name}#{self.attaches}"

    def note(self, phase: Phase, action: Action, subject: str, **facts: object) -> None:
        self.station.recorder.note(phase, action, subject, **facts)  # type: ignore[arg-type]

    # -- one message

    async def send(
        self,
        sender: Sender,
        place: str,
        *,
        priority: int = 4,
        size: int = 1024,
        transaction: bytes | None = None,
        subject: str = "",
    ) -> asyncio.Future[DeliveryState | None]:
        """Send a durable message under a new name, or under `subject` if that was sent before."""
        await sender.room()
        if not subject:
            subject = f"{self.name}.{self.count}"
            self.count += 1
        body = body_for(subject, size, random.Random(subject))
        self.note(
            Phase.INVOKE,
            Action.SEND,
            subject,
            place=place,
            by=self.by,
            transaction=self.named(transaction),
            crc=zlib.crc32(body),
            priority=priority,
        )
        payload = encoded(subject, body, priority)
        told = await sender.send(payload, transaction=transaction)
        told.add_done_callback(partial(self._told, subject))
        return told

    def _told(self, subject: str, told: asyncio.Future[DeliveryState | None]) -> None:
        state = None if told.cancelled() else told.result()
        phase = Phase.OK if is_accepted(state) else Phase.FAIL
        self.note(Phase.INFO if state is None else phase, Action.SEND, subject)

    def named(self, transaction: bytes | None) -> str:
        """Return the transaction's name in the history: each broker process gives ids anew."""
        return "" if transaction is None else f"{self.by}:{transaction.hex()}"

    def received(self, delivery: Delivery, place: str) -> str:
        """Record a delivery; return the message's name."""
        subject = subject_of(delivery.body)
        self.note(
            Phase.OK,
            Action.RECEIVE,
            subject,
            place=place,
            by=self.by,
            crc=zlib.crc32(delivery.body),
            flagged=delivery.flagged,
        )
        return subject

    def settled(self, subject: str, place: str, *, transaction: bytes | None = None) -> None:
        """Record that a delivery is about to be accepted."""
        named = self.named(transaction)
        self.note(Phase.INVOKE, Action.SETTLE, subject, place=place, by=self.by, transaction=named)

    def given_back(self, subject: str, place: str) -> None:
        self.note(Phase.FAIL, Action.SETTLE, subject, place=place, by=self.by)

    def some_size(self) -> int:
        """Return 1 KiB in nine of ten cases, else a random size below 64 KiB."""
        return 1024 if self.chosen.random() < 0.9 else self.chosen.randrange(2**16)


class Producer(Worker):
    """Sends to one address, at most `window` unsettled messages at a time, with pauses."""

    def __init__(
        self,
        station: Station,
        name: str,
        seed: int,
        *,
        address: str,
        kind: str = "",
        window: int = 50,
        priorities: int = 1,
        pause_s: float = 0.002,
    ) -> None:
        super().__init__(station, name, seed)
        self._address: Final = address
        self._kind: Final = kind
        self._window: Final = window
        self._priorities: Final = priorities
        self._pause_s: Final = pause_s

    async def shift(self, client: Client) -> None:
        sender = await client.sender(self._address, kind=self._kind)
        waiting: deque[asyncio.Future[DeliveryState | None]] = deque()
        while not self.station.stopping:
            for _ in range(self.chosen.randint(1, 10)):
                priority = 4 if self._priorities == 1 else self.chosen.randrange(self._priorities)
                waiting.append(
                    await self.send(sender, self._address, priority=priority, size=self.some_size())
                )
            while len(waiting) > self._window:
                await waiting.popleft()
            await asyncio.sleep(self.chosen.random() * self._pause_s * 2)
        await asyncio.gather(*waiting)


class TransactedProducer(Worker):
    """Sends a few messages in each transaction, and rolls back one transaction in ten."""

    def __init__(self, station: Station, name: str, seed: int, *, addresses: list[str]) -> None:
        super().__init__(station, name, seed)
        self._addresses: Final = addresses

    async def shift(self, client: Client) -> None:
        transactions = await client.transactions()
        senders = {address: await client.sender(address) for address in self._addresses}
        while not self.station.stopping:
            transaction = await transactions.declare()
            for _ in range(self.chosen.randint(1, 8)):
                address = self.chosen.choice(self._addresses)
                await self.send(
                    senders[address], address, size=self.some_size(), transaction=transaction
                )
            fail = self.chosen.random() < 0.1
            name = self.named(transaction)
            self.note(Phase.FAIL if fail else Phase.INVOKE, Action.COMMIT, name)
            state = await transactions.discharge(transaction, fail=fail)
            if not fail and state is not None:
                done = Phase.OK if is_accepted(state) else Phase.FAIL
                self.note(done, Action.COMMIT, name)
            await asyncio.sleep(self.chosen.random() * 0.004)


class Mover(Worker):
    """Moves messages from one queue to another, in transactions that cover both."""

    def __init__(self, station: Station, name: str, seed: int, *, source: str, target: str) -> None:
        super().__init__(station, name, seed)
        self._source: Final = source
        self._target: Final = target

    async def shift(self, client: Client) -> None:
        transactions = await client.transactions()
        sender = await client.sender(self._target)
        receiver = await client.receiver(self._source, credit=20)
        while not self.station.stopping:
            first = await receiver.next(0.05)
            if first is None:
                continue
            transaction = await transactions.declare()
            deliveries = [first]
            for _ in range(self.chosen.randrange(5)):
                more = await receiver.next(0.001)
                if more is not None:
                    deliveries.append(more)
            for delivery in deliveries:
                subject = self.received(delivery, self._source)
                await self.send(sender, self._target, transaction=transaction)
                self.settled(subject, self._source, transaction=transaction)
                receiver.accept(delivery, transaction=transaction)
            name = self.named(transaction)
            self.note(Phase.INVOKE, Action.COMMIT, name)
            state = await transactions.discharge(transaction)
            if state is not None:
                done = Phase.OK if is_accepted(state) else Phase.FAIL
                self.note(done, Action.COMMIT, name)
            if not is_accepted(state):
                return  # its deliveries stay unsettled until it leaves


class Consumer(Worker):
    """Consumes messages; returns a share of `gives_back` to the queue."""

    def __init__(
        self,
        station: Station,
        name: str,
        seed: int,
        *,
        address: str,
        place: str = "",
        subscription: str = "",
        gives_back: float = 0.0,
        pause_s: float = 0.0,
    ) -> None:
        super().__init__(station, name, seed)
        self._address: Final = address
        self._place: Final = place or address
        self._subscription: Final = subscription
        self._gives_back: Final = gives_back
        self._pause_s: Final = pause_s

    async def shift(self, client: Client) -> None:
        receiver = await self.attach(client)
        while not self.station.stopping:
            delivery = await receiver.next(0.05)
            if delivery is None or self.station.stopping:
                continue  # messages that stopping consumers return arrive late: not recorded
            subject = self.received(delivery, self._place)
            if self.chosen.random() < self._gives_back:
                self.given_back(subject, self._place)
                receiver.release(delivery)
            else:
                self.settled(subject, self._place)
                receiver.accept(delivery)
            if self._pause_s:
                await asyncio.sleep(self._pause_s * self.chosen.random() * 2)

    async def attach(self, client: Client, credit: int = 50) -> Receiver:
        return await client.receiver(self._address, credit=credit, subscription=self._subscription)

    async def drain(self, port: int) -> int:
        """Consume everything there, alone; return the number of messages."""
        async with Client(port, self.name) as client:
            self.attaches += 1
            receiver = await self.attach(client, 0)
            deliveries = await receiver.all()
            for delivery in deliveries:
                self.settled(self.received(delivery, self._place), self._place)
            if deliveries:
                receiver.accept(deliveries[0], deliveries[-1])
        return len(deliveries)


async def all_drained(consumers: Iterable[Consumer], port: int) -> frozenset[str]:
    """Drain every place; return the links that did so."""
    links = set()
    for consumer in consumers:
        await consumer.drain(port)
        links.add(consumer.by)
    return frozenset(links)
