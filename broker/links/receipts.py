"""Consumers without links: each takes one message, which its receipt holds for a time.

A receipt belongs to the user that took the message. Unless that user accepts, releases, rejects or
renews it in time, the message returns to its queue as from a link that has ended: that raises its
delivery-count, and does not count towards the redelivery limit (RCV-08).
"""

from __future__ import annotations

from collections.abc import Callable
from secrets import token_urlsafe
from typing import Final, final

from mypy_extensions import i64

from broker.links.access import (
    RECEIVE,
    Right,
    demand_consumable,
    demand_receiving,
    dynamic_resource,
    node_resource,
)
from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.links.posting import refuse_service
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.participants import Consumer, Label
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import LimitReached, NoSuchNode
from broker.routing.queues.node import QUEUE
from broker.routing.queues.queue import Queue
from broker.routing.timer_queue import TimerCallback

ID_BYTES: Final = 24
"""Random bytes of a receipt's id."""

EXPIRED: Final = Disposal.COUNT
"""Disposal of a message whose receipt has expired: its client may have had it."""


@final
class SingleConsumer(Consumer):
    """A consumer of one message of a queue, for a `client` without a link.

    `entry` is the message once it has been delivered. `notify` is called when it is, when a drain
    ends without one (`is_over`), and when the queue was deleted (`is_deleted`). `has_receipt`: a
    receipt settles the message. The consumer stays attached while it holds the message, so that
    the rest of its group waits.
    """

    def __init__(
        self,
        client: LinklessClient,
        queue: Queue,
        notify: Callable[[], None],
        *,
        wanted: ConsumerFilter | None = None,
    ) -> None:
        self.filter = wanted
        self.queue: Final = queue
        self.entry: QueueEntry | None = None
        self.is_over = False
        self.is_deleted = False
        self.has_receipt = False
        self.client: Final = client
        self._container: Final = client.container
        self._memory: Final = client.container.router.memory
        self._notify: Final = notify
        self._name: Final = client.entrance.address
        self._waits = False

    def begin(self, *, drain: bool) -> None:
        """Attach, and wait for a message; with `drain` only for one that is ready."""
        self._waits = True
        self.queue.attach_consumer(self)
        self.queue.consumer_ready(self, drain=drain)

    def settle(self, disposal: Disposal) -> None:
        """End the delivery of the message, and detach."""
        entry = self.entry
        self.entry = None
        batch = self._container.journal.batch
        if entry is not None and disposal is Disposal.REMOVE:
            self.queue.accept(entry, batch)
        elif entry is not None:
            self.queue.dispose(entry, disposal, batch)
        self.leave()

    def leave(self) -> None:
        """Detach without a message. Idempotent."""
        self._memory.consumers.pop(self, None)
        if self._waits:
            self._waits = False
            self.queue.detach_consumer(self, self.queue, self._container.journal.batch)
            self.queue.note_use_ended()

    # -- as a consumer

    def has_room(self) -> bool:
        if self.entry is not None or not self._waits:
            return False
        if self._memory.held_is_full():
            self._memory.consumers[self] = None
            return False
        return True

    def memory_freed(self) -> None:
        self._memory.consumers.pop(self, None)
        if self.has_credit():
            self.queue.consumer_ready(self, drain=False)

    def has_credit(self) -> bool:
        return self._waits and self.entry is None and not self.is_over

    def deliver(self, entry: QueueEntry) -> None:
        self._container.stats.delivered += 1
        self.entry = entry
        self._notify()

    def browsed(self, entry: QueueEntry) -> None:  # noqa: ARG002 - never called
        raise AssertionError("a consumer gets no copies")

    def nothing_waits(self) -> None:
        if self.entry is None:
            self.is_over = True
            self._notify()

    def label(self) -> Label:
        return Label("", self._name)

    def node_deleted(self) -> None:
        self._waits = False
        self.is_deleted = True
        self._memory.consumers.pop(self, None)
        if self.entry is not None:
            self._memory.dropped(self.entry.message)
            self.entry = None
        self._notify()


