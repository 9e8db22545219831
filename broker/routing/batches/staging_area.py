"""All stages, by the queries whose batches they are for; commits, and what is never committed.

A query commits its batches in ascending order, each once: how far it has come is remembered for
as long as its sink is, so that a batch that is done again is found to have been.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import Message, Origin
from broker.routing.addresses.address import Address
from broker.routing.addresses.durability import canonical
from broker.routing.batches.staged_transaction import StagedTransaction, Task
from broker.routing.errors import InvalidAddress, LimitReached, NoSuchNode, NotAsSent
from broker.routing.queues.node import TOPIC, Node
from broker.routing.timer_queue import TimerCallback
from storage.batch import DISCHARGE, Batch
from storage.stages import PLACES, StoredSink, StoredStage

if TYPE_CHECKING:
    from broker.routing.router import Router

STAGES_MAX: Final[i64] = 10_000
"""At a time, of all queries: each is an object and, once it has a message, a row."""

SINKS_MAX: Final[i64] = 10_000
"""Queries that are remembered, for as long as nobody says FORGET: their names come from peers."""

BATCH_MESSAGES_MAX: Final[i64] = 1_000_000
BATCH_BYTES_MAX: Final[i64] = 512 * 1024 * 1024
"""Staged for one batch of a query, all attempts together: a commit has them in memory at once."""

NOTHING_COMMITTED: Final[i64] = -1
"""How far a query has come that has not committed a batch."""

NO_RETENTION: Final[i64] = 0

LOOK_EVERY_MS: Final[i64] = 60_000
"""So late stages may go, at most, that nobody has committed."""

NOT_AS_SENT: Final = (
    "nothing is committed. Others came since, or some were dropped (ABORT, FORGET, the deletion of "
    "a queue, stage_retention_s) or are damaged (`jms-broker store quarantined`): ABORT the batch, "
    "and do it again with new attempts"
)

Key = tuple[int, int, int, str, str]
"""batch, partition, attempt, kind, address"""


@final
class Tally:
    """What is staged for one batch."""

    def __init__(self) -> None:
        self.messages: i64 = 0
        self.bytes: i64 = 0


@final
class Sink:
    """One query: its stages, and the last `batch` that was committed, at `at_ms` wall time."""

    def __init__(self, home: StagingArea, query: str) -> None:
        self.query: Final = query
        self.router: Final = home.router
        self.batch: i64 = NOTHING_COMMITTED
        self.at_ms: i64 = 0
        self.stages: Final[dict[Key, StagedTransaction]] = {}
        self._tallies: Final[dict[int, Tally]] = {}
        self._home: Final = home

    def check_batch(self, task: Task, message: Message) -> None:
        """Raise LimitReached where one more message is too much for a batch."""
        tally = self._tallies.get(int(task.batch))
        messages: i64 = 0
        size = message.size
        if tally is not None:
            messages = tally.messages
            size += tally.bytes
        if messages >= self._home.batch_messages_max:
            raise LimitReached(
                f"{self._home.batch_messages_max} messages are staged for batch {task.batch} of"
                f" {self.query}: a batch has no more"
            )
        if size > self._home.batch_bytes_max:
            raise LimitReached(
                f"batch {task.batch} of {self.query} has at most {self._home.batch_bytes_max}"
                " bytes in its stages"
            )

    def counted(self, batch: i64, *, messages: i64, size: i64) -> None:
        """So much has come for a batch, or gone."""
        tally = self._tallies.get(int(batch))
        if tally is None:
            tally = self._tallies[int(batch)] = Tally()
        tally.messages += messages
        tally.bytes += size
        self._home.bytes += size
        if tally.messages == 0:
            del self._tallies[int(batch)]

    def messages(self) -> i64:
        """How many messages are staged."""
        messages: i64 = 0
        for tally in self._tallies.values():
            messages += tally.messages
        return messages

    def bytes(self) -> i64:
        """How many bytes they have."""
        size: i64 = 0
        for tally in self._tallies.values():
            size += tally.bytes
        return size

    def staged_at_ms(self) -> i64:
        """When the oldest of them came, 0 where there is none."""
        oldest: i64 = 0
        for stage in self.stages.values():
            if stage.numbers and (oldest == 0 or stage.begun_ms < oldest):
                oldest = stage.begun_ms
        return oldest

    def of_tasks(self, batch: i64) -> dict[tuple[int, int], list[StagedTransaction]]:
        """The stages of a batch that have something, by partition and attempt, then as begun."""
        found: dict[tuple[int, int], list[StagedTransaction]] = {}
        for stage in self.stages.values():
            task = stage.task
            if task.batch == batch and stage.numbers:
                found.setdefault((int(task.partition), int(task.attempt)), []).append(stage)
        return found

    def up_to(self, batch: i64) -> list[StagedTransaction]:
        """The stages of that batch and of those before it."""
        return [stage for stage in self.stages.values() if stage.task.batch <= batch]

    def filled(self, target: Node) -> None:
        """What is staged for `target` is all that it may hold."""
        self._home.filled(target)

    def forget(self, stage: StagedTransaction) -> None:
        """`stage` has nothing, and nobody sends to it."""
        self._home.forget(self, stage)

    def drop(self, stage: StagedTransaction, batch: Batch) -> None:
        """`stage` ends with everything in it."""
        self._home.forget(self, stage)
        stage.end(batch)


@final
class StagingArea(TimerCallback):
    """The sinks of one broker. `is_due`: it is time to look for stages that are too old.

    `bytes` are staged in all: the commits will write them once more.
    """

    def __init__(
        self,
        router: Router,
        *,
        retention_ms: i64 = NO_RETENTION,
        stages_max: i64 = STAGES_MAX,
        sinks_max: i64 = SINKS_MAX,
        batch_messages_max: i64 = BATCH_MESSAGES_MAX,
        batch_bytes_max: i64 = BATCH_BYTES_MAX,
    ) -> None:
        self.router: Final = router
        self.batch_messages_max: Final[i64] = batch_messages_max
        self.batch_bytes_max: Final[i64] = batch_bytes_max
        self.sinks: Final[dict[str, Sink]] = {}
        self.is_due = False
        self.bytes: i64 = 0
        self._retention_ms: Final[i64] = retention_ms
        self._stages_max: Final[i64] = stages_max
        self._sinks_max: Final[i64] = sinks_max
        self._by_number: Final[dict[int, StagedTransaction]] = {}
        self._last_number: i64 = 0
        self._is_set = False

    def messages(self) -> i64:
        """Return how many messages are staged in all."""
        count: i64 = 0
        for stage in self._by_number.values():
            count += stage.messages()
        return count

    # -- senders

    def check(self, task: Task, target: Node, given: str) -> None:
        """Raise what stands against a stage of `task` for `target`; nothing is begun."""
        if target.is_temporary():
            raise InvalidAddress(f"{target.address} is temporary: it may end before its stage does")
        self.check_sink(task.query)
        sink = self.sinks.get(task.query)
        if sink is not None and _key(task, target, given) in sink.stages:
            return
        if i64(len(self._by_number)) >= self._stages_max:
            raise LimitReached(f"the broker has its {self._stages_max} stages")

    def check_sink(self, query: str) -> None:
        """Raise LimitReached where there is no room for a sink that is new."""
        if query not in self.sinks and i64(len(self.sinks)) >= self._sinks_max:
            raise LimitReached(f"the broker remembers its {self._sinks_max} sinks")

    def begin(self, task: Task, target: Node, given: str, *, origin: Origin) -> StagedTransaction:
        """The stage of `task` for `target`, begun where there is none. Checked before."""
        sink = self.sinks.get(task.query)
        if sink is None:
            sink = self.sinks[task.query] = Sink(self, task.query)
        found = sink.stages.get(_key(task, target, given))
        if found is not None:
            return found
        self._last_number += 1
        now_ms = self.router.clock.wall_ms()
        stage = StagedTransaction(
            sink,
            task,
            target,
            number=self._last_number,
            given=given,
            origin=origin,
            begun_ms=now_ms,
        )
        self._add(sink, stage)
        return stage

    def _add(self, sink: Sink, stage: StagedTransaction) -> None:
        sink.stages[_key(stage.task, stage.target, stage.given)] = stage
        self._by_number[int(stage.number)] = stage
        self._look_later()

    def forget(self, sink: Sink, stage: StagedTransaction) -> None:
        """`stage` is none of the sink's any more, and the sink goes if it has nothing else."""
        if self._by_number.pop(int(stage.number), None) is None:
            return
        del sink.stages[_key(stage.task, stage.target, stage.given)]
        if not sink.stages and sink.batch == NOTHING_COMMITTED:
            self.sinks.pop(sink.query, None)

    def filled(self, target: Node) -> None:
        """Let those who wait for room in `target` send one message each: it is refused."""
        for stage in self._by_number.values():
            if stage.target is target and stage.credit_pool is not None:
                for producer in stage.producers:
                    stage.give_credit(producer, stage.credit_pool)

    def target_gone(self, target: Node, batch: Batch) -> None:
        """`target` is being deleted, and with it all that is staged for it."""
        for stage in list(self._by_number.values()):
            if stage.target is target:
                stage.delete(batch)

    # -- sinks

    def is_committed(self, query: str, number: i64) -> bool:
        """Whether that batch of the query has been committed, or a later one."""
        sink = self.sinks.get(query)
        return sink is not None and number <= sink.batch

    def choose(
        self, query: str, number: i64, tasks: list[tuple[int, int, int]]
    ) -> list[StagedTransaction]:
        """The stages that these tasks (partition, attempt, count) have for a batch, in their order.

        From now on they take no more messages. NotAsSent where those of a task have not the
        `count` messages that it sent; then nothing has changed.
        """
        sink = self.sinks.get(query)
        there = {} if sink is None else sink.of_tasks(number)
        chosen: list[StagedTransaction] = []
        for partition, attempt, count in sorted(tasks):
            found = there.get((partition, attempt), [])
            staged = sum(len(stage.numbers) for stage in found)
            if staged != count:
                task = Task(query=query, batch=number, partition=partition, attempt=attempt)
                raise NotAsSent(f"{task} sent {count} messages, {staged} are staged: {NOT_AS_SENT}")
            chosen += found
        for stage in chosen:
            stage.sealed = True
        return chosen

    def commit(
        self,
        query: str,
        number: i64,
        chosen: list[StagedTransaction],
        *,
        found: list[list[Message]],
        batch: Batch,
    ) -> None:
        """Let the targets have what is in these stages, at one moment; all other attempts end.

        `found` are all messages of each. NoSuchNode where a stage has ended meanwhile, then
        nothing has changed.
        """
        for stage in chosen:
            if stage.is_over:
                raise NoSuchNode(f"the stage of {stage.task} has ended meanwhile")
        sink = self.sinks.get(query)
        if sink is None:
            sink = self.sinks[query] = Sink(self, query)
        sink.batch = number
        sink.at_ms = self.router.clock.wall_ms()
        kept = StoredSink(query=query, batch=number, at_ms=sink.at_ms)
        batch.stage_changes().keep(kept)
        scope, batch.scope, batch.stores_all = batch.scope, DISCHARGE, True
        for index, stage in enumerate(chosen):
            self.forget(sink, stage)
            stage.commit(found[index], batch)
        batch.scope, batch.stores_all = scope, False
        self.drop_up_to(query, number, batch)

    def drop_up_to(self, query: str, number: i64, batch: Batch) -> i64:
        """End the stages of that batch and of those before; how many messages were in them."""
        sink = self.sinks.get(query)
        return 0 if sink is None else self._drop(sink.up_to(number), batch)

    def abort(self, query: str, number: i64, batch: Batch) -> i64:
        """End the stages of one batch; how many messages were in them. NoSuchNode for no sink."""
        sink = self._found(query)
        return self._drop([each for each in sink.up_to(number) if each.task.batch == number], batch)

    def end(self, query: str, batch: Batch) -> i64:
        """Forget a sink: its stages, and how far it has come. NoSuchNode for none."""
        sink = self._found(query)
        dropped = self._drop(list(sink.stages.values()), batch)
        self.sinks.pop(query, None)
        batch.stage_changes().forget(query)
        return dropped

    def _found(self, query: str) -> Sink:
        sink = self.sinks.get(query)
        if sink is None:
            raise NoSuchNode(f"no sink {query}")
        return sink

    def _drop(self, stages: list[StagedTransaction], batch: Batch) -> i64:
        dropped: i64 = 0
        for stage in stages:
            dropped += stage.messages()
            stage.delete(batch)
        return dropped

    # -- what nobody commits

    def _look_later(self) -> None:
        if self._retention_ms == NO_RETENTION or self._is_set:
            return
        self._is_set = True
        self.router.timer_queue.at(
            self.router.clock.now_ms() + min(LOOK_EVERY_MS, self._retention_ms), self
        )

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - twice a look is once
        self._is_set = False
        self.is_due = True

    def collect(self, batch: Batch) -> None:
        """End attempts that send no more, and of which nothing has come for as long as is kept."""
        self.is_due = False
        oldest = self.router.clock.wall_ms() - self._retention_ms
        tasks: dict[tuple[str, int, int, int], list[StagedTransaction]] = {}
        for stage in self._by_number.values():
            tasks.setdefault(stage.task.key(), []).append(stage)
        for stages in tasks.values():
            if all(not stage.producers and stage.latest_ms <= oldest for stage in stages):
                for stage in stages:
                    self.router.notices.append(
                        f"the stage of {stage.task} for {stage.address} was never committed:"
                        f" {stage.messages()} messages dropped"
                    )
                    stage.delete(batch)
        if self._by_number:
            self._look_later()

    # -- a start

    def bring_back_sink(self, stored: StoredSink) -> None:
        """How far a query has come."""
        sink = self.sinks[stored.query] = Sink(self, stored.query)
        sink.batch = stored.batch
        sink.at_ms = stored.at_ms

    def bring_back(self, stored: StoredStage, batch: Batch) -> None:
        """A stage that the store has; it ends where its target is not there any more."""
        self._last_number = max(self._last_number, stored.number)
        # as text: a stage whose prefix meant another kind at its time is still found
        address = Address(canonical(self.router.prefixes.strip(stored.address)), stored.kind)
        target = self._target(address)
        if target is None:
            batch.stage_changes().remove(stored.number)
            return
        sink = self.sinks.get(stored.query)
        if sink is None:
            sink = self.sinks[stored.query] = Sink(self, stored.query)
        task = Task(
            query=stored.query,
            batch=stored.batch,
            partition=stored.partition,
            attempt=stored.attempt,
        )
        key = self.router.publishing_key(address, target)
        stage = StagedTransaction(
            sink,
            task,
            target,
            number=stored.number,
            given=stored.address,
            origin=Origin(stored.publisher, key),
            begun_ms=stored.begun_ms,
        )
        self._add(sink, stage)

    def _target(self, address: Address) -> Node | None:
        found = self.router.find(address)
        if found is None and address.kind == TOPIC:
            found = self.router.topics.get(address.name)
        return found

    def place(self, number: i64, place: i64, *, size: i64, batch: Batch) -> None:
        """A message of a stage that the store has; those of one stage come in their order."""
        stage = self._by_number.get(int(place // PLACES))
        if stage is None:
            batch.remove(number)
        else:
            stage.count(number, size)


def _key(task: Task, target: Node, given: str) -> Key:
    return int(task.batch), int(task.partition), int(task.attempt), target.kind, given
