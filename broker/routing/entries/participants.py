"""The parties of a node as it sees them: who puts messages in, who takes them out, who looks on."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.redelivery import Disposal
from broker.routing.entries.rescan import RescanSet
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.entries.dead_letter import Cause
    from broker.routing.queues.queue import Queue


@final
class Label:
    """By what an operator knows a consumer: its client, its link, and connection/channel."""

    def __init__(self, container_id: str = "", link: str = "", session: str = "") -> None:
        self.container_id: Final = container_id
        self.link: Final = link
        self.session: Final = session


NOBODY: Final = Label()


@mypyc_attr(allow_interpreted_subclasses=True)
class Consumer:
    """Takes entries from one queue.

    `has_room` and `deliver` are called per message; the rest is rare. Of higher
    `priority` it comes before others, `exclusive` it has the queue for itself. `number`
    and `passed` belong to the queue: which of its consumers this one is, and
    up to which position of each priority nothing waits that it may have, but for what
    `rescan` knows. `filter` says what of a queue it wants, None that it wants everything.
    `failures` counts the attempts with it that failed. `leases`: it is a lease, which keeps
    what it takes over a restart.
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

    def label(self) -> Label:
        """By what an operator knows it."""
        return NOBODY

    def memory_freed(self) -> None:
        """Take more from the queue: what consumers hold takes less memory than it may."""

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

    def narrow(self) -> None:
        """The node's headway is less than it was: take back credit beyond it."""

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
class QueueObserver:
    """Hears what happens to messages, as it happens; `batch` is the one that has the change.

    Queues whose address keeps a journal have one, and all queues of an embedded broker.
    """

    def admitted(self, entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
        """`entry` waits for consumers now, or until `deliver_at_ms` first."""

    def delivered(self, entry: QueueEntry, batch: Batch) -> None:
        """`entry` goes to `entry.consumer`."""

    def settled(
        self, entry: QueueEntry, disposal: Disposal, batch: Batch, *, cause: Cause | None = None
    ) -> None:
        """A delivery of `entry`, which is still as it was sent, ends as `disposal` says."""

    def departed(self, entry: QueueEntry, kind: str, batch: Batch, *, reason: str = "") -> None:
        """`entry` goes from its queue otherwise than to a consumer: by which event, and why."""

    def dropped(self, queue: Queue, messages: i64, batch: Batch, *, why: str) -> None:
        """So many messages went from `queue` together, unseen."""
