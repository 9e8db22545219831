"""A message's place in one queue, and the history of its deliveries there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i32, i64, mypyc_attr

from broker.amqp.delivery import Delivery
from broker.message import Message
from broker.routing.entries.redelivery import pause_after

if TYPE_CHECKING:
    from broker.routing.entries.groups import Group
    from broker.routing.entries.participants import Consumer
    from broker.routing.queues.queue import Queue


NOT_STORED: Final[i64] = 0


@mypyc_attr(acyclic=True)
@final
class QueueEntry(Delivery):
    """One message in one queue; while a consumer holds it, also the record of its delivery.

    `position` orders it among the entries of its priority, for good; a scheduled message gets its
    final one when it falls due. `stored_number` names it to the store, NOT_STORED if it is not
    there; `is_volatile`: the store keeps it only until it is opened again. `delivery_count` is what
    the peer sees (RCV-01), `failures` is what counts against the redelivery limit (RCV-08).
    """

    def __init__(self, queue: Queue, message: Message, position: i64) -> None:
        super().__init__()
        self.queue = queue
        self.message = message
        self.position: i64 = position
        self.stored_number: i64 = NOT_STORED
        self.is_volatile = False
        self.failures: i32 = 0
        self.delivery_count: i64 = 0
        self.consumer: Consumer | None = None
        self.history: DeliveryHistory | None = None
        self.group: Group | None = None

    def may_go_to(self, consumer: i64, now_ms: i64) -> bool:
        """Return whether the consumer of that number may have this entry now."""
        history = self.history
        while history is not None:
            if history.consumer == consumer:
                return not history.refused and history.paused_until_ms <= now_ms
            history = history.next
        return True

    def is_paused_for(self, consumer: i64) -> bool:
        """Return whether the consumer of that number may have this entry later, if not now."""
        history = self.history
        while history is not None:
            if history.consumer == consumer:
                return not history.refused
            history = history.next
        return False

    def history_with(self, consumer: i64, consumers: list[Consumer]) -> DeliveryHistory:
        """Return the history of this entry with the consumer of that number; begin it if missing.

        Beginning one drops those of consumers that are not in `consumers`, which are sorted by
        ascending number.
        """
        history = self.history
        while history is not None:
            if history.consumer == consumer:
                return history
            history = history.next
        if self.history is not None:
            self._forget_others(consumers)
        self.history = DeliveryHistory(consumer, self.history)
        return self.history

    def _forget_others(self, consumers: list[Consumer]) -> None:
        kept: DeliveryHistory | None = None
        history = self.history
        while history is not None:
            following = history.next
            if _is_among(consumers, history.consumer):
                history.next = kept
                kept = history
            history = following
        self.history = kept


@mypyc_attr(acyclic=True)
@final
class DeliveryHistory:
    """The history of an entry with one consumer; `next` is that with another consumer."""

    def __init__(self, consumer: i64, following: DeliveryHistory | None) -> None:
        # the consumer's number, because a reference would keep alive a link that has ended
        self.consumer: Final[i64] = consumer
        self.refused = False
        self.releases: i64 = 0
        self.failures_before: i64 = 0
        self.paused_until_ms: i64 = 0
        self.next = following

    def release(self, failures: i64) -> i64:
        """Count one more release; return how long, in ms, the entry is then kept from the consumer.

        The caller sets `paused_until_ms` if there is a pause. `failures` is the number of failed
        attempts with the consumer. Releases are not in a row if an attempt failed in between: JMS
        clients that roll back release the messages that they had prefetched, each time, and want
        them again in their order.
        """
        if failures != self.failures_before:
            self.failures_before = failures
            self.releases = 0
        self.releases += 1
        return pause_after(self.releases)


def _is_among(consumers: list[Consumer], number: i64) -> bool:
    """Return whether one of `consumers`, perhaps of thousands, has that number."""
    low: i64 = 0
    high = i64(len(consumers))
    while low < high:
        middle = (low + high) >> 1
        if consumers[middle].number < number:
            low = middle + 1
        else:
            high = middle
    return low < i64(len(consumers)) and consumers[low].number == number
