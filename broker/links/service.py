"""Requests to the broker itself, at addresses that no queue has: `$management`, and `$cbs`.

Requests are sent like messages, on a link to that address or on the anonymous relay. They are
carried out at once, so they cannot be part of a transaction.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.message import Message
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.participants import Consumer
from broker.routing.queues.node import QUEUE, Consumable
from broker.routing.queues.queue import Queue
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.links.peer import Peer

CLAIMS: Final = "$cbs"
"""Address at which a client renews the token of its login (AMQP claims-based security)."""

REQUEST_CREDIT: Final[i64] = 8
"""Maximum requests that a link may send ahead.

One may cost as much as thousands of messages (`docs/design/hostile-input.md` R9).
"""

REPLIES_MAX: Final = 100
"""Maximum responses that wait on a link; further requests are rejected until some are taken."""

REPLY_POLICY: Final = AddressPolicy(dead_letter="", max_messages=REPLIES_MAX)


@mypyc_attr(allow_interpreted_subclasses=True)
class Service:
    """Answers requests to the broker."""

    @abstractmethod
    def answer(self, peer: Peer, request: Message) -> None:
        """Carry out `request`, and send the response to the address that it names.

        Raise RoutingError or LinkFault if there is no way to answer; nothing is done then.
        """


@final
class ServiceNode(Consumable):
    """The node of one link to a service: it passes the requests of its peer to the service.

    On a link on which the client receives, responses wait in a queue that ends with the link.
    Requests name that queue by `reply_to`: the address of the link's target.
    """

    def __init__(self, peer: Peer, service: Service, *, address: str, reply_to: str) -> None:
        super().__init__(
            address=address,
            kind=QUEUE,
            policy=REPLY_POLICY,
            context=peer.container.router.context,
            owner=peer.id,
        )
        self._peer: Final = peer
        self._service: Final = service
        self._reply_to: Final = reply_to or address

    def put(self, message: Message, batch: Batch) -> None:  # noqa: ARG002 the service has its own
        self._service.answer(self._peer, message)

    def publish(self, message: Message, batch: Batch) -> None:  # noqa: ARG002 never called
        raise AssertionError("no transaction takes a request")

    def may_be_full(self) -> bool:
        return False

    def attach_consumer(self, consumer: Consumer) -> Queue:
        queue = Queue(
            address=self.address,
            policy=REPLY_POLICY,
            context=self.context,
            owner=self.owner,
        )
        queue.state.is_of_broker = True
        queue.attach_consumer(consumer)
        self._peer.replies[self._reply_to] = queue
        return queue

    def detach_consumer(self, consumer: Consumer, queue: Queue, batch: Batch) -> None:
        queue.detach_consumer(consumer, queue, batch)
        if self._peer.replies.get(self._reply_to) is queue:
            del self._peer.replies[self._reply_to]
        queue.delete(batch)

    def backlog(self) -> i64:
        """Return 0: `REQUEST_CREDIT` holds requests back, not the pace of consumers."""
        return 0

    def due(self, now_ms: i64) -> None:
        """Do nothing: no timer is ever set."""

    def delete(self, batch: Batch) -> None:
        """Do nothing: the broker itself cannot be deleted."""
