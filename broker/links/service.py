"""Where a peer speaks to the broker itself: the address `$management`, which no queue has.

Requests come in like messages, so that any link may bring them: one to the
address, or the anonymous relay. They are done at once, so no transaction takes them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.message import Message
from broker.routing.addresses.address import MANAGEMENT
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.participants import Consumer
from broker.routing.queues.node import QUEUE, Consumable
from broker.routing.queues.queue import Queue
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.links.peer import Peer

REQUEST_CREDIT: Final[i64] = 8
"""Requests that a link may send ahead: one may cost as much as thousands of messages (R9)."""

REPLIES_MAX: Final = 100
"""Responses that may wait on a link; further requests are rejected until they are taken."""

REPLY_POLICY: Final = AddressPolicy(dead_letter="", max_messages=REPLIES_MAX)


@mypyc_attr(allow_interpreted_subclasses=True)
class Service:
    """What answers requests."""

    @abstractmethod
    def answer(self, peer: Peer, request: Message) -> None:
        """Do what `request` asks, and put the response where it says.

        Raises RoutingError or LinkFault where there is no way to answer; nothing is done then.
        """


@final
class ServiceNode(Consumable):
    """The far end of one link to `$management`: requests go to the service as their peer's.

    On a link to receive on, responses wait in a queue that ends with it, and
    are found by `reply_to`: the address of the link's target.
    """

    def __init__(self, peer: Peer, service: Service, *, reply_to: str) -> None:
        super().__init__(
            address=MANAGEMENT, kind=QUEUE, policy=REPLY_POLICY, pacing_mark=0, owner=peer.id
        )
        self._peer: Final = peer
        self._service: Final = service
        self._reply_to: Final = reply_to or MANAGEMENT

    def put(self, message: Message, batch: Batch) -> None:  # noqa: ARG002 the service notes its own
        self._service.answer(self._peer, message)

    def publish(self, message: Message, batch: Batch) -> None:  # noqa: ARG002 never asked for
        raise AssertionError("no transaction takes a request")

    def may_be_full(self) -> bool:
        return False

    def attach_consumer(self, consumer: Consumer) -> Queue:
        queue = Queue(
            address=MANAGEMENT,
            policy=REPLY_POLICY,
            router=self._peer.container.router,
            owner=self.owner,
        )
        queue.attach_consumer(consumer)
        self._peer.replies[self._reply_to] = queue
        return queue

    def detach_consumer(self, consumer: Consumer, queue: Queue, batch: Batch) -> None:
        queue.detach_consumer(consumer, queue, batch)
        if self._peer.replies.get(self._reply_to) is queue:
            del self._peer.replies[self._reply_to]
        queue.delete(batch)

    def backlog(self) -> i64:
        """Nobody's pace: `REQUEST_CREDIT` holds requests back."""
        return 0

    def due(self, now_ms: i64) -> None:
        """Nothing is ever asked for."""

    def delete(self, batch: Batch) -> None:
        """Nothing deletes the broker itself."""
