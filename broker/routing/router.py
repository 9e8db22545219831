"""From an address to a node: the one door to all queues and topics."""

from typing import Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.message import Message
from broker.routing import address as addresses
from broker.routing.agenda import Agenda
from broker.routing.errors import (
    HeldExclusively,
    InvalidAddress,
    LimitReached,
    NoSuchNode,
    QueueFull,
)
from broker.routing.lifetime import Lifetimes
from broker.routing.node import QUEUE, TOPIC, Node
from broker.routing.party import Witness
from broker.routing.policy import Policies
from broker.routing.queue import Queue
from broker.routing.topic import Topic
from broker.stats import Stats
from storage.api import Batch
from storage.records import StoredNode

NODES_MAX: Final[i64] = 100_000
"""Queues and topics together, temporary ones included: names come from peers."""


@final
class Router:
    """Holds all nodes; a queue and a topic of one name are two nodes (DST-01).

    Nothing is dispatched while messages come in: `pump` does it once for all
    queues that were woken, so that output gathers (`performance.md`, rule 9).
    """

    def __init__(
        self,
        *,
        clock: Clock,
        stats: Stats,
        policies: Policies,
        pacing_mark: i64 = 2000,
        nodes_max: i64 = NODES_MAX,
        witness: Witness | None = None,
    ) -> None:
        self.clock: Final = clock
        self.stats: Final = stats
        self.agenda: Final = Agenda()
        self.lifetimes: Final = Lifetimes(self.agenda, clock)
        self.pacing_mark: Final[i64] = pacing_mark
        self.witness: Final = witness
        self.queues: Final[dict[str, Queue]] = {}
        self.topics: Final[dict[str, Topic]] = {}
        self._policies: Final = policies
        self._nodes_max: Final[i64] = nodes_max
        self._pending: list[Queue] = []
        self._paced: list[Node] = []
        self._last_stored_number: i64 = 0

    def next_stored_number(self) -> i64:
        """What names one more message to the store."""
        self._last_stored_number += 1
        return self._last_stored_number

    # -- nodes

    def resolve(self, address: str, kind: str, batch: Batch) -> Node:
        """The node of that address and kind, made now where policy lets it be (DST-01, DST-02).

        `kind` is empty where the client did not say: an existing node then
        wins, queue first, else the default kind. Raises NoSuchNode or InvalidAddress.
        """
        found = self.find(address, kind)
        if found is not None:
            return found
        addresses.check(address)
        if addresses.is_temporary(address):
            raise NoSuchNode(f"no temporary node {address}")
        if not self._policies.of(address).auto_create:
            raise NoSuchNode(f"no {kind or 'node'} {address}, and it may not be created")
        return self.create(address, kind or self._policies.default_kind, batch)

    def find(self, address: str, kind: str) -> Node | None:
        """The existing node of that address, or None. An empty `kind` takes either, queue first."""
        if kind != TOPIC:
            queue = self.queues.get(address)
            if queue is not None or kind == QUEUE:
                return queue
        return self.topics.get(address)

    def create(self, address: str, kind: str, batch: Batch) -> Node:
        """A new ordinary node, which a durable store brings back after a restart."""
        node = self._add(address, kind, -1)
        batch.add_node(StoredNode(address=address, kind=kind))
        return node

    def create_temporary(self, kind: str, owner: i64) -> Node:
        """A node with an unguessable address that ends with the connection `owner` (TMP-01)."""
        return self._add(addresses.new_temporary(kind), kind, owner)

    def _add(self, address: str, kind: str, owner: i64) -> Node:
        if i64(len(self.queues) + len(self.topics)) >= self._nodes_max:
            raise LimitReached(f"the broker has its {self._nodes_max} queues and topics")
        policy = self._policies.of(address)
        if kind == TOPIC:
            topic = Topic(address=address, policy=policy, router=self, owner=owner)
            self.topics[address] = topic
            return topic
        if kind != QUEUE:
            raise InvalidAddress(f"{kind} is neither queue nor topic")
        queue = Queue(address=address, policy=policy, router=self, owner=owner)
        self.queues[address] = queue
        return queue

    def delete(self, node: Node, batch: Batch) -> None:
        """Remove `node` with its messages; links to it are told (TMP-03). Twice is once."""
        if self.find(node.address, node.kind) is not node:
            return
        if node.kind == TOPIC:
            del self.topics[node.address]
        else:
            del self.queues[node.address]
        if not node.is_temporary():
            batch.remove_node(StoredNode(address=node.address, kind=node.kind))
        node.delete(batch)

    def check_consumable(self, node: Node, owner: i64) -> None:
        """Raise HeldExclusively where `node` is another connection's temporary node (TMP-04)."""
        if node.is_temporary() and node.owner != owner:
            raise HeldExclusively(f"{node.address} belongs to another connection")

    # -- rounds

    def wake(self, queue: Queue) -> None:
        """Let `queue` dispatch in the next `pump`."""
        if not queue.is_pending:
            queue.is_pending = True
            self._pending.append(queue)

    def pace(self, node: Node) -> None:
        """Look at `node`, for whose credit producers wait, after every `pump`."""
        self._paced.append(node)

    def pump(self, batch: Batch) -> None:
        """Dispatch every queue that was woken, until none is; producers then may go on."""
        if self.lifetimes.any_due:
            self.lifetimes.collect(batch)
        if self._pending:
            now_ms = self.clock.now_ms()
            while self._pending:
                pending = self._pending
                self._pending = []
                for queue in pending:
                    queue.is_pending = False
                    queue.dispatch(now_ms, batch)
        if self._paced:
            self._let_producers_go_on()

    def _let_producers_go_on(self) -> None:
        still: list[Node] = []
        for node in self._paced:
            node.pacing.fell(node.backlog())
            if node.pacing.is_waited_for():
                still.append(node)
        self._paced = still

    # -- ends of messages

    def dead_letter(self, message: Message, queue: Queue, batch: Batch) -> None:
        """Move a message that could not be consumed to the dead-letter node, or drop it."""
        if self._move(message, batch, origin=queue, target=queue.policy.dead_letter):
            self.stats.dead_lettered += 1
        else:
            self.stats.dropped += 1

    def expire(self, message: Message, queue: Queue, batch: Batch) -> None:
        """Drop an expired message, or move it to the node configured for them (RCV-02)."""
        self.stats.expired += 1
        if queue.policy.expiry:
            self._move(message.without_expiry(), batch, origin=queue, target=queue.policy.expiry)

    def _move(self, message: Message, batch: Batch, *, origin: Queue, target: str) -> bool:
        """False where `origin` or the queue `target` does not allow it."""
        node: Node | None = self.queues.get(target)
        if not target or origin.is_temporary() or node is origin:
            return False
        try:
            if node is None:
                node = self.create(target, QUEUE, batch)
            node.put(message, batch)
        except (QueueFull, LimitReached):
            return False
        return True
