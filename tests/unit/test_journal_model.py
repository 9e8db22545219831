"""Random work on a store whose commits end at any time: is every moment safe for a kill?

A small model knows where each message may be. After every step it checks what a kill would leave:
each accepted message is on the disk, or was consumed by all its consumers, and a message that may
be delivered again is marked so.
"""

import asyncio
import random
from contextlib import suppress
from typing import Final

import pytest

from broker.journal import Waiter
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from broker.routing.topics.binding import Binding
from broker.routing.transaction import Retirement, Transaction
from storage.batch import Batch
from tests.support.broker import Broker
from tests.support.parties import RecordingConsumer
from tests.support.routing import new_message
from tests.support.stores import GatedStore

HOUR_US: Final = 3_600_000_000
"""The hold, an hour in µs: no timer of the loop fires, the test advances the time."""

MINUTE_MS: Final = 60_000

Copy = tuple[bytes, str]
"""A message, and the queue that has it."""

PLAIN: Final = "q"
DURABLE: Final = "/queue/durable/d"
DEFERRED: Final = "deferred"
LETTERS: Final = "DLQ"
SUBSCRIBED: Final = ("s1", "s2")


class Disk(GatedStore):
    """A store that knows what a kill would leave: `has`, by number; `had` has all past numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.has: dict[int, Copy] = {}
        self.had: set[int] = set()
        self.positions: dict[int, int] = {}
        self.delivered_up_to: dict[str, int] = {}
        self.is_busy = False

    async def commit(self, batch: Batch) -> None:
        self.is_busy = True
        await super().commit(batch)
        for message in batch.appended:
            if message is not None:
                number = int(message.number)
                assert number not in self.had, "written twice"
                self.had.add(number)
                self.positions[number] = int(message.position)
                self.has[number] = (message.encoded, message.queue)
        self.delivered_up_to.update(batch.delivered)
        for number in batch.removed:
            self.has.pop(number, None)


class Sender(Waiter):
    """A waiter that notes that its message was accepted."""

    def __init__(self, name: bytes, told: list[bytes]) -> None:
        self._name = name
        self._told = told

    def committed(self) -> None:
        assert self._name not in self._told, "told twice"
        self._told.append(self._name)


class Committer(Waiter):
    """A waiter that notes that a transaction's outcomes for these messages are durable."""

    def __init__(self, retired: list[Copy], counted: set[Copy]) -> None:
        self._retired = retired
        self._counted = counted

    def committed(self) -> None:
        self._counted.update(self._retired)


