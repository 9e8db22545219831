"""A sink: the stages of one query, and the last batch that it has committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import Message
from broker.routing.batches.attempt import Attempt
from broker.routing.batches.staged_transaction import StagedTransaction, Task
from broker.routing.errors import LimitReached
from broker.routing.queues.node import Node
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.batches.staging_area import StagingArea

NOTHING_COMMITTED: Final[i64] = -1
"""The last committed batch of a query that has committed none."""

Key = tuple[int, int, int, str, str]
"""Identifies a stage of a query: batch, partition, attempt, kind, address."""


@final
class Tally:
    """The number and the bytes of the messages that are staged for one batch."""

    def __init__(self) -> None:
        self.messages: i64 = 0
        self.bytes: i64 = 0


@final
class Sink:
    """One query: its stages, and the last `batch` that it committed, at `at_ms` wall time.

    `owner` is the user that staged first, empty for clients without a login; None if that is not
    known, or if nobody has staged yet.
    """

    def __init__(self, home: StagingArea, query: str) -> None:
        self.query: Final = query
        self.router: Final = home.router
        self.batch: i64 = NOTHING_COMMITTED
        self.at_ms: i64 = 0
        self.owner: str | None = None
        self.stages: Final[dict[Key, StagedTransaction]] = {}
        self._attempts: Final[dict[tuple[str, int, int, int], Attempt]] = {}
        self._tallies: Final[dict[int, Tally]] = {}
        self._home: Final = home

    # -- stages

    def attempt_of(self, task: Task) -> Attempt:
        """Return the attempt `task`, a new one if it has no stages."""
        found = self._attempts.get(task.key())
        return Attempt() if found is None else found

    def attempts(self) -> list[Attempt]:
        """Return the attempts that have stages."""
        return list(self._attempts.values())

    def add(self, stage: StagedTransaction) -> None:
        """Add `stage` to its attempt."""
        self.stages[key_of(stage.task, stage.target, stage.given)] = stage
        stage.attempt.stages[int(stage.number)] = stage
        self._attempts[stage.task.key()] = stage.attempt

    def remove(self, stage: StagedTransaction) -> None:
        """Remove `stage` from its attempt, which ends with its last stage."""
        del self.stages[key_of(stage.task, stage.target, stage.given)]
        del stage.attempt.stages[int(stage.number)]
        if not stage.attempt.stages:
            del self._attempts[stage.task.key()]

    def next_arrival(self) -> i64:
        """Return a number that is higher than that of all messages in memory alone."""
        self._home.arrivals += 1
        return self._home.arrivals

    # -- what they have

    def check_batch(self, task: Task, message: Message) -> None:
        """Raise LimitReached if `message` is too much for the batch of `task`."""
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
        """Add to the messages and bytes that are staged for `batch`; negative ones are removed."""
        tally = self._tallies.get(int(batch))
        if tally is None:
            tally = self._tallies[int(batch)] = Tally()
        tally.messages += messages
        tally.bytes += size
        self._home.bytes += size
        if tally.messages == 0:
            del self._tallies[int(batch)]

    def messages(self) -> i64:
        """Return the number of staged messages."""
        messages: i64 = 0
        for tally in self._tallies.values():
            messages += tally.messages
        return messages

    def bytes(self) -> i64:
        """Return the bytes of the staged messages."""
        size: i64 = 0
        for tally in self._tallies.values():
            size += tally.bytes
        return size

    def staged_at_ms(self) -> i64:
        """Return when the oldest staged message arrived, in ms on the wall clock; 0 for none."""
        oldest: i64 = 0
        for stage in self.stages.values():
            if not stage.is_blank() and (oldest == 0 or stage.begun_ms < oldest):
                oldest = stage.begun_ms
        return oldest

    def of_tasks(self, batch: i64) -> dict[tuple[int, int], list[StagedTransaction]]:
        """Return the stages of `batch` with messages, by partition and attempt, as they began."""
        found: dict[tuple[int, int], list[StagedTransaction]] = {}
        for stage in self.stages.values():
            task = stage.task
            if task.batch == batch and not stage.is_blank():
                found.setdefault((int(task.partition), int(task.attempt)), []).append(stage)
        return found

    def up_to(self, batch: i64) -> list[StagedTransaction]:
        """Return the stages of `batch` and of the batches before it."""
        return [stage for stage in self.stages.values() if stage.task.batch <= batch]

    def filled(self, target: Node) -> None:
        """Report to the staging area that messages which wait for a commit fill `target`."""
        self._home.filled(target)

    def take_room(self, size: i64) -> bool:
        """Take room in memory for a message of `size` bytes; return whether there is any."""
        return self._home.take_room(size)

    def give_back_room(self, size: i64) -> None:
        """Give back the room in memory of messages of `size` bytes."""
        self._home.kept_bytes -= size

    def forget(self, stage: StagedTransaction) -> None:
        """Remove `stage`, which has no messages and no producers."""
        self._home.forget(self, stage)

    def drop(self, stage: StagedTransaction, batch: Batch) -> None:
        """End `stage`, and drop its messages."""
        self._home.forget(self, stage)
        stage.end(batch)


def key_of(task: Task, target: Node, given: str) -> Key:
    """Return what identifies the stage of `task` for `target` in its sink."""
    return int(task.batch), int(task.partition), int(task.attempt), target.kind, given
