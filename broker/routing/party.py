"""The parties of a node as it sees them: who puts messages in, who takes them out, who looks on."""

from abc import abstractmethod

from mypy_extensions import i64, mypyc_attr

from broker.routing.entry import QueueEntry
from broker.routing.filter import Filter
from broker.routing.redelivery import Disposal
from broker.routing.revisit import Revisit


@mypyc_attr(allow_interpreted_subclasses=True)
class Consumer:
    """Takes entries from one queue.

    `has_room` and `deliver` are called per message; the rest is rare. Of higher
    `priority` it comes before others, `exclusive` it has the queue for itself. `number`
    and `passed` belong to the queue: which of its consumers this one is, and
    up to which position of each priority nothing waits that it may have, but for what
    `revisit` knows. `filter` says what of a queue it wants, None that it wants everything.
    `failures` counts the attempts with it that failed.
    """

    filter: Filter | None = None
    number: i64 = 0
    passed: list[int] | None = None
    revisit: Revisit | None = None
    priority: i64 = 0
    exclusive: bool = False
    failures: i64 = 0

    @abstractmethod
    def has_room(self) -> bool:
        """Whether `deliver` may be called: there is credit, and nothing holds up output."""

    @abstractmethod
    def has_credit(self) -> bool:
        """Whether the peer still waits for messages, room or not."""

    @abstractmethod
    def deliver(self, entry: QueueEntry) -> None:
        """Send `entry`, which is acquired for this consumer until it is disposed of."""

    @abstractmethod
    def browsed(self, entry: QueueEntry) -> None:
        """Send a copy of `entry`, which stays where it is."""

    @abstractmethod
    def nothing_waits(self) -> None:
        """The queue holds nothing more that this consumer could take: a drain is over."""

    @abstractmethod
    def node_deleted(self) -> None:
        """The node has gone, and with it all entries."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Producer:
    """Puts messages into a node, as fast as it is granted credit.

    `counted`, `seen` and `is_recalled` belong to the node's `Grants`: how much of
    its credit counts as taken, how much that was at the last look, and whether
    it has been asked to give it back.
    """

    counted: i64 = 0
    seen: i64 = -1
    is_recalled: bool = False

    @abstractmethod
    def resume(self) -> None:
        """The node has room again: grant credit."""

    @abstractmethod
    def most(self) -> i64:
        """How much credit it may have at most."""

    @abstractmethod
    def outstanding(self) -> i64:
        """How much credit it has not used."""

    @abstractmethod
    def grant(self, credit: i64) -> None:
        """It may put so many messages more."""

    @abstractmethod
    def recall(self) -> None:
        """It is to use its credit at once, or give it back."""

    @abstractmethod
    def node_gone(self) -> None:
        """The node was deleted."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Witness:
    """Hears how deliveries end. Only an embedded broker has one."""

    @abstractmethod
    def settled(self, entry: QueueEntry, disposal: Disposal) -> None:
        """A delivery of `entry`, which is still as it was sent, ends as `disposal` says."""
