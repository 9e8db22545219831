"""What a store holds becomes nodes, subscriptions and messages again, before anybody connects."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.terminus import filter_from
from broker.links.filters import in_force
from broker.routing.entry import QueueEntry
from broker.routing.queue import Queue
from broker.routing.router import Router
from broker.routing.stored import as_message
from broker.routing.subscription import Interest, Terms
from storage.batch import Batch
from storage.records import StoredId, StoredMessage, StoredNode, StoredSubscription


@final
class Recovery:
    """Takes records in any order within their kind: nodes first, then subscriptions, then messages.

    Where the broker `was_cut_off`, any message may have been delivered, and says so (RCV-08):
    an alarm that may be false, but is never missing. Nothing is held against the redelivery limit.
    Messages come by number, which is the order of commits; a queue's own order is that of their
    positions, so they gather here until `finish`.
    """

    def __init__(self, router: Router, batch: Batch, *, was_cut_off: bool) -> None:
        self._router: Final = router
        self._was_cut_off: Final = was_cut_off
        self._batch: Final = batch
        self._queues: Final[dict[str, Queue]] = {}
        self._messages: Final[dict[str, list[StoredMessage]]] = {}

    def node(self, stored: StoredNode) -> None:
        """A queue or topic."""
        self._router.bring_back(stored)

    def subscription(self, stored: StoredSubscription) -> None:
        """A durable subscription, bound anew."""
        filters = in_force([filter_from(key, encoded) for key, encoded in stored.filters])
        interest = Interest(stored.address, filters.of(stored.excluded_publisher), filters.stated)
        terms = Terms(
            durability=stored.durability,
            expiry_policy=stored.expiry_policy,
            timeout_s=stored.timeout_s,
        )
        made = self._router.subscriptions.bring_back(stored, interest, terms, batch=self._batch)
        if not made.is_over:
            self._queues[stored.queue] = made.queue

    def remembered_id(self, stored: StoredId) -> None:
        """The id of a message that came to a node; forgotten where that detects none any more."""
        self._router.duplicates.has_been_given(stored.number)
        node = self._router.find(stored.address, stored.kind)
        if node is None or node.duplicates is None:
            self._batch.forget(stored.number)
        else:
            node.duplicates.bring_back(stored, self._batch)

    def message(self, stored: StoredMessage) -> None:
        """A message, for its queue."""
        self._messages.setdefault(stored.queue, []).append(stored)

    def finish(self) -> i64:
        """Give every queue its messages in their order; how many there are."""
        count: i64 = 0
        for name, messages in self._messages.items():
            queue = self._queues.get(name) or self._router.queues.get(name)
            if queue is None:
                continue  # a subscription that has just ended, with all that it had
            messages.sort(key=_position)
            for stored in messages:
                entry = _entry(queue, stored)
                if self._was_cut_off:
                    entry.delivery_count = max(1, entry.delivery_count)
                queue.bring_back(entry, stored.deliver_at_ms)
            count += len(messages)
        self._messages.clear()
        return count


def _entry(queue: Queue, stored: StoredMessage) -> QueueEntry:
    entry = QueueEntry(queue, as_message(stored), stored.position // 10)
    entry.stored_number = stored.number
    entry.delivery_count = stored.delivery_count
    return entry


def _position(stored: StoredMessage) -> int:
    return int(stored.position)
