"""A staged transaction, or stage: messages that one attempt of a sink's task has sent.

No consumer sees them until the sink commits them. For its senders a stage is a node. Its messages
are only in the store: memory has their numbers, and the room that they will take in the target is
taken already. A few messages that their senders have settled are only in memory, until the COMMIT
publishes them from there: they are written once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import Message, Origin
from broker.routing.entries.participants import Producer
from broker.routing.entries.record_mapping import as_message
from broker.routing.errors import NoSuchNode
from broker.routing.queues import queue_limits
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from broker.routing.topics.topic import Topic
from storage.batch import Batch
from storage.records import StoredMessage
from storage.stages import PLACES, STAGED, StoredStage

if TYPE_CHECKING:
    from broker.routing.batches.sink import Sink
    from broker.routing.credit.credit_pool import CreditPool


KEPT_MAX: Final[i64] = 2000
"""Maximum messages of a stage that are only in memory: a COMMIT publishes them in one piece."""


@final
class Task:
    """The attempt of a task, in a batch of a query, that a sender sends for.

    The task is that of `partition`.
    """

    def __init__(self, *, query: str, batch: i64, partition: i64, attempt: i64) -> None:
        self.query: Final = query
        self.batch: Final[i64] = batch
        self.partition: Final[i64] = partition
        self.attempt: Final[i64] = attempt

    def key(self) -> tuple[str, int, int, int]:
        """Return the values that tell it from other attempts."""
        return self.query, int(self.batch), int(self.partition), int(self.attempt)

    def __str__(self) -> str:
        return (
            f"attempt {self.attempt} of partition {self.partition} in batch {self.batch} of"
            f" {self.query}"
        )


@final
class StagedTransaction(Node):
    """The messages that a task has sent to one address. `address`, `kind` are those of `target`.

    `given` is the address as the sender wrote it: a topic's name may be followed by a key.
    `numbers` are those of the messages in the store, in order of arrival, and `sizes` their bytes.
    Or else `kept` has all messages, which the store does not have, and `arrivals` their places in
    the order of all such messages.
    `begun_ms` and `latest_ms` are when the first and the last of them arrived, on the wall clock;
    `latest_ms` is not stored: after a start it is the time of the start.
    `attempt` has the stages for all addresses of the task. It is `sealed` from the beginning of its
    commit on, and `is_over` once it is committed or dropped.
    """

    def __init__(
        self,
        sink: Sink,
        task: Task,
        target: Node,
        *,
        number: i64,
        given: str,
        origin: Origin,
        begun_ms: i64,
    ) -> None:
        super().__init__(
            address=target.address,
            kind=target.kind,
            policy=target.policy,
            context=target.context,
            owner=-1,
            stores_all=True,
        )
        self.task: Final = task
        self.target: Final = target
        self.number: Final[i64] = number
        self.given: Final = given
        self.origin: Final = origin
        self.begun_ms: i64 = begun_ms
        self.latest_ms: i64 = begun_ms
        self.numbers: Final = array("q")
        self.sizes: Final = array("q")
        self.kept: Final[list[Message]] = []
        self.arrivals: Final = array("q")
        self.bytes: i64 = 0
        self.sealed = False
        self.is_over = False
        # how many messages, the first ones, have been published or dropped
        self._gone: i64 = 0
        # whether no sender waits until the store has its messages
        self._is_settled = False
        self._sink: Final = sink
        self.attempt: Final = sink.attempt_of(task)
        self.credit_pool = target.credit_pool

    def messages(self) -> i64:
        """Return the number of messages."""
        return i64(len(self.numbers)) - self._gone + i64(len(self.kept))

    def is_blank(self) -> bool:
        """Return whether it has had no messages, or they have been removed."""
        return not self.numbers and not self.kept

    # -- in

    def join(self, producer: Producer, *, settles: bool = False) -> None:
        """Add `producer`, which gets its credit as a producer of the target does.

        If it `settles` its messages, it does not wait until the store has them.
        """
        self._is_settled = settles and (self._is_settled or not self.producers)
        self.producers.append(producer)
        self.target.producers.append(producer)

    def leave(self, producer: Producer) -> None:
        super().leave(producer)
        if producer in self.target.producers:
            self.target.producers.remove(producer)
        self.target.note_use_ended()
        if not self.producers and self.is_blank():
            self._sink.forget(self)

    def give_credit(self, producer: Producer, credit_pool: CreditPool) -> None:
        """Grant credit as any node does; a producer that would wait for ever may send one message.

        The message is refused, which tells the producer why it cannot continue.
        """
        super().give_credit(producer, credit_pool)
        if producer.outstanding() == 0 and is_filled(self.target):
            producer.grant(1)

    def put(self, message: Message, batch: Batch) -> None:
        if self.is_over or self.sealed:
            raise NoSuchNode(f"the stage of {self.task} takes no more messages")
        self._sink.check_batch(self.task, message)
        check_size(self.target, message)
        check_room(self.target, message)
        self.publish(message, batch)

    def publish(self, message: Message, batch: Batch) -> None:
        """Keep `message`, for which there is room, or note it for the store."""
        self.latest_ms = self._sink.router.clock.wall_ms()
        if self.is_blank():
            self.begun_ms = self.latest_ms
        if self._can_keep(message) and self._sink.take_room(message.size):
            self.kept.append(message)
            self.arrivals.append(int(self._sink.next_arrival()))
        else:
            self.attempt.store_kept(batch)
            self.store(message, batch)
        self._count(message.size)
        if self.credit_pool is not None and is_filled(self.target):
            self._sink.filled(self.target)

    def _can_keep(self, message: Message) -> bool:
        """Return whether `message` may be in memory alone, if there is room for it."""
        if not self._is_settled or self.attempt.is_stored or message.large is not None:
            return False
        return i64(len(self.kept)) < KEPT_MAX

    def store_kept(self, batch: Batch) -> None:
        """Note the messages of the attempt for the store that are only in memory."""
        self.attempt.store_kept(batch)

    def take_kept(self) -> list[tuple[int, StagedTransaction, Message]]:
        """Return the messages that are only in memory, with their arrivals; keep them no more."""
        taken: list[tuple[int, StagedTransaction, Message]] = []
        size: i64 = 0
        for arrival, message in zip(self.arrivals, self.kept, strict=True):
            size += message.size
            taken.append((arrival, self, message))
        self._sink.give_back_room(size)
        self.kept.clear()
        del self.arrivals[:]
        return taken

    def store(self, message: Message, batch: Batch) -> None:
        """Note `message` for the store; memory keeps only its number."""
        if not self.numbers:
            batch.stage_changes().add(self._as_stored())
        number = self._sink.router.context.next_stored_number()
        large = message.large
        batch.append(
            StoredMessage(
                number=number,
                queue=STAGED,
                position=self.number * PLACES + i64(len(self.numbers)),
                encoded=message.encoded,
                priority=message.priority,
                ttl_ms=message.ttl_ms,
                arrived_ms=message.arrived_ms,
                expires_at_ms=message.expires_at_ms,
                deliver_at_ms=message.deliver_at_ms,
                delivery_count=0,
                durable=message.durable,
                content=None if large is None else large.stored,
                message_format=message.message_format,
                opaque=message.opaque,
            )
        )
        batch.is_urgent = True
        self.numbers.append(int(number))
        self.sizes.append(int(message.size))

    def _as_stored(self) -> StoredStage:
        task = self.task
        return StoredStage(
            number=self.number,
            query=task.query,
            batch=task.batch,
            partition=task.partition,
            attempt=task.attempt,
            kind=self.kind,
            address=self.given,
            publisher=self.origin.publisher,
            begun_ms=self.begun_ms,
            owner=self._sink.owner,
        )

    def count(self, number: i64, size: i64) -> None:
        """Count a message of `size` bytes that the store has."""
        self.attempt.is_stored = True
        self.numbers.append(int(number))
        self.sizes.append(int(size))
        self._count(size)

    def _count(self, size: i64) -> None:
        """Count a message of `size` bytes, and the room that it will take in the target."""
        self.bytes += size
        self.target.staged += 1
        self.target.staged_bytes += size
        self._sink.counted(self.task.batch, messages=1, size=size)

    # -- out

    def read(self, stored: StoredMessage) -> Message:
        """Return a message as it was sent, from its record in the store."""
        return as_message(stored, self.origin, self.context.bodies)

    def commit(self, messages: list[Message], batch: Batch) -> None:
        """Publish `messages`, which are the first ones that the stage still has, to the target."""
        target = self.target
        duplicates = target.duplicates
        for message in messages:
            if duplicates is None:
                target.publish(message, batch)
            else:
                duplicates.publish(message, batch)
        # after them, so that no other message can take their room
        self.let_go(i64(len(messages)), batch)

    def let_go(self, count: i64, batch: Batch) -> None:
        """Remove the first `count` messages from the stage, or all if it has no more."""
        if self.kept:
            self._let_go_kept(count)
            return
        first = self._gone
        last = min(first + count, i64(len(self.numbers)))
        size: i64 = 0
        for number in self.numbers[first:last]:
            batch.remove(number)
        for each in self.sizes[first:last]:
            size += each
        self._gone = last
        self._uncount(last - first, size)

    def _let_go_kept(self, count: i64) -> None:
        size: i64 = 0
        for message in self.kept[: int(count)]:
            size += message.size
        before = i64(len(self.kept))
        del self.kept[: int(count)]
        del self.arrivals[: int(count)]
        self._sink.give_back_room(size)
        self._uncount(before - i64(len(self.kept)), size)

    def cut(self, lowest: i64, batch: Batch) -> CutMessages:
        """Take out the messages from number `lowest` on, and detach all producers.

        Return those messages, which the caller lets go. None of the messages is in memory alone.
        """
        first = bisect_left(self.numbers, int(lowest))
        cut = CutMessages(self, self.numbers[first:], self.sizes[first:])
        del self.numbers[first:]
        del self.sizes[first:]
        if cut.left() > 0 and not self.numbers:
            batch.stage_changes().remove(self.number)
        for producer in list(self.producers):
            producer.node_gone()
        if not self.numbers and not self.producers:
            self._sink.forget(self)
        if self.credit_pool is not None:
            self.credit_pool.serve()
        return cut

    def give_back(self, messages: i64, size: i64) -> None:
        """Give back the room of messages that have been cut off."""
        self._uncount(messages, size)
        if self.credit_pool is not None:
            self.credit_pool.serve()

    def _uncount(self, messages: i64, size: i64) -> None:
        """Give back the room of messages that are staged no longer."""
        self.bytes -= size
        self.target.staged -= messages
        self.target.staged_bytes -= size
        self._sink.counted(self.task.batch, messages=-messages, size=-size)

    def end(self, batch: Batch) -> None:
        """End the stage: remove its messages, and report to its producers that the node is gone."""
        self.is_over = True
        if self.numbers:
            batch.stage_changes().remove(self.number)
        if self.messages() > 0:
            self.let_go(self.messages(), batch)
        for producer in list(self.producers):
            producer.node_gone()
        if self.credit_pool is not None:
            self.credit_pool.serve()

    # -- as a node

    def backlog(self) -> i64:
        """Return 0: a stage has no consumers that could be behind."""
        return 0

    def due(self, now_ms: i64) -> None:
        """Do nothing: a stage sets no timer."""

    def delete(self, batch: Batch) -> None:
        self._sink.drop(self, batch)


@final
class CutMessages:
    """Messages that were cut off from `stage`, and take room until they are let go."""

    def __init__(self, stage: StagedTransaction, numbers: array[int], sizes: array[int]) -> None:
        self._stage: Final = stage
        self._numbers: Final = numbers
        self._sizes: Final = sizes

    def left(self) -> i64:
        """Return how many messages are left."""
        return len(self._numbers)

    def let_go(self, count: i64, batch: Batch) -> None:
        """Remove `count` messages from the store, or all if there are no more."""
        removed: i64 = 0
        size: i64 = 0
        while removed < count and self._numbers:
            batch.remove(self._numbers.pop())
            size += self._sizes.pop()
            removed += 1
        self._stage.give_back(removed, size)


def is_filled(target: Node) -> bool:
    """Return whether messages that wait for a commit fill `target`: no consumer can make room."""
    if isinstance(target, Queue):
        return queue_limits.is_filled_by_stages(target)
    if isinstance(target, Topic):
        for queue in target.subscriptions:
            if queue_limits.is_filled_by_stages(queue):
                return True
    return False


def check_size(target: Node, message: Message) -> None:
    """Raise NeverFits if `message` alone is larger than a queue that it would be in may be."""
    if isinstance(target, Queue):
        queue_limits.check_size(target, message)
    elif isinstance(target, Topic) and target.may_be_full():
        for queue in target.destinations(message):
            queue_limits.check_size(queue, message)


def check_room(target: Node, message: Message) -> None:
    """Raise QueueFull if `message` does not fit into `target`, beside its own and staged ones."""
    if isinstance(target, Queue):
        target.check_room(message)
    elif isinstance(target, Topic) and target.may_be_full():
        for queue in target.destinations(message):
            queue.check_room(message)
