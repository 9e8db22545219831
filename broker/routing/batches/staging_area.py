"""All stages of a broker, by their query: commits, and the end of those never committed.

A query commits its batches in ascending order, each once. The last batch that it committed is
remembered for as long as its sink is, so that the repetition of a batch is detected.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.log_events import STAGE_DROPPED
from broker.message import Message, Origin
from broker.routing.addresses.address import Address
from broker.routing.addresses.durability import canonical
from broker.routing.batches.attempt import Attempt
from broker.routing.batches.sink import NOTHING_COMMITTED, Sink, key_of
from broker.routing.batches.staged_transaction import (
    KEPT_MAX,
    CutMessages,
    StagedTransaction,
    Task,
)
from broker.routing.errors import InvalidAddress, LimitReached, NoSuchNode, NotAsSent
from broker.routing.queues.node import TOPIC, Node
from broker.routing.timer_queue import TimerCallback
from storage.batch import DISCHARGE, Batch
from storage.stages import PLACES, StoredSink, StoredStage

if TYPE_CHECKING:
    from broker.routing.router import Router

STAGES_MAX: Final[i64] = 10_000
"""Maximum stages at a time, of all queries: each is an object and, once it has a message, a row."""

SINKS_MAX: Final[i64] = 10_000
"""Maximum queries that are remembered, until a FORGET request: peers choose their names."""

BATCH_MESSAGES_MAX: Final[i64] = 1_000_000
BATCH_BYTES_MAX: Final[i64] = 512 * 1024 * 1024
"""Maximum messages, and their bytes, staged for one batch of a query, all attempts together: a
commit has them in memory at once."""

KEPT_BYTES_MAX: Final[i64] = 32 * 1024 * 1024
"""Maximum bytes of staged messages that are only in memory."""

NO_RETENTION: Final[i64] = 0

NUMBER_MAX: Final[i64] = 2**63 - 1
"""Higher than the number of any stored message."""

LOOK_EVERY_MS: Final[i64] = 60_000
"""Maximum delay in ms with which stages are dropped that were never committed."""

NOT_AS_SENT: Final = (
    "nothing is committed. Others came since, or some were dropped (ABORT, FORGET, the deletion of "
    "a queue, stage_retention_s) or are damaged (`jms-broker store quarantined`): ABORT the batch, "
    "and do it again with new attempts"
)


@final
class StagingArea(TimerCallback):
    """The sinks of one broker. `is_due`: it is time to look for stages that are too old.

    `bytes` are staged in all: the commits will write them once more. `kept_bytes` of them are only
    in memory, and `arrivals` have been since the start, as numbers of such messages.
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
        self.kept_bytes: i64 = 0
        self.arrivals: i64 = 0
        self._retention_ms: Final[i64] = retention_ms
        self._stages_max: Final[i64] = stages_max
        self._sinks_max: Final[i64] = sinks_max
        self._by_number: Final[dict[int, StagedTransaction]] = {}
        self._last_number: i64 = 0
        self._is_set = False

    def messages(self) -> i64:
        """Return the number of staged messages of all sinks."""
        count: i64 = 0
        for stage in self._by_number.values():
            count += stage.messages()
        return count

    # -- messages that are only in memory

    def take_room(self, size: i64) -> bool:
        """Take room in memory for a message of `size` bytes; return whether there is any."""
        if self.kept_bytes + size > KEPT_BYTES_MAX:
            return False
        self.kept_bytes += size
        return True

    def store_kept(self, batch: Batch) -> None:
        """Note all messages for the store that are only in memory: the broker is stopping."""
        for sink in self.sinks.values():
            for attempt in sink.attempts():
                attempt.store_kept(batch)

    def can_commit_at_once(
        self, query: str, number: i64, tasks: list[tuple[int, int, int]]
    ) -> bool:
        """Return whether batch `number` can be committed in one piece, from memory.

        That is so if its messages are there, there are few others to be dropped, and no other
        commit of the query is under way: commits must take effect in their order.
        """
        sink = self.sinks.get(query)
        if sink is None:
            return False
        left = KEPT_MAX
        for stage in sink.stages.values():
            if stage.sealed:
                return False
            if stage.task.batch <= number:
                left -= stage.messages()
        there = sink.of_tasks(number)
        for partition, attempt, _ in tasks:
            for stage in there.get((partition, attempt), []):
                if not stage.kept:
                    return False
        return left >= 0

    # -- senders

    def check(self, task: Task, target: Node, given: str) -> None:
        """Raise if no stage of `task` for `target` may be begun; begin none.

        InvalidAddress if the target is temporary, LimitReached if there are too many.
        """
        if target.is_temporary:
            raise InvalidAddress(f"{target.address} is temporary: it may end before its stage does")
        self.check_sink(task.query)
        sink = self.sinks.get(task.query)
        if sink is not None and key_of(task, target, given) in sink.stages:
            return
        if i64(len(self._by_number)) >= self._stages_max:
            raise LimitReached(f"the broker has its {self._stages_max} stages")

    def check_sink(self, query: str) -> None:
        """Raise LimitReached if `query` is new, and there is no room for another sink."""
        if query not in self.sinks and i64(len(self.sinks)) >= self._sinks_max:
            raise LimitReached(f"the broker remembers its {self._sinks_max} sinks")

    def owner_of(self, query: str) -> str | None:
        """Return the user to whom `query` belongs, None if it is nobody's."""
        sink = self.sinks.get(query)
        return None if sink is None else sink.owner

    def begin(
        self, task: Task, target: Node, given: str, *, origin: Origin, owner: str = ""
    ) -> StagedTransaction:
        """Return the stage of `task` for `target`, begun if there is none. Call `check` before.

        `owner` is the user that stages: the query becomes that user's if it is nobody's.
        """
        sink = self.sinks.get(task.query)
        if sink is None:
            sink = self.sinks[task.query] = Sink(self, task.query)
        if sink.owner is None:
            sink.owner = owner
        found = sink.stages.get(key_of(task, target, given))
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
        sink.add(stage)
        self._by_number[int(stage.number)] = stage
        self._look_later()

    def forget(self, sink: Sink, stage: StagedTransaction) -> None:
        """Remove `stage`; remove `sink` too if it has no other and has committed no batch."""
        if self._by_number.pop(int(stage.number), None) is None:
            return
        sink.remove(stage)
        if not sink.stages and sink.batch == NOTHING_COMMITTED:
            self.sinks.pop(sink.query, None)

    def filled(self, target: Node) -> None:
        """Let each producer that waits for room in `target` send one message: it is refused."""
        for stage in self._by_number.values():
            if stage.target is target and stage.credit_pool is not None:
                for producer in stage.producers:
                    stage.give_credit(producer, stage.credit_pool)

    def target_gone(self, target: Node, batch: Batch) -> None:
        """Drop all messages that are staged for `target`, which is being deleted."""
        for stage in list(self._by_number.values()):
            if stage.target is target:
                stage.delete(batch)

    # -- sinks

    def is_committed(self, query: str, number: i64) -> bool:
        """Return whether that batch of the query, or a later one, has been committed."""
        sink = self.sinks.get(query)
        return sink is not None and number <= sink.batch

    def choose(
        self, query: str, number: i64, tasks: list[tuple[int, int, int]]
    ) -> list[StagedTransaction]:
        """Return the stages of batch `number` for `tasks` (partition, attempt, count), in order.

        From now on they take no more messages. NotAsSent if those of a task do not have the
        `count` messages that it sent; then nothing has changed.
        """
        sink = self.sinks.get(query)
        there = {} if sink is None else sink.of_tasks(number)
        chosen: list[StagedTransaction] = []
        for partition, attempt, count in sorted(tasks):
            found = there.get((partition, attempt), [])
            staged = sum(stage.messages() for stage in found)
            if staged != count:
                task = Task(query=query, batch=number, partition=partition, attempt=attempt)
                raise NotAsSent(f"{task} sent {count} messages, {staged} are staged: {NOT_AS_SENT}")
            chosen += found
        for stage in chosen:
            stage.sealed = True
        return chosen

    def begin_commit(
        self, query: str, number: i64, chosen: list[StagedTransaction], *, batch: Batch
    ) -> None:
        """Note that the batch is committed, and take its stages, which `chosen` are, out of here.

        The caller publishes all of their messages, ends them, and drops all other attempts, with
        the same `batch`. NoSuchNode if a stage has ended meanwhile; then nothing has changed.
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
        for stage in chosen:
            self.forget(sink, stage)

    def publish(self, stage: StagedTransaction, messages: list[Message], batch: Batch) -> bool:
        """Publish the next `messages` of a stage that is being committed to its target.

        Return False, and publish nothing, if the target has been deleted.
        """
        if not self.router.has(stage.target):
            return False
        # consumers get the messages only once they are durable; even volatile ones are stored
        scope, batch.scope, batch.stores_all = batch.scope, DISCHARGE, True
        try:
            stage.commit(messages, batch)
        finally:
            batch.scope, batch.stores_all = scope, False
        return True

    def take_up_to(self, query: str, number: i64) -> list[StagedTransaction]:
        """Take the stages of that batch and of those before out of here; they get no messages.

        The caller ends them.
        """
        sink = self.sinks.get(query)
        if sink is None:
            return []
        return self._taken(sink, sink.up_to(number))

    def cut(self, task: Task, count: i64, batch: Batch) -> list[CutMessages]:
        """Keep the first `count` messages of an attempt, to all addresses together.

        Links that send for the attempt are detached, so that none of their messages comes later.
        Return the others, which the caller lets go with the same `batch`. NotAsSent if fewer are
        staged, NoSuchNode if they are being committed; then nothing has changed.
        """
        sink = self.sinks.get(task.query)
        attempt = Attempt() if sink is None else sink.attempt_of(task)
        found = list(attempt.stages.values())
        staged: i64 = 0
        for stage in found:
            staged += stage.messages()
        if any(stage.sealed for stage in found):
            raise NoSuchNode(f"the stage of {task} takes no more messages")
        if staged < count:
            raise NotAsSent(f"{task} sent {count} messages, {staged} are staged: {NOT_AS_SENT}")
        attempt.store_kept(batch)
        lowest = _lowest_of_latest(found, staged - count)
        return [stage.cut(lowest, batch) for stage in found]

    def take_batch(self, query: str, number: i64) -> list[StagedTransaction]:
        """Take the stages of one batch out of here, which the caller ends. NoSuchNode: no sink."""
        sink = self._found(query)
        return self._taken(sink, [each for each in sink.up_to(number) if each.task.batch == number])

    def take_all(self, query: str, batch: Batch) -> list[StagedTransaction]:
        """Forget a sink, and return its stages, which the caller ends. NoSuchNode for none."""
        sink = self._found(query)
        found = self._taken(sink, list(sink.stages.values()))
        self.sinks.pop(query, None)
        batch.stage_changes().forget(query)
        return found

    def _taken(self, sink: Sink, stages: list[StagedTransaction]) -> list[StagedTransaction]:
        for stage in stages:
            # the caller may end it much later: a commit that has chosen it must not find it then
            stage.is_over = True
            self.forget(sink, stage)
        return stages

    def _found(self, query: str) -> Sink:
        sink = self.sinks.get(query)
        if sink is None:
            raise NoSuchNode(f"no sink {query}")
        return sink

    # -- stages that are never committed

    def _look_later(self) -> None:
        if self._retention_ms == NO_RETENTION or self._is_set:
            return
        self._is_set = True
        self.router.timer_queue.at(
            self.router.clock.now_ms() + min(LOOK_EVERY_MS, self._retention_ms), self
        )

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - a second look is harmless
        self._is_set = False
        self.is_due = True

    def collect(self, batch: Batch) -> None:
        """End attempts that have no producer, and got no message for the retention time."""
        self.is_due = False
        oldest = self.router.clock.wall_ms() - self._retention_ms
        attempts = [each for sink in self.sinks.values() for each in sink.attempts()]
        for attempt in attempts:
            stages = list(attempt.stages.values())
            if all(not stage.producers and stage.latest_ms <= oldest for stage in stages):
                for stage in stages:
                    text = (
                        f"the stage of {stage.task} for {stage.address} was never committed:"
                        f" {stage.messages()} messages dropped"
                    )
                    self.router.notices.append(STAGE_DROPPED.notice(text))
                    stage.delete(batch)
        if self._by_number:
            self._look_later()

    # -- a start

    def bring_back_sink(self, stored: StoredSink) -> None:
        """Restore the last committed batch of a query."""
        sink = self.sinks[stored.query] = Sink(self, stored.query)
        sink.batch = stored.batch
        sink.at_ms = stored.at_ms

    def bring_back(self, stored: StoredStage, batch: Batch) -> None:
        """Restore a stage of the store; remove it if its target does not exist any more."""
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
        if sink.owner is None:
            sink.owner = stored.owner
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
        # no store has the time of the last message, so the retention time begins anew
        stage.latest_ms = self.router.clock.wall_ms()
        self._add(sink, stage)

    def _target(self, address: Address) -> Node | None:
        found = self.router.find(address)
        if found is None and address.kind == TOPIC:
            found = self.router.topics.get(address.name)
        return found

    def place(self, number: i64, place: i64, *, size: i64, batch: Batch) -> None:
        """Count a message of a stage of the store; remove it if there is no such stage.

        Messages of one stage must be given in their order.
        """
        stage = self._by_number.get(int(place // PLACES))
        if stage is None:
            batch.remove(number)
        else:
            stage.count(number, size)


def _lowest_of_latest(stages: list[StagedTransaction], count: i64) -> i64:
    """Return the lowest number of the latest `count` messages of these stages together."""
    low: i64 = 0
    high = NUMBER_MAX
    while low < high:
        middle = low + (high - low) // 2
        latest: i64 = 0
        for stage in stages:
            latest += i64(len(stage.numbers)) - bisect_left(stage.numbers, int(middle))
        if latest > count:
            low = middle + 1
        else:
            high = middle
    return low
