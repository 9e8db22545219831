"""Changes on their way to a store."""

from typing import Final, final

from mypy_extensions import i64

from storage.contents import ContentChanges
from storage.events import EventChanges, EventRow, Trim
from storage.ids import IdChanges
from storage.leases import LeaseChanges
from storage.records import StoredId, StoredMessage, StoredNode, StoredSubscription
from storage.stages import StageChanges

OVERHEAD: Final[i64] = 512
"""Bytes of memory that a message takes beside its content, where it waits for a commit."""

DISCHARGE: Final[i64] = -2
"""The scope of what may reach nobody before it is durable: the messages of a transaction."""


@final
class Batch:
    """Changes that become durable together, or not at all. Noting one costs no I/O.

    A message that comes and goes in one batch leaves no trace. Removals of nodes and
    subscriptions take effect first, then additions, then messages: what was noted for a
    queue before its removal is taken back here.

    `consumed` are the places in `appended` of those that consumers settled since somebody
    last asked. `is_urgent`: there is something here that nobody should have to wait for.
    `stores_all`: what comes now is kept whether it is durable or not. `has_volatile`: a volatile
    message has come here, be it cancelled since.
    `page` tells one batch from the next, and so does `scope`, unless it is DISCHARGE.
    """

    def __init__(self, page: i64 = 0) -> None:
        self.page: Final[i64] = page
        self.scope: i64 = page
        self.is_urgent = False
        self.stores_all = False
        self.has_volatile = False
        self.bytes: i64 = 0
        self.consumed: Final[list[int]] = []
        self.appended: Final[list[StoredMessage | None]] = []
        self.removed: Final[list[int]] = []
        self.fallen_due: Final[list[tuple[int, int]]] = []
        self.counted: Final[list[tuple[int, int]]] = []
        self.rewritten: Final[list[tuple[int, bytes]]] = []
        self.delivered: Final[dict[str, int]] = {}
        self.nodes_added: Final[list[StoredNode]] = []
        self.nodes_removed: Final[list[StoredNode]] = []
        self.subscriptions_added: Final[list[StoredSubscription]] = []
        self.subscriptions_removed: Final[list[str]] = []
        self.subscription_changes: i64 = 0
        self.ids: IdChanges | None = None
        self.contents: ContentChanges | None = None
        self.events: EventChanges | None = None
        self.stages: StageChanges | None = None
        self.leases: LeaseChanges | None = None
        self._first: i64 = 0
        self._left: i64 = 0

    def append(self, message: StoredMessage) -> None:
        """Add `message` to its queue at its position. Numbers ascend by one within a batch."""
        if not self.appended:
            self._first = message.number
        elif message.number != self._first + len(self.appended):
            raise ValueError(f"message {message.number} is not the next one of its batch")
        self.appended.append(message)
        self.bytes += len(message.encoded)
        if message.content is not None:
            self.content_changes()
        if message.volatile:
            self.has_volatile = True
        self._left += 1

    def remove(self, number: i64) -> None:
        """Forget a message. One that is gone already stays gone."""
        index = number - self._first
        if self.appended and 0 <= index < i64(len(self.appended)):
            self._cancel(index)
        else:
            self.removed.append(int(number))

    def consume(self, number: i64) -> None:
        """The same, where a consumer has settled the message: nobody needs it any more."""
        index = number - self._first
        if self.appended and 0 <= index < i64(len(self.appended)):
            if self._cancel(index):
                self.consumed.append(int(index))
        else:
            self.removed.append(int(number))

    def _cancel(self, index: i64) -> bool:
        """Let a message of this batch never have come; False where it has not."""
        message = self.appended[index]
        if message is None:
            return False
        self.appended[index] = None
        self.bytes -= len(message.encoded)
        self._left -= 1
        return True

    def forget_first(self, count: i64) -> None:
        """Give back the places of the first messages, which are all cancelled."""
        del self.appended[: int(count)]
        self._first += count

    def memory(self) -> i64:
        """About how many bytes the messages take until they are written."""
        return self.bytes + self._left * OVERHEAD

    def last_number(self) -> i64:
        """The highest number of a message here, cancelled or not; -1 where there is none."""
        return self._first + len(self.appended) - 1 if self.appended else i64(-1)

    def fall_due(self, number: i64, position: i64) -> None:
        """Give a message that had a delivery time its place; it has none any more.

        One that is gone stays gone.
        """
        self.fallen_due.append((int(number), int(position)))

    def count(self, number: i64, delivery_count: i64) -> None:
        """Remember how many deliveries of a message have failed."""
        self.counted.append((int(number), int(delivery_count)))

    def rewrite(self, number: i64, encoded: bytes) -> None:
        """Remember a message's bytes anew. One that is gone stays gone."""
        self.rewritten.append((int(number), encoded))

    def mark_delivered(self, queue: str, position: i64) -> None:
        """From now on messages of `queue` up to that position may have been delivered."""
        self.delivered[queue] = int(position)

    def has(self, number: i64) -> bool:
        """Whether the message of that number has come in this batch, and is in it."""
        index = number - self._first
        if not self.appended or index < 0 or index >= len(self.appended):
            return False
        return self.appended[index] is not None

    def add_node(self, node: StoredNode) -> None:
        """Remember a queue or topic. Adding it again changes nothing."""
        self.is_urgent = True
        self.nodes_added.append(node)

    def remove_node(self, node: StoredNode) -> None:
        """Forget a queue or topic with all of its messages."""
        self.is_urgent = True
        self.nodes_removed.append(node)
        self.nodes_added[:] = [added for added in self.nodes_added if not _are_same(added, node)]
        if node.kind == "queue":
            self._take_back(node.address)
        if self.ids is not None:
            self.ids.node_removed(node)

    def add_subscription(self, subscription: StoredSubscription) -> None:
        """Remember a subscription. One of its queue has not been added before."""
        self.is_urgent = True
        self.subscription_changes += 1
        self.subscriptions_added.append(subscription)

    def remove_subscription(self, queue: str) -> None:
        """Forget a subscription with all of its messages. One that is gone stays gone."""
        self.is_urgent = True
        self.subscription_changes += 1
        self.subscriptions_removed.append(queue)
        added = self.subscriptions_added
        added[:] = [subscription for subscription in added if subscription.queue != queue]
        self._take_back(queue)

    def _take_back(self, queue: str) -> None:
        self.delivered.pop(queue, None)
        for index, message in enumerate(self.appended):
            if message is not None and message.queue == queue:
                self._cancel(index)

    def remember(self, stored: StoredId) -> None:
        """Keep the id of a message that has come (duplicate detection)."""
        if self.ids is None:
            self.ids = IdChanges()
        self.ids.remember(stored)

    def forget(self, number: i64) -> None:
        """Keep a remembered id no longer. One that is gone stays gone."""
        if self.ids is None:
            self.ids = IdChanges()
        self.ids.forget(number)

    def content_changes(self) -> ContentChanges:
        """What becomes of contents: chunks of large messages, and who uses them."""
        if self.contents is None:
            self.contents = ContentChanges()
        return self.contents

    def stage_changes(self) -> StageChanges:
        """What becomes of stages, and of the sinks that commit them."""
        self.is_urgent = True
        if self.stages is None:
            self.stages = StageChanges()
        return self.stages

    def lease_changes(self) -> LeaseChanges:
        """What becomes of leases, for which somebody waits."""
        self.is_urgent = True
        if self.leases is None:
            self.leases = LeaseChanges()
        return self.leases

    def note_event(self, row: EventRow) -> None:
        """Add to the event log; ids ascend, also from batch to batch."""
        if self.events is None:
            self.events = EventChanges()
        self.events.rows.append(row)

    def trim_events(self, trim: Trim) -> None:
        """Remove old rows of the event log."""
        if self.events is None:
            self.events = EventChanges()
        self.events.trim = trim

    def is_empty(self) -> bool:
        """Whether there is nothing to be written, so that a commit could be spared."""
        return self._left == 0 and not self.changes_others()

    def changes_others(self) -> bool:
        """Whether there is more to be written than messages that have come."""
        return bool(
            self.removed
            or self.fallen_due
            or self.counted
            or self.rewritten
            or self.delivered
            or self.nodes_added
            or self.nodes_removed
            or self.subscriptions_added
            or self.subscriptions_removed
            or self.ids is not None
            or self.contents is not None
            or self.events is not None
            or self.stages is not None
            or self.leases is not None
        )


def _are_same(one: StoredNode, other: StoredNode) -> bool:
    return one.kind == other.kind and one.address == other.address
