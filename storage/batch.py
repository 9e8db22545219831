"""Changes on their way to a store."""

from typing import Final, final

from mypy_extensions import i64

from storage.ids import IdChanges
from storage.records import StoredId, StoredMessage, StoredNode, StoredSubscription


@final
class Batch:
    """Changes that become durable together, or not at all. Noting one costs no I/O.

    A message that comes and goes in one batch leaves no trace. Removals of nodes and
    subscriptions take effect first, then additions, then messages: what was noted for a
    queue before its removal is taken back here.
    """

    def __init__(self) -> None:
        self.appended: Final[list[StoredMessage | None]] = []
        self.removed: Final[list[int]] = []
        self.fallen_due: Final[list[tuple[int, int]]] = []
        self.counted: Final[list[tuple[int, int]]] = []
        self.rewritten: Final[list[tuple[int, bytes]]] = []
        self.nodes_added: Final[list[StoredNode]] = []
        self.nodes_removed: Final[list[StoredNode]] = []
        self.subscriptions_added: Final[list[StoredSubscription]] = []
        self.subscriptions_removed: Final[list[str]] = []
        self.ids: IdChanges | None = None
        self._first: i64 = 0
        self._left: i64 = 0

    def append(self, message: StoredMessage) -> None:
        """Add `message` to its queue at its position. Numbers ascend by one within a batch."""
        if not self.appended:
            self._first = message.number
        elif message.number != self._first + len(self.appended):
            raise ValueError(f"message {message.number} is not the next one of its batch")
        self.appended.append(message)
        self._left += 1

    def remove(self, number: i64) -> None:
        """Forget a message. One that is gone already stays gone."""
        index = number - self._first
        if self.appended and 0 <= index < i64(len(self.appended)):
            if self.appended[index] is not None:
                self.appended[index] = None
                self._left -= 1
            return
        self.removed.append(int(number))

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

    def add_node(self, node: StoredNode) -> None:
        """Remember a queue or topic. Adding it again changes nothing."""
        self.nodes_added.append(node)

    def remove_node(self, node: StoredNode) -> None:
        """Forget a queue or topic with all of its messages."""
        self.nodes_removed.append(node)
        self.nodes_added[:] = [added for added in self.nodes_added if not _are_same(added, node)]
        if node.kind == "queue":
            self._take_back(node.address)
        if self.ids is not None:
            self.ids.node_removed(node)

    def add_subscription(self, subscription: StoredSubscription) -> None:
        """Remember a subscription. One of its queue has not been added before."""
        self.subscriptions_added.append(subscription)

    def remove_subscription(self, queue: str) -> None:
        """Forget a subscription with all of its messages. One that is gone stays gone."""
        self.subscriptions_removed.append(queue)
        added = self.subscriptions_added
        added[:] = [subscription for subscription in added if subscription.queue != queue]
        self._take_back(queue)

    def _take_back(self, queue: str) -> None:
        for index, message in enumerate(self.appended):
            if message is not None and message.queue == queue:
                self.appended[index] = None
                self._left -= 1

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

    def is_empty(self) -> bool:
        """Whether there is nothing to be written, so that a commit could be spared."""
        return self._left == 0 and not (
            self.removed
            or self.fallen_due
            or self.counted
            or self.rewritten
            or self.nodes_added
            or self.nodes_removed
            or self.subscriptions_added
            or self.subscriptions_removed
            or self.ids is not None
        )


def _are_same(one: StoredNode, other: StoredNode) -> bool:
    return one.kind == other.kind and one.address == other.address
