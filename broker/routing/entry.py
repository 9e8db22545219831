"""A message's place in one queue, and what has happened to it there."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.delivery import Delivery
from broker.message import Message
from broker.routing.redelivery import pause_after

if TYPE_CHECKING:
    from broker.routing.party import Consumer
    from broker.routing.queue import Queue


@mypyc_attr(acyclic=True)
@final
class QueueEntry(Delivery):
    """One message in one queue; while a consumer holds it, its record as a delivery too.

    `position` orders it among the entries of its priority, for good.
    `delivery_count` is what the peer sees (RCV-01), `failures` what is held
    against the redelivery limit (RCV-08).
    """

    def __init__(self, queue: Queue, message: Message, position: i64) -> None:
        super().__init__()
        self.queue = queue
        self.message = message
        self.position: i64 = position
        self.delivery_count: i64 = 0
        self.failures: i64 = 0
        self.consumer: Consumer | None = None
        self.history: History | None = None


@final
class History:
    """Which consumers an entry may not go to: for ever, or for a while."""

    def __init__(self) -> None:
        self.refused_by: list[Consumer] = []
        self.released_by: Consumer | None = None
        self.releases: i64 = 0
        self.paused_until_ms: i64 = 0

    def allows(self, consumer: Consumer, now_ms: i64) -> bool:
        """Whether the entry may go to `consumer` now."""
        if self.released_by is consumer and now_ms < self.paused_until_ms:
            return False
        return consumer not in self.refused_by

    def released(self, consumer: Consumer, now_ms: i64) -> i64:
        """Note a release; the pause in ms that `consumer` has to wait for this entry."""
        if self.released_by is not consumer:
            self.released_by = consumer
            self.releases = 0
        self.releases += 1
        pause = pause_after(self.releases)
        self.paused_until_ms = now_ms + pause
        return pause

    def forget(self, consumer: Consumer) -> None:
        """`consumer` has gone; a later one starts with a clean sheet."""
        if self.released_by is consumer:
            self.released_by = None
        if consumer in self.refused_by:
            self.refused_by.remove(consumer)