@final
class MessageReceipt(TimerCallback):
    """The right of a user to settle one message; `expires_ms` is on the steady clock."""

    def __init__(
        self, receipts: Receipts, taken: SingleConsumer, *, user: str, right: Right
    ) -> None:
        self.id: Final = token_urlsafe(ID_BYTES)
        self.user: Final = user
        self.right: Final = right
        self.taken: Final = taken
        self.expires_ms: i64 = 0
        self.is_settled = False
        self._receipts: Final = receipts

    def due(self, now_ms: i64) -> None:
        if not self.is_settled and now_ms >= self.expires_ms:
            self._receipts.settle(self, EXPIRED)

    def is_abandoned(self) -> bool:
        return self.is_settled


@final
class Receipts:
    """The receipts of all users: at most `per_user` of each, each for `lock_ms`."""

    def __init__(self, container: Container, *, per_user: i64, lock_ms: i64) -> None:
        self.lock_ms: Final[i64] = lock_ms
        self._container: Final = container
        self._per_user: Final[i64] = per_user
        self._by_id: Final[dict[str, MessageReceipt]] = {}
        self._counts: Final[dict[str, int]] = {}

    def check_room(self, user: str) -> None:
        """Raise LimitReached if `user` may have no further receipt."""
        if i64(self._counts.get(user, 0)) >= self._per_user:
            raise LimitReached(f"user {user or 'anonymous'} has its {self._per_user} receipts")

    def issue(self, client: LinklessClient, taken: SingleConsumer, right: Right) -> MessageReceipt:
        """Return a receipt for the message that `taken` holds."""
        user = client.identity.user
        receipt = MessageReceipt(self, taken, user=user, right=right)
        taken.has_receipt = True
        self._by_id[receipt.id] = receipt
        self._counts[user] = self._counts.get(user, 0) + 1
        self.renew(receipt)
        return receipt

    def find(self, client: LinklessClient, id_: str) -> MessageReceipt:
        """Return a receipt of the client's user.

        Raise NoSuchNode if there is none, also if it is another user's, and NotPermitted if the
        user has lost the right to receive.
        """
        receipt = self._by_id.get(id_)
        if receipt is None or receipt.user != client.identity.user:
            raise NoSuchNode("no such receipt: it was settled, it has expired, or never was")
        if receipt.taken.entry is None:
            self._forget(receipt)
            raise NoSuchNode("the queue of this receipt was deleted")
        client.demand(receipt.right.verb, receipt.right.resource)
        return receipt

    def renew(self, receipt: MessageReceipt) -> None:
        """Let a receipt expire `lock_ms` from now."""
        now_ms = self._container.clock.now_ms()
        receipt.expires_ms = now_ms + self.lock_ms
        self._container.router.timer_queue.at(receipt.expires_ms, receipt)

    def settle(self, receipt: MessageReceipt, disposal: Disposal) -> None:
        """End a receipt and the delivery of its message. A round of work must follow."""
        self._forget(receipt)
        receipt.taken.settle(disposal)

    def _forget(self, receipt: MessageReceipt) -> None:
        receipt.is_settled = True
        del self._by_id[receipt.id]
        left = self._counts[receipt.user] - 1
        if left > 0:
            self._counts[receipt.user] = left
        else:
            del self._counts[receipt.user]
        self._container.router.timer_queue.abandon(1)


def queue_to_receive(client: LinklessClient, text: str, *, copies: bool) -> tuple[Queue, Right]:
    """Return the queue of an address, and the right that receiving from it needs.

    It is created if it does not exist, unless it is to be browsed (`copies`). Raise RoutingError if
    the client may not do so, whether it exists or not.
    """
    container = client.container
    address = container.router.parse(text, QUEUE)
    refuse_service(container, address)
    demand_receiving(client, address, copies=copies, creates=not copies)
    node = client.resolve(address, create=not copies)
    demand_consumable(client, node)
    assert isinstance(node, Queue)
    resource = dynamic_resource(node) if node.is_temporary else node_resource(address)
    return node, Right(RECEIVE, resource)
