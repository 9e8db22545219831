"""The interface of a destination, queue or topic, for links."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from broker.message import Message
from broker.routing.addresses.durability import Durability, durability_of
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.credit.credit_pool import UNLIMITED
from broker.routing.credit.pacing import Pacing
from broker.routing.entries.participants import Consumer, Producer
from broker.routing.timer_queue import TimerCallback
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.credit.credit_pool import CreditPool
    from broker.routing.queues.duplicates import DuplicateWindow
    from broker.routing.queues.node_context import NodeContext
    from broker.routing.queues.queue import Queue
    from broker.routing.topics.dynamic import DeletePolicy

QUEUE: Final = "queue"
TOPIC: Final = "topic"


class Node(TimerCallback):
    """A named destination that producers send messages to.

    `stores_all`: every message is stored before its producer is told the outcome, whatever its
    header says (DST-11). `owner` is the key of the connection that a temporary node belongs to
    (TMP-03), -1 for every other node. `is_exclusive`: no other connection receives from it, as is
    true of temporary nodes but for dynamic ones that are no destinations of JMS (TMP-04). Messages
    are sent through `duplicates` if duplicates are to be detected here; else it is None. `outlived`
    is set once the link that made a dynamic node is gone: the condition on which the node is
    deleted. `creator` is the user for whom it was created, None for none; the store keeps it.
    `uses_ended` counts links that have left, so that use between two looks for unused nodes is
    noticed. `staged` messages, of `staged_bytes`, will be put here by the commits of their sinks
    (`staged_transaction.py`); `posted` messages, of `posted_bytes`, by those of their transactions
    (`transaction.py`).
    """

    def __init__(
        self,
        *,
        address: str,
        kind: str,
        policy: AddressPolicy,
        context: NodeContext,
        owner: i64,
        stores_all: bool = False,
    ) -> None:
        self.address: Final = address
        self.kind: Final = kind
        self.policy: Final = policy
        self.context: Final = context
        self.owner: Final[i64] = owner
        self.is_temporary: Final = owner >= 0
        self.is_exclusive = owner >= 0
        self.creator: str | None = None
        self.durability: Final = durability_of(address)
        self.stores_all: Final = stores_all or self.durability is Durability.DURABLE
        self.may_store: Final = owner < 0 and self.durability is not Durability.TRANSIENT
        self.producers: Final[list[Producer]] = []
        self.published: i64 = 0
        self.uses_ended: i64 = 0
        self.staged: i64 = 0
        self.staged_bytes: i64 = 0
        self.posted: i64 = 0
        self.posted_bytes: i64 = 0
        self.credit_pool: CreditPool | None = None
        self.duplicates: DuplicateWindow | None = None
        self.outlived: DeletePolicy | None = None
        self._pacing: Pacing | None = None

    @abstractmethod
    def put(self, message: Message, batch: Batch) -> None:
        """Put `message` here. Raise QueueFull if there is no room; then nothing has changed."""

    @abstractmethod
    def publish(self, message: Message, batch: Batch) -> None:
        """Put `message`, which has its room, here. Raises nothing."""

    def may_be_full(self) -> bool:
        """Return whether `put` may raise QueueFull at all."""
        return self.policy.is_limited

    @abstractmethod
    def backlog(self) -> i64:
        """Return how many deliveries consumers are behind; 0 if there are no consumers."""

    @abstractmethod
    def delete(self, batch: Batch) -> None:
        """Discard all messages and notify every link; the router has removed the node before."""

    def links(self) -> i64:
        """Return the number of links that have this node as source or target."""
        return i64(len(self.producers))

    def contents(self) -> i64:
        """Return the number of messages, including delivered and scheduled ones; 0 for a topic."""
        return 0

    def is_unused(self) -> bool:
        """Return whether the node has no links, messages or ids, and no messages on their way."""
        if self.links() > 0 or self.contents() > 0 or self.staged > 0 or self.posted > 0:
            return False
        return self.duplicates is None or self.duplicates.size() == 0

    def request_credit(self, producer: Producer) -> bool:
        """Request credit for `producer`; return whether it gets some now.

        If not, let it wait: it is resumed within PATIENCE_MS.
        """
        context = self.context
        backlog = self.backlog()
        pacing = self._pacing
        if pacing is None:
            if backlog <= context.pacing_mark:
                return True
            pacing = self._pacing = Pacing(context.pacing_mark)
        if pacing.observe(backlog):
            return True
        others_wait = pacing.is_waited_for()
        pacing.wait(producer, context.clock.now_ms())
        if not others_wait:
            context.rounds.paced.append(self)
            context.timer_queue.at(pacing.deadline_ms, self)
        return False

    def is_paced(self, producer: Producer) -> bool:
        """Return whether `producer` waits for consumers to catch up."""
        return self._pacing is not None and self._pacing.holds(producer)

    def pace(self, now_ms: i64) -> None:
        """Resume producers that have waited for consumers for PATIENCE_MS."""
        if self._pacing is not None:
            self._pacing.tick(now_ms, self.backlog())

    def resume_producers(self) -> bool:
        """Resume producers if consumers have caught up; return whether some still wait."""
        pacing = self._pacing
        if pacing is None:
            return False
        pacing.fell(self.backlog())
        return pacing.is_waited_for()

    def note_use_ended(self) -> None:
        """Note that a link, or a message of a dynamic node, has left: perhaps the last one.

        The next round deletes the node if so: the caller may be in the middle of other work.
        """
        self.uses_ended += 1
        if self.outlived is not None:
            self.context.rounds.left.append(self)

    def producer_window(self) -> i64:
        """Return how many messages each producer may be ahead, so that consumers keep up."""
        return UNLIMITED

    def room_for_more(self) -> i64:
        """Return for how many more messages credit may be granted, or UNLIMITED."""
        return UNLIMITED

    def call_when_less(self) -> None:
        """Have `CreditPool.serve` called once a message has left the node."""

    def give_credit(self, producer: Producer, credit_pool: CreditPool) -> None:
        """Grant `producer` credit from `credit_pool`, now or when there is room."""
        credit_pool.ask(producer)

    def leave(self, producer: Producer) -> None:
        """Remove `producer`, which has detached."""
        if self._pacing is not None:
            self._pacing.leave(producer)
        if producer in self.producers:
            self.producers.remove(producer)
        if self.credit_pool is not None:
            self.credit_pool.leave(producer)

    def tell_producers(self) -> None:
        """Notify every producer that the node was deleted, and remove it."""
        for producer in list(self.producers):
            producer.node_gone()
        self.producers.clear()
        if self.credit_pool is not None:
            self.credit_pool.close()


class Consumable(Node):
    """A node whose messages consumers take; those of a topic are taken from subscriptions."""

    @abstractmethod
    def attach_consumer(self, consumer: Consumer) -> Queue:
        """Attach `consumer`, and return the queue from which it takes messages."""

    @abstractmethod
    def detach_consumer(self, consumer: Consumer, queue: Queue, batch: Batch) -> None:
        """Detach `consumer` from `queue`; entries that it held have been disposed of before."""
