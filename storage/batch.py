"""Changes to a store that are committed together."""

from typing import Final, final

from mypy_extensions import i64

from storage.contents import ContentChanges
from storage.events import EventChanges, EventRow, Trim
from storage.ids import IdChanges
from storage.leases import LeaseChanges
from storage.records import StoredId, StoredMessage, StoredNode, StoredSubscription
from storage.stages import StageChanges
from storage.unsettled import UnsettledChanges
from storage.users import UserChanges

OVERHEAD: Final[i64] = 512
"""Bytes of memory, estimated, that a message takes besides its content until it is committed."""

DISCHARGE: Final[i64] = -2
"""Scope of messages that must not be delivered before they are durable: those that are sent in a
transaction, committed from a stage, or moved to another queue."""


@final
class Batch:
    """Changes that become durable together, or not at all. Noting a change costs no I/O.

    A message that is added and removed in one batch leaves no trace. Removals of nodes and
    subscriptions take effect first, then additions, then messages: messages noted for a
    queue before its removal are taken back here.

    `consumed` holds the indexes in `appended` of messages that consumers have settled since the
    journal last cleared it. `is_urgent`: a change in here must be committed without delay.
    `stores_all`: messages are stored now whether they are durable or not. `has_volatile`: a
    volatile message was added, even if it is cancelled since.
    `page` differs from one batch to the next, and so does `scope`, unless it is DISCHARGE.
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
        self.subscription_owners: Final[dict[str, str]] = {}
        self.subscription_changes: i64 = 0
        self.ids: IdChanges | None = None
        self.contents: ContentChanges | None = None
        self.events: EventChanges | None = None
        self.stages: StageChanges | None = None
        self.leases: LeaseChanges | None = None
        self.users: UserChanges | None = None
        self.unsettled: UnsettledChanges | None = None
        self._first: i64 = 0
        self._left: i64 = 0
        # the numbers of the messages below `_sorted_up_to`, by queue, once a queue has gone
        self._of_queue: dict[str, list[int]] | None = None
        self._sorted_up_to: i64 = 0

    def append(self, message: StoredMessage) -> None:
        """Add `message` to its queue at its position.

        Numbers ascend by one within a batch, else ValueError is raised.
        """
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
        """Delete a message. No effect if it is gone already."""
        index = number - self._first
        if self.appended and 0 <= index < i64(len(self.appended)):
            self._cancel(index)
        else:
            self.removed.append(int(number))

    def consume(self, number: i64) -> None:
        """Delete a message that a consumer has settled; note it in `consumed` if it is in here."""
        index = number - self._first
        if self.appended and 0 <= index < i64(len(self.appended)):
            if self._cancel(index):
                self.consumed.append(int(index))
        else:
            self.removed.append(int(number))

    def _cancel(self, index: i64) -> bool:
        """Take back a message of this batch. Return False if that has been done already."""
        message = self.appended[index]
        if message is None:
            return False
        self.appended[index] = None
        self.bytes -= len(message.encoded)
        self._left -= 1
        return True

    def forget_first(self, count: i64) -> None:
        """Remove the first `count` entries of `appended`, which must all be cancelled."""
        del self.appended[: int(count)]
        self._first += count

    def memory(self) -> i64:
        """Return about how many bytes of memory the messages take until they are written."""
        return self.bytes + self._left * OVERHEAD

    def last_number(self) -> i64:
        """Return the highest number of a message here, cancelled or not; -1 if there is none."""
        return self._first + len(self.appended) - 1 if self.appended else i64(-1)

    def fall_due(self, number: i64, position: i64) -> None:
        """Clear the delivery time of a message, and give it its position in the queue.

        No effect if the message is gone.
        """
        self.fallen_due.append((int(number), int(position)))

    def count(self, number: i64, delivery_count: i64) -> None:
        """Store the number of a message's failed deliveries."""
        self.counted.append((int(number), int(delivery_count)))

    def rewrite(self, number: i64, encoded: bytes) -> None:
        """Replace a message's bytes. No effect if the message is gone."""
        self.rewritten.append((int(number), encoded))

    def mark_delivered(self, queue: str, position: i64) -> None:
        """Note that messages of `queue` up to `position` may have been delivered from now on."""
        self.delivered[queue] = int(position)

    def has(self, number: i64) -> bool:
        """Return whether the message of that number was added in this batch and not taken back."""
        index = number - self._first
        if not self.appended or index < 0 or index >= len(self.appended):
            return False
        return self.appended[index] is not None

    def add_node(self, node: StoredNode) -> None:
        """Add a queue or topic. No effect if it is there already."""
        self.is_urgent = True
        self.nodes_added.append(node)

    def remove_node(self, node: StoredNode) -> None:
        """Remove a queue or topic with all of its messages."""
        self.is_urgent = True
        self.nodes_removed.append(node)
        self.nodes_added[:] = [added for added in self.nodes_added if not _are_same(added, node)]
        if node.kind == "queue":
            self._take_back(node.address)
        if self.ids is not None:
            self.ids.node_removed(node)

    def add_subscription(self, subscription: StoredSubscription) -> None:
        """Add a subscription. No subscription with its `queue` may ever have been added before."""
        self.is_urgent = True
        self.subscription_changes += 1
        self.subscriptions_added.append(subscription)

    def remove_subscription(self, queue: str) -> None:
        """Remove a subscription with all of its messages. No effect if it is gone."""
        self.is_urgent = True
        self.subscription_changes += 1
        self.subscriptions_removed.append(queue)
        self.subscription_owners.pop(queue, None)
        added = self.subscriptions_added
        added[:] = [subscription for subscription in added if subscription.queue != queue]
        self._take_back(queue)

    def own_subscription(self, queue: str, owner: str) -> None:
        """Note that the stored subscription of `queue` belongs to the user `owner` from now on."""
        self.is_urgent = True
        self.subscription_changes += 1
        self.subscription_owners[queue] = owner

    def _take_back(self, queue: str) -> None:
        self.delivered.pop(queue, None)
        for number in self._by_queue().pop(queue, []):
            index = i64(number) - self._first
            if index >= 0:  # else it was cancelled, and forgotten
                self._cancel(index)

    def _by_queue(self) -> dict[str, list[int]]:
        """Return the numbers of the messages by queue; each message is looked at but once.

        A page that is held may have very many messages, and lose many queues.
        """
        found = self._of_queue
        if found is None:
            found = self._of_queue = {}
        index: i64 = max(self._sorted_up_to - self._first, 0)
        while index < i64(len(self.appended)):
            message = self.appended[index]
            if message is not None:
                found.setdefault(message.queue, []).append(int(self._first + index))
            index += 1
        self._sorted_up_to = self._first + index
        return found

    def remember(self, stored: StoredId) -> None:
        """Add the id of a message that was received (duplicate detection)."""
        if self.ids is None:
            self.ids = IdChanges()
        self.ids.remember(stored)

    def forget(self, number: i64) -> None:
        """Remove a remembered id. No effect if it is gone."""
        if self.ids is None:
            self.ids = IdChanges()
        self.ids.forget(number)

    def content_changes(self) -> ContentChanges:
        """Return the changes to contents: chunks of large messages, and uses of contents."""
        if self.contents is None:
            self.contents = ContentChanges()
        return self.contents

    def stage_changes(self) -> StageChanges:
        """Return the changes to stages and sinks; the batch becomes urgent."""
        self.is_urgent = True
        if self.stages is None:
            self.stages = StageChanges()
        return self.stages

    def lease_changes(self) -> LeaseChanges:
        """Return the changes to leases; the batch becomes urgent, since a client awaits them."""
        self.is_urgent = True
        if self.leases is None:
            self.leases = LeaseChanges()
        return self.leases

    def user_changes(self) -> UserChanges:
        """Return the changes to users; the batch becomes urgent, since an operator awaits them."""
        self.is_urgent = True
        if self.users is None:
            self.users = UserChanges()
        return self.users

    def unsettled_changes(self) -> UnsettledChanges:
        """Return the changes to outcomes that their senders have not settled."""
        if self.unsettled is None:
            self.unsettled = UnsettledChanges()
        return self.unsettled

    def note_event(self, row: EventRow) -> None:
        """Add a row to the event log. Ids ascend, also from batch to batch."""
        if self.events is None:
            self.events = EventChanges()
        self.events.rows.append(row)

    def trim_events(self, trim: Trim) -> None:
        """Remove old rows of the event log."""
        if self.events is None:
            self.events = EventChanges()
        self.events.trim = trim

    def is_empty(self) -> bool:
        """Return whether there is nothing to write, so that the commit can be skipped."""
        return self._left == 0 and not self.changes_others()

    def changes_others(self) -> bool:
        """Return whether there is more to write than added messages."""
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
            or self.subscription_owners
            or self.ids is not None
            or self.contents is not None
            or self.events is not None
            or self.stages is not None
            or self.leases is not None
            or self.users is not None
            or self.unsettled is not None
        )


def _are_same(one: StoredNode, other: StoredNode) -> bool:
    return one.kind == other.kind and one.address == other.address
