"""Producers, consumers and observers of a node, by the interfaces that the node uses."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr, trait

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.redelivery import Disposal
from broker.routing.entries.rescan import RescanSet
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.entries.dead_letter import Cause
    from broker.routing.queues.node import Node
    from broker.routing.queues.queue import Queue


@final
class Label:
    """Identification of a consumer for an operator: its client, its link, connection/channel."""

    def __init__(self, container_id: str = "", link: str = "", session: str = "") -> None:
        self.container_id: Final = container_id
        self.link: Final = link
        self.session: Final = session


NOBODY: Final = Label()


@trait
class Wakeable:
    """A queue, for the parts of it that can only have it dispatched."""

    @abstractmethod
    def wake(self) -> None:
        """Have the queue dispatched in the next round; even a deleted one has drains to end."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Consumer:
    """Takes entries from one queue.

    `has_room` and `deliver` are called per message, all else rarely. Consumers of higher
    `priority` are served first; an `exclusive` one has the queue for itself. `number` and
    `passed` belong to the queue: the number of this consumer, and for each priority the
    position up to which no message waits that it may have, except those in `rescan`.
    `filter` selects the messages that it wants; None selects all. `failures` counts failed
    attempts with it. `leases`: it is a lease, which keeps its messages over a restart.
    """

    filter: ConsumerFilter | None = None
    number: i64 = 0
    passed: list[int] | None = None
    rescan: RescanSet | None = None
    priority: i64 = 0
    exclusive: bool = False
    failures: i64 = 0
    leases: bool = False

    @abstractmethod
    def has_room(self) -> bool:
        """Return whether `deliver` may be called: there is credit, and output is not held up."""

    @abstractmethod
    def has_credit(self) -> bool:
        """Return whether the peer still waits for messages, with room or without."""

    @abstractmethod
    def deliver(self, entry: QueueEntry) -> None:
        """Send `entry`, which stays acquired for this consumer until it is disposed of."""

    @abstractmethod
    def browsed(self, entry: QueueEntry) -> None:
        """Send a copy of `entry`, which stays in its queue."""

    @abstractmethod
    def nothing_waits(self) -> None:
        """End a drain: the queue holds nothing more that this consumer could take."""

    def label(self) -> Label:
        """Return the identification of this consumer for an operator."""
        return NOBODY

    def memory_freed(self) -> None:
        """Take more from the queue: messages held by consumers use less memory than they may."""

    @abstractmethod
    def node_deleted(self) -> None:
        """Stop consuming: the node is deleted, and all its entries with it."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Producer:
    """Puts messages into a node, as fast as it is granted credit.

    `counted`, `seen` and `is_recalled` belong to the node's `CreditPool`: the credit
    that counts as taken, that number at the last look, and whether the producer has
    been asked to give it back. Credit is in messages.
    """

    counted: i64 = 0
    seen: i64 = -1
    is_recalled: bool = False

    @abstractmethod
    def resume(self) -> None:
        """Grant credit: the node has room again."""

    def narrow(self) -> None:
        """Take back credit beyond the node's producer window, which has become smaller."""

    @abstractmethod
    def most(self) -> i64:
        """Return the maximum credit of this producer."""

    @abstractmethod
    def outstanding(self) -> i64:
        """Return the credit that this producer has not used."""

    @abstractmethod
    def grant(self, credit: i64) -> None:
        """Allow this producer `credit` more messages."""

    def go_on_in_transaction(self, node: Node) -> None:
        """Grant one credit if an open transaction of the client makes room in `node`, and none yet.

        The client may have to send before it commits: the transaction would wait for itself.
        """

    @abstractmethod
    def recall(self) -> None:
        """Ask this producer to use its credit at once, or give it back."""

    @abstractmethod
    def node_gone(self) -> None:
        """Stop producing: the node is deleted."""


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueObserver:
    """Receives each event of a message as it happens; `batch` is the one that has the change.

    Queues whose address has an event log have one, and all queues of an embedded broker.
    """

    def admitted(self, entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
        """Note that `entry` waits for consumers, from now on or from `deliver_at_ms` on."""

    def delivered(self, entry: QueueEntry, batch: Batch) -> None:
        """Note that `entry` is delivered to `entry.consumer`."""

    def settled(
        self, entry: QueueEntry, disposal: Disposal, batch: Batch, *, cause: Cause | None = None
    ) -> None:
        """Note that a delivery of `entry` ends as `disposal` says; `cause` is that of a rejection.

        `entry` still has the consumer and the delivery count of that delivery.
        """

    def departed(self, entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
        """Note that `entry` leaves its queue other than to a consumer: event `kind`, and why."""

    def dropped(self, queue: Queue, messages: i64, batch: Batch, *, why: str) -> None:
        """Note that `messages` messages left `queue` together, without an event for each."""


@mypyc_attr(allow_interpreted_subclasses=True)
class ObserverChoice:
    """Gives further observers to queues, by their names. Most brokers have none."""

    @abstractmethod
    def observer_of(self, address: str, other: QueueObserver | None) -> QueueObserver | None:
        """Return the observer of a new queue, which passes all events on to `other`."""
