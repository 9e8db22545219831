"""A topic: one shared message, an entry in the queue of every subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import Message
from broker.routing.node import TOPIC, Node
from broker.routing.party import Consumer
from broker.routing.policy import AddressPolicy
from broker.routing.queue import Queue
from storage.api import Batch

if TYPE_CHECKING:
    from broker.routing.router import Router


@final
class Topic(Node):
    """Fans messages out to the subscriptions of the moment."""

    def __init__(
        self, *, address: str, policy: AddressPolicy, router: Router, owner: i64 = -1
    ) -> None:
        super().__init__(
            address=address, kind=TOPIC, policy=policy, pacing_mark=router.pacing_mark, owner=owner
        )
        self.router: Final = router
        self.subscriptions: Final[list[Queue]] = []

    def put(self, message: Message, batch: Batch) -> None:
        policy = self.policy
        if policy.max_messages > 0 or policy.max_bytes > 0:
            for queue in self.subscriptions:
                queue.check_room(message)
        self.published += 1
        for queue in self.subscriptions:
            queue.publish(message, batch)

    def attach_consumer(self, consumer: Consumer) -> Queue:
        """A subscription of its own for `consumer`: non-durable, unshared (SUB-01)."""
        queue = Queue(
            address=self.address,
            policy=self.policy,
            router=self.router,
            owner=self.owner,
            is_subscription=True,
        )
        queue.attach_consumer(consumer)
        self.bind(queue)
        return queue

    def bind(self, queue: Queue) -> None:
        """Let `queue` have what is published from now on."""
        self.subscriptions.append(queue)
        queue.topics[self] = None

    def unbind(self, queue: Queue) -> None:
        """`queue` gets nothing more from here. Twice is once."""
        if self in queue.topics:
            del queue.topics[self]
            self.subscriptions.remove(queue)

    def detach_consumer(self, consumer: Consumer, queue: Queue, batch: Batch) -> None:
        """The subscription ends with its consumer, and its messages with it."""
        queue.detach_consumer(consumer, queue, batch)
        self.unbind(queue)
        queue.delete(batch)

    def backlog(self) -> i64:
        waiting: i64 = 0
        for queue in self.subscriptions:
            waiting += queue.backlog()
        return waiting

    def due(self, now_ms: i64) -> None:
        """Patience with slow subscribers ends."""
        self.pacing.tick(now_ms, self.backlog())

    def delete(self, batch: Batch) -> None:
        for queue in list(self.subscriptions):
            self.unbind(queue)
            queue.delete(batch)
        self.tell_producers()
