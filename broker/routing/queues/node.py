"""What a link may do to a destination, be it queue or topic."""

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
    from broker.routing.queues.queue import Queue
    from broker.routing.router import Router
    from broker.routing.topics.dynamic import DeletePolicy

QUEUE: Final = "queue"
TOPIC: Final = "topic"


class Node(TimerCallback):
    """A named place that messages are put into.

    `stores_all`: whoever sends here is told once a message is stored, whatever its header
    says (DST-11). `owner` is the key of the connection that a temporary node belongs to
    (TMP-03), -1 for every other node. What is sent here goes through `duplicates`, where they
    are to be detected. `outlived` is set once a dynamic node has
    outlived the link that made it: what it waits for. `departures` counts links that have left,
    so that use between two looks is noticed. `staged` messages, of `staged_bytes`, will come
    here at the commit of their sinks (`staged_transaction.py`); `posted` messages, of
    `posted_bytes`, at that of their transactions (`transaction.py`).
    """

    def __init__(
        self,
        *,
        address: str,
        kind: str,
        policy: AddressPolicy,
        pacing_mark: i64,
        owner: i64,
        stores_all: bool = False,
    ) -> None:
        self.address: Final = address
        self.kind: Final = kind
        self.policy: Final = policy
        self.owner: Final[i64] = owner
        self.durability: Final = durability_of(address)
        self.stores_all: Final = stores_all or self.durability is Durability.DURABLE
        self.may_store: Final = owner < 0 and self.durability is not Durability.TRANSIENT
        self.producers: Final[list[Producer]] = []
        self.pacing: Final = Pacing(pacing_mark)
        self.published: i64 = 0
        self.departures: i64 = 0
        self.staged: i64 = 0
        self.staged_bytes: i64 = 0
        self.posted: i64 = 0
        self.posted_bytes: i64 = 0
        self.credit_pool: CreditPool | None = None
        self.duplicates: DuplicateWindow | None = None
        self.outlived: DeletePolicy | None = None

    def is_temporary(self) -> bool:
        return self.owner >= 0

    @abstractmethod
    def put(self, message: Message, batch: Batch) -> None:
        """Take a message for whoever consumes here; raises QueueFull, then nothing has changed."""

    @abstractmethod
    def publish(self, message: Message, batch: Batch) -> None:
        """Take a message for which there is room: nothing can be raised."""

    def may_be_full(self) -> bool:
        """Whether `put` may raise QueueFull at all."""
        return self.policy.max_messages > 0 or self.policy.max_bytes > 0

    @abstractmethod
    def backlog(self) -> i64:
        """How many deliveries consumers are behind; 0 where nobody consumes."""

    @abstractmethod
    def delete(self, batch: Batch) -> None:
        """Drop all messages and tell every link. The router has forgotten the node already."""

    def links(self) -> i64:
        """How many links have this node as source or target."""
        return i64(len(self.producers))

    def contents(self) -> i64:
        """How many messages are here, delivered and scheduled ones included; a topic has none."""
        return 0

    def is_unused(self) -> bool:
        """Whether nobody has a link to it, nothing is here or on its way, no id is remembered."""
        if self.links() > 0 or self.contents() > 0 or self.staged > 0 or self.posted > 0:
            return False
        return self.duplicates is None or self.duplicates.size() == 0

    def may_grant(self, producer: Producer, router: Router) -> bool:
        """Whether `producer` gets credit now; otherwise it is resumed within the patience."""
        pacing = self.pacing
        if pacing.may_grant(self.backlog()):
            return True
        others_wait = pacing.is_waited_for()
        pacing.wait(producer, router.clock.now_ms())
        if not others_wait:
            router.pace(self)
            router.timer_queue.at(pacing.deadline_ms, self)
        return False

    def producer_window(self) -> i64:
        """How many messages each producer may be ahead of consumers that are to keep up."""
        return UNLIMITED

    def room_for_more(self) -> i64:
        """For how many messages credit may be granted, beside what has been granted."""
        return UNLIMITED

    def call_when_less(self) -> None:
        """Have `CreditPool.serve` called once something has left."""

    def give_credit(self, producer: Producer, credit_pool: CreditPool) -> None:
        """`producer` wants some of what this node has `credit_pool` for."""
        credit_pool.ask(producer)

    def leave(self, producer: Producer) -> None:
        """`producer` has gone."""
        self.pacing.leave(producer)
        if producer in self.producers:
            self.producers.remove(producer)
        if self.credit_pool is not None:
            self.credit_pool.leave(producer)

    def tell_producers(self) -> None:
        """Every producer learns that the node is gone."""
        for producer in list(self.producers):
            producer.node_gone()
        self.producers.clear()
        if self.credit_pool is not None:
            self.credit_pool.close()


class Consumable(Node):
    """A node that consumers take from themselves; of a topic they have subscriptions."""

    @abstractmethod
    def attach_consumer(self, consumer: Consumer) -> Queue:
        """The queue from which `consumer` takes from now on."""

    @abstractmethod
    def detach_consumer(self, consumer: Consumer, queue: Queue, batch: Batch) -> None:
        """`consumer` has gone; what it held has been disposed of before."""
