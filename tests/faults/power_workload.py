"""The clients' work while the broker's writes are recorded: some of everything that is stored.

The clients record nothing. What they were promised, and when, is read from the broker's trace.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Final

from broker.amqp.outcomes import ACCEPTED, Declared, TransactionalState
from broker.amqp.performatives import RECEIVER, Attach, Detach, Flow
from broker.amqp.terminus import NEVER, UNSETTLED_STATE, Coordinator, Source, Target
from tests.conformance.frames import Body, Disposition, Transfer, frame, read_frame
from tests.faults.power_wire import TOPIC
from tests.support.frames import attach_receiver, attach_sender, flow, message
from tests.support.socket_client import SocketClient
from tests.support.transactions import declare, discharge

COORDINATOR: Final = 9
LINKS: Final = 8
"""Handles from this one on are for receivers; smaller ones, and COORDINATOR, are for senders."""


class Party:
    """A client with one session; before its next step it waits for the broker's frames."""

    def __init__(self, client: SocketClient) -> None:
        self._client: Final = client
        self._sent = 0
        self._owed: Final[set[int]] = set()
        self._states: Final[dict[int, object]] = {}
        self._got = 0
        self._credit: Final[dict[int, int]] = {}
        self._handles: Final[dict[str, int]] = {}
        "This client's handles by the names of links."
        self._senders: Final[dict[int, int]] = {}
        "This client's handles of its senders by the broker's handles."
        self._may_send: Final[dict[int, int]] = {}
        "The count of messages that the broker lets a sender send in all, by handle."
        self._put: Final[Counter[int]] = Counter()
        self.given: Final[dict[int, list[int]]] = {}
        "Delivery-ids that `taken` has not returned yet, by the receiver's handle."

    async def enter(self, container_id: str) -> None:
        await self._client.open(container_id)
        await self._client.begin()

    async def _hear(self) -> Body:
        body = read_frame(await self._client.frame()).body
        if isinstance(body, Disposition):
            for number in range(body.first, (body.last or body.first) + 1):
                self._owed.discard(number)
                self._states[number] = body.state
        elif isinstance(body, Attach):
            self._senders[int(body.handle)] = self._handles[body.name]
        elif isinstance(body, Flow) and body.link_credit >= 0:
            handle = self._senders[int(body.handle)]
            self._may_send[handle] = int(body.delivery_count + body.link_credit)
        elif isinstance(body, Detach) and body.error is not None:
            raise AssertionError(f"the broker detached a link: {body.error}")
        elif isinstance(body, Transfer):
            self._got += 1
            if body.delivery_id is not None:
                self.given.setdefault(body.handle, []).append(body.delivery_id)
        return body

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Process frames from the broker until `is_so()`."""
        while not is_so():
            await self._hear()

    async def attach(self, attach: Attach) -> None:
        self._handles[attach.name] = int(attach.handle)
        self._client.send(attach)
        wanted = Flow if attach.role is not RECEIVER else Attach
        while not isinstance(await self._hear(), wanted):
            pass

    async def detach(self, handle: int, *, closed: bool) -> None:
        self._client.send(Detach(handle=handle, closed=closed))
        while not isinstance(await self._hear(), Detach):
            pass

    def put(self, handle: int, payload: bytes, txn_id: bytes | None = None) -> int:
        """Send one message; return its delivery-id."""
        number = self._sent
        self._sent += 1
        self._put[handle] += 1
        self._owed.add(number)
        state = None if txn_id is None else TransactionalState(txn_id=txn_id)
        self._client.send_bytes(
            frame(
                Transfer(
                    handle=handle,
                    delivery_id=number,
                    tag=b"%d" % number,
                    payload=payload,
                    state=state,
                )
            )
        )
        return number

    async def put_all(self, handle: int, payloads: list[bytes], window: int) -> None:
        """Send messages and wait until all are settled.

        At most `window` are unsettled at a time, and no more are sent than the link has credit for.
        """
        for payload in payloads:
            await self.until(
                lambda: len(self._owed) < window and self._put[handle] < self._may_send[handle]
            )
            self.put(handle, payload)
        await self.until(self.owes_nothing)

    def owes_nothing(self) -> bool:
        """Return whether everything that was sent is settled."""
        return not self._owed

    def grant(self, handle: int, count: int) -> None:
        """Grant credit for `count` messages more; all credit granted before must be used up."""
        already = self._credit.get(handle, 0)
        self._credit[handle] = already + count
        self._client.send(
            flow(
                handle=handle,
                credit=count,
                delivery_count=already,
                next_incoming_id=self._got,
                next_outgoing_id=self._sent,
            )
        )

    async def taken(self, handle: int, count: int) -> list[int]:
        """Return the delivery-ids of `count` messages that have credit, once they are here."""
        given = self.given.setdefault(handle, [])
        await self.until(lambda: len(given) >= count)
        found, given[:] = given[:count], given[count:]
        return found

    async def take(self, handle: int, count: int) -> list[int]:
        """Grant credit for `count` messages more and return their delivery-ids."""
        self.grant(handle, count)
        return await self.taken(handle, count)

    def accept(self, numbers: list[int], txn_id: bytes | None = None) -> None:
        """Accept deliveries, one disposition each, within a transaction if `txn_id` is given."""
        for number in numbers:
            state = (
                ACCEPTED if txn_id is None else TransactionalState(txn_id=txn_id, outcome=ACCEPTED)
            )
            self._client.send_bytes(frame(Disposition(first=number, settled=True, state=state)))

    async def begin(self) -> bytes:
        number = self.put(COORDINATOR, declare())
        await self.until(lambda: number in self._states)
        state = self._states[number]
        assert isinstance(state, Declared)
        return state.txn_id

    async def end(self, txn_id: bytes, *, fail: bool) -> None:
        number = self.put(COORDINATOR, discharge(txn_id, fail=fail))
        await self.until(lambda: number in self._states)


class Numbers:
    """Makes the messages of all runs, each with a number and a body of its own."""

    def __init__(self, seed: int) -> None:
        self._next = 0
        self._draw: Final = random.Random(seed)

    def payloads(
        self, count: int, size: int, annotations: dict[str, object] | None = None
    ) -> list[bytes]:
        made = []
        for _ in range(count):
            body = b"%07d" % self._next + self._draw.randbytes(size)
            made.append(
                message(
                    body.replace(b"\x00\x53", b"\x00\x54"), durable=True, annotations=annotations
                )
            )
            self._next += 1
        return made


def coordinator() -> Attach:
    target = Coordinator(capabilities=["amqp:local-transactions"])
    return attach_sender(name="coordinator", handle=COORDINATOR, target=target)


def durable(name: str, address: str, handle: int) -> Attach:
    """Return the attach of a durable subscriber."""
    source = Source(
        address=address,
        durable=UNSETTLED_STATE,
        expiry_policy=NEVER,
        capabilities=[TOPIC],
    )
    return attach_receiver(name=name, handle=handle, source=source, target=Target())


class Workload:
    """Several jobs at once against the broker at `port`; `size` scales their messages."""

    def __init__(self, port: int, numbers: Numbers, *, size: int) -> None:
        self._port: Final = port
        self._numbers: Final = numbers
        self._size: Final = size

    async def run(self, run: int, now_ms: int) -> None:
        """Run all jobs to their end."""
        async with asyncio.TaskGroup() as jobs:
            jobs.create_task(self._queues(f"queues{run}"))
            jobs.create_task(self._quick(f"quick{run}"))
            jobs.create_task(self._transactions(f"transactions{run}", run))
            jobs.create_task(self._topic(run))
            jobs.create_task(self._delays(f"delays{run}", now_ms))
            jobs.create_task(self._large(f"large{run}"))

    async def _queues(self, name: str) -> None:
        """Send with one client; acknowledge half of the messages with another, a little later."""
        async with SocketClient(self._port) as first, SocketClient(self._port) as second:
            sender, receiver = Party(first), Party(second)
            await sender.enter(name)
            await receiver.enter(name + "-out")
            await sender.attach(attach_sender("q"))
            await receiver.attach(attach_receiver("q", name="q", handle=LINKS))
            for size in (1, 3, 10, 30):
                payloads = self._numbers.payloads(size * self._size, 300)
                await sender.put_all(0, payloads, size)
                taken = await receiver.take(LINKS, size * self._size // 2)
                receiver.accept(taken)

    async def _quick(self, name: str) -> None:
        """Consume each message at once, and acknowledge it before it may have been stored."""
        async with SocketClient(self._port) as first, SocketClient(self._port) as second:
            sender, receiver = Party(first), Party(second)
            await sender.enter(name)
            await receiver.enter(name + "-out")
            await sender.attach(attach_sender("w"))
            await receiver.attach(attach_receiver("w", name="w", handle=LINKS))
            for _ in range(self._size):
                receiver.grant(LINKS, 5)
                for payload in self._numbers.payloads(5, 300):
                    sender.put(0, payload)
                receiver.accept(await receiver.taken(LINKS, 5))
                await sender.until(sender.owes_nothing)

    async def _transactions(self, name: str, run: int) -> None:
        """Send three messages, retire two in each transaction; roll some back, leave one open."""
        async with SocketClient(self._port) as socket:
            party = Party(socket)
            await party.enter(name)
            await party.attach(coordinator())
            source = f"t{run}"
            await party.attach(attach_sender(source, name="in"))
            await party.attach(attach_sender("u", name="first", handle=1))
            await party.attach(attach_sender("v", name="second", handle=2))
            await party.attach(attach_receiver(source, name=source, handle=LINKS))
            await party.put_all(0, self._numbers.payloads(4 * self._size, 200), 8)
            for turn in range(self._size):
                txn_id = await party.begin()
                taken = await party.take(LINKS, 2)
                for at, payload in enumerate(self._numbers.payloads(3, 400)):
                    party.put(1 + at % 2, payload, txn_id)
                party.accept(taken, txn_id)
                if turn % 4 != 3:
                    await party.end(txn_id, fail=False)
                else:
                    await party.end(txn_id, fail=True)
            left = await party.begin()
            party.put(1, self._numbers.payloads(1, 100)[0], left)
            await party.take(LINKS, 1)

    async def _topic(self, run: int) -> None:
        """Publish to three subscriptions, which share bodies; drain one, and end another."""
        async with SocketClient(self._port) as first, SocketClient(self._port) as second:
            sender, receiver = Party(first), Party(second)
            await receiver.enter("reader")
            for at, name in enumerate(("one", "two", f"three{run}")):
                await receiver.attach(durable(name, "news", LINKS + at))
            await sender.enter(f"press{run}")
            await sender.attach(attach_sender("news", kind=TOPIC))
            count = 3 * self._size
            await sender.put_all(0, self._numbers.payloads(count, 700), 5)
            receiver.accept(await receiver.take(LINKS, count))
            receiver.accept((await receiver.take(LINKS + 1, count))[::2])
            await receiver.detach(LINKS + 2, closed=True)
            await sender.put_all(0, self._numbers.payloads(self._size, 700), 5)

    async def _delays(self, name: str, now_ms: int) -> None:
        """Send messages due after a day, and others due after 300 ms."""
        async with SocketClient(self._port) as socket:
            party = Party(socket)
            await party.enter(name)
            await party.attach(attach_sender("later"))
            for due_ms in (now_ms + 86_400_000, now_ms + 300):
                annotations: dict[str, object] = {"x-opt-delivery-time": due_ms}
                await party.put_all(0, self._numbers.payloads(self._size, 150, annotations), 4)

    async def _large(self, name: str) -> None:
        """Send enough bytes for the log to be written back to the database and to begin anew."""
        async with SocketClient(self._port) as socket:
            party = Party(socket)
            await party.enter(name)
            await party.attach(attach_sender("large"))
            await party.attach(attach_receiver("large", name="large", handle=LINKS))
            for _ in range(self._size):
                await party.put_all(0, self._numbers.payloads(8, 100_000), 3)
                party.accept(await party.take(LINKS, 8))
            await party.put_all(0, self._numbers.payloads(2, 100_000), 3)
