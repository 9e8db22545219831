"""The sink of a simulated run: a task stages durable messages, and a driver commits them.

Both ask the router itself, as `simulation_leases.py` does. What is staged is seen by no consumer;
what is committed is in its queue, also after a restart, and in no stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.amqp.sections import split
from broker.message import NOWHERE, read_message
from broker.routing.addresses.address import Address
from broker.routing.batches.staged_transaction import StagedTransaction, Task
from broker.routing.queues.node import QUEUE
from storage.stages import STAGED
from tests.scenario.simulation_leases import Confirmed
from tests.scenario.simulation_records import Message, Wrong
from tests.support.frames import message
from tests.support.stored import stored_messages

if TYPE_CHECKING:
    from tests.scenario.simulation_world import World

QUERY: Final = "o"


class SinkProgram:
    """The sink: `durable` messages are staged for `batch`, whose commit is not noted yet.

    `committed` is the last batch whose commit is confirmed.
    """

    def __init__(self, world: World) -> None:
        self._world: Final = world
        self._stage: StagedTransaction | None = None
        self._staged: list[int] = []
        self.durable: list[int] = []
        self.address = ""
        self.batch = 0
        self.committed = -1

    def stage(self, address: str, count: int) -> None:
        """Stage `count` new messages; all of a batch are for the address of its first one."""
        world = self._world
        router, journal = world.broker.router, world.broker.journal
        if self._stage is None:
            self.address = address
            world.model.node("queue", address)
            target = router.resolve(Address(address, QUEUE), journal.batch)
            task = Task(query=QUERY, batch=self.batch, partition=0, attempt=0)
            self._stage = router.staging_area.begin(task, target, address, origin=NOWHERE)
        numbers = [self._put(self._stage) for _ in range(count)]
        self._staged += numbers
        durable = self.durable
        journal.submit(Confirmed(lambda: durable.extend(numbers)))
        self._go_on()

    def _put(self, stage: StagedTransaction) -> int:
        world = self._world
        number = len(world.sent)
        payload = message(b"#message%06d" % number, durable=True)
        bare = message(b"#message%06d" % number)
        record = Message(id=number, bare=bare, size=len(bare), durable=True)
        world.note_sent(record, payload, self.address)
        sections = split(payload, 0, len(payload))
        read = read_message(sections, payload, world.broker.clock, arrived_ms=world.model.now)
        stage.put(read, world.broker.journal.batch)
        return number

    def commit(self) -> None:
        """Commit the batch, once the store has all of it."""
        stage, world = self._stage, self._world
        if stage is None or len(self.durable) < len(self._staged):
            return
        area, journal = world.broker.router.staging_area, world.broker.journal
        chosen = area.choose(QUERY, self.batch, [(0, 0, len(self._staged))])
        stored = world.run(world.store.load(list(stage.numbers)))
        area.begin_commit(QUERY, self.batch, chosen, batch=journal.batch)
        area.publish(stage, [stage.read(each) for each in stored], journal.batch)
        stage.end(journal.batch)
        node, number = world.model.node("queue", self.address), self.batch
        records = [world.sent[each].message for each in self._staged]
        for record in records:
            world.model.put(node, record)

        def confirm() -> None:
            self.committed = number
            for record in records:
                world.promised(node, record)

        journal.submit(Confirmed(confirm))
        self._begin(number + 1)
        self._go_on()

    def _begin(self, batch: int) -> None:
        self._stage, self._staged, self.durable = None, [], []
        self.batch = batch

    def _go_on(self) -> None:
        self._world.container.run_round()
        self._world.look()

    def end(self) -> None:
        """Forget the sink, with what it has staged."""
        area, journal = self._world.broker.router.staging_area, self._world.broker.journal
        if QUERY in area.sinks:
            for stage in area.take_all(QUERY, journal.batch):
                stage.end(journal.batch)
        self._begin(self.batch)
        self._go_on()

    def come_back(self, earlier: SinkProgram) -> None:
        """Check the stages of the store, and go on with them."""
        world = self._world
        sink = world.broker.router.staging_area.sinks.get(QUERY)
        done = -1 if sink is None else int(sink.batch)
        if done < earlier.committed:
            raise Wrong(f"batch {earlier.committed} of the sink was committed, the last is {done}")
        kept = world.run(stored_messages(world.store, STAGED))
        numbers = [int(each.encoded[each.encoded.index(b"#message") + 8 :][:6]) for each in kept]
        is_pending = done < earlier.batch
        if is_pending and numbers[: len(earlier.durable)] != earlier.durable:
            raise Wrong(f"{numbers} are staged, not {earlier.durable}")
        self.committed, self.batch, self.address = done, done + 1, earlier.address
        if sink is not None and numbers:
            (self._stage,) = sink.stages.values()
            self.batch = int(self._stage.task.batch)
            self.address = self._stage.address
            self._staged, self.durable = numbers, list(numbers)