class Reader(RecordingConsumer):
    """A consumer with unlimited credit; `early` are entries it got before they were on the disk."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(credit=1_000_000)
        self._disk = disk
        self.early: list[QueueEntry] = []
        self.got: set[int] = set()

    def deliver(self, entry: QueueEntry) -> None:
        self.got.add(int(entry.stored_number))
        if int(entry.stored_number) not in self._disk.had:
            self.early.append(entry)
        super().deliver(entry)


class World:
    """A broker's routing and journal, and the model of the work done with them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.disk = Disk()
        deferred = AddressPolicy(deliver_before_commit=False)
        self.broker = Broker(store=self.disk, hold_us=HOUR_US, patterns=[(DEFERRED, deferred)])
        self.journal = self.broker.journal
        self.running = asyncio.create_task(self.journal.run(self.broker.container.run_round))
        self.readers = {name: Reader(self.disk) for name in (PLAIN, DURABLE, DEFERRED, LETTERS)}
        self.topic = self.broker.router.resolve(
            self.broker.router.parse("t", "topic"), self.journal.batch
        )
        for name in SUBSCRIBED:
            self.readers[name] = Reader(self.disk)
        for name, reader in self.readers.items():
            queue = self.queue(name)
            queue.attach_consumer(reader)
            queue.consumer_ready(reader, drain=False)
            if name in SUBSCRIBED:
                self.topic.bind(Binding(queue))  # type: ignore[attr-defined] # it is a topic
        self.sent: dict[bytes, tuple[str, ...]] = {}
        self.transacted: set[bytes] = set()
        self.told: list[bytes] = []
        self.consumed: set[Copy] = set()
        self.moved: set[Copy] = set()

    def queue(self, name: str) -> Queue:
        node = self.broker.router.resolve(
            self.broker.router.parse(name, "queue"), self.journal.batch
        )
        assert isinstance(node, Queue)
        return node

    def node(self, name: str) -> Node:
        return self.topic if name == "t" else self.queue(name)

    # -- steps

    def new_name(self, where: str) -> bytes:
        name = b"%d" % len(self.sent)
        self.sent[name] = SUBSCRIBED if where == "t" else (where,)
        return name

    def publish(self) -> None:
        where = self.random.choice([PLAIN] * 12 + ["t"] * 6 + [DURABLE, DEFERRED])
        name = self.new_name(where)
        for queue in self.sent[name]:
            backlog = self.queue(queue).backlogs.by_priority[4]
            if backlog is not None:  # as if many other messages had been in the queue
                backlog.next_position += self.random.choice([0, 0, 0, 2000, 12_000])
        self.node(where).put(new_message(name, durable=True), self.journal.batch)
        self.journal.submit_receipt(Sender(name, self.told))

    def taken(self) -> QueueEntry | None:
        """Take an entry from a random reader, mostly its oldest; None if no reader holds any."""
        readers = [reader for reader in self.readers.values() if reader.entries]
        if not readers:
            return None
        entries = self.random.choice(readers).entries
        at = 0 if self.random.random() < 0.8 else self.random.randrange(len(entries))
        return entries.pop(at)

    def settle(self) -> None:
        entry = self.taken()
        if entry is not None:
            self.consumed.add(copy_of(entry))
            entry.queue.accept(entry, self.journal.batch)

    def give_back(self) -> None:
        entry = self.taken()
        if entry is not None:
            entry.queue.dispose(entry, Disposal.COUNT, self.journal.batch)

    def move(self) -> None:
        """Dead-letter an entry that a reader holds."""
        entry = self.taken()
        if entry is None:
            return
        if entry.queue.address == LETTERS:
            self.consumed.add(copy_of(entry))  # dropped: no other node can take it
        else:
            self.moved.add(copy_of(entry))
        entry.queue.dispose(entry, Disposal.DEAD_LETTER, self.journal.batch)

    def transact(self) -> None:
        """Commit a transaction of up to two messages and two acknowledgements."""
        work = Transaction(self.broker.router, operations_max=0, bytes_max=0)
        for _ in range(self.random.randrange(3)):
            where = self.random.choice([PLAIN, "t"])
            name = self.new_name(where)
            self.transacted.add(name)
            work.post(self.node(where), new_message(name, durable=True), 1)
        retired: list[Copy] = []
        for _ in range(self.random.randrange(3)):
            entry = self.taken()
            if entry is not None:
                retired.append(copy_of(entry))
                work.retire(Retirement(entry, Disposal.REMOVE))
        work.commit(self.journal.batch)
        self.journal.submit(Committer(retired, self.consumed))

    def pass_time(self) -> None:
        self.broker.clock.advance(self.random.choice([1, 1, 2, 5, 35]) * MINUTE_MS)
        self.journal.tick()

    def let_through(self) -> None:
        if self.disk.is_busy:
            self.disk.is_busy = False
            self.disk.let_through()

    async def step(self) -> None:
        work = [self.publish] * 16 + [self.settle] * 24 + [self.pass_time] * 3
        work += [self.let_through] * 4 + [self.transact, self.move, self.give_back]
        self.random.choice(work)()
        if self.random.random() < 0.8:
            self.broker.container.run_round()
        if self.random.random() < 0.8:
            await go_on()

    # -- invariants

    def is_safe(self, copy: Copy, disk: set[Copy]) -> bool:
        """Return whether a kill now leaves `copy` on the disk, consumed or dead-lettered."""
        if copy in disk or copy in self.consumed:
            return True
        return copy in self.moved and self.is_safe((copy[0], LETTERS), disk)

    def check(self) -> None:
        """Check that a kill now would lose no accepted message, and repeat none without a mark."""
        disk = set(self.disk.has.values())
        for name in self.told:
            for queue in self.sent[name]:
                assert self.is_safe((name, queue), disk), f"{name!r} was accepted, {queue} lost it"
        for queue, reader in self.readers.items():
            for entry in reader.early:
                assert queue in (PLAIN, *SUBSCRIBED), f"{queue} delivers before the commit"
                assert entry.message.encoded not in self.transacted, "of a transaction, too early"
            reader.early.clear()
            for number in reader.got & self.disk.has.keys():
                told = self.disk.delivered_up_to.get(queue, -1)
                assert self.disk.positions[number] <= told, "a kill would deliver it again, unsaid"

    async def finish(self) -> None:
        """Write everything; check that only messages which are not consumed are on the disk."""
        self.journal.close()
        while not self.running.done():
            await go_on()
            self.let_through()
        await self.running
        self.check()
        plain = [name for name in self.sent if name not in self.transacted]
        assert sorted(self.told) == sorted(plain), "everybody is told in the end"
        left = [copy_of(entry) for reader in self.readers.values() for entry in reader.entries]
        assert sorted(self.disk.has.values()) == sorted(left)


def copy_of(entry: QueueEntry) -> Copy:
    return entry.message.encoded, entry.queue.address


async def go_on() -> None:
    """Let the journal run until it waits."""
    for _ in range(4):
        await asyncio.sleep(0)


@pytest.mark.requirement("PRD-03", "RCV-06", "RCV-08", "DST-11")
@pytest.mark.parametrize("seed", range(40))
async def test_a_kill_at_any_moment_loses_nothing_that_was_accepted(seed: int) -> None:
    world = World(seed)
    try:
        for _ in range(400):
            await world.step()
            world.check()
        await world.finish()
    finally:
        world.running.cancel()
        with suppress(asyncio.CancelledError):
            await world.running
    written, numbers = len(world.disk.had), world.broker.router.context.next_stored_number() - 1
    assert 10 < written < numbers - 2, "many were written, and some never were"
