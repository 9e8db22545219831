"""A producer without a link: the same rights, limits, event log and durability as with one.

A link waits for credit. A client without a link cannot, so its message is refused if the broker
would grant no credit now.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.links.access import SEND, demand_node, demand_temporary
from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.message import Message, Origin, read_message
from broker.routing.addresses.address import Address
from broker.routing.errors import InvalidAddress
from broker.routing.queues.node import QUEUE, Node
from broker.routing.queues.queue import Queue
from broker.routing.timer_queue import TimerCallback
from broker.routing.topics.dynamic import DeletePolicy
from broker.routing.topics.topic import Topic

REPLY_QUEUE_GRACE_MS: Final[i64] = 10_000
"""Maximum ms for which a reply queue outlives its request, while producers are attached."""


class NoCredit(Exception):  # noqa: N818 - named like the errors of routing
    """The broker takes no messages now. `is_by_user`: because of the rates of the sender's user."""

    def __init__(self, reason: str, *, is_by_user: bool) -> None:
        super().__init__(reason)
        self.is_by_user: Final = is_by_user


@final
class PostingTarget:
    """A node to which a client may send; `address` is canonical, `origin` that of its messages."""

    def __init__(self, address: Address, node: Node, origin: Origin) -> None:
        self.address: Final = address
        self.node: Final = node
        self.origin: Final = origin


@final
class Posted:
    """A message that its node has taken.

    `durable`: it will survive a crash once the journal's batch is committed. `matched` is the
    number of subscriptions that it was for, 1 for a queue.
    """

    def __init__(self, *, durable: bool, matched: i64) -> None:
        self.durable: Final = durable
        self.matched: Final[i64] = matched


def posting_target(client: LinklessClient, text: str, kind: str) -> PostingTarget:
    """Return the node of an address, which is created if it does not exist.

    Raise RoutingError if the client may not send to it, whether it exists or not.
    """
    container = client.container
    router = container.router
    address = router.parse(text, kind)
    refuse_service(container, address)
    demand_node(client, SEND, address)
    node = client.resolve(address)
    origin = Origin(client.container_id, router.publishing_key(address, node))
    return PostingTarget(address, node, origin)


def refuse_service(container: Container, address: Address) -> None:
    """Raise InvalidAddress for an address of the broker itself, which answers links alone."""
    if container.service_at(address) is not None:
        raise InvalidAddress(f"{address.text} takes requests on links of AMQP alone")


def reply_queue(client: LinklessClient) -> Queue:
    """Create and return a temporary queue of the client, for a reply; raise RoutingError if not.

    `end_reply_queue` must follow.
    """
    demand_temporary(client, QUEUE)
    router = client.container.router
    made = router.create_temporary(QUEUE, client.id, creator=client.identity.user)
    assert isinstance(made, Queue)
    return made


def end_reply_queue(client: LinklessClient, queue: Queue) -> None:
    """Delete a reply queue once no producer is attached, or after REPLY_QUEUE_GRACE_MS.

    The producer of the reply would otherwise be detached before it has the outcome of its message.
    """
    router = client.container.router
    router.outlive(queue, DeletePolicy.ON_NO_LINKS, client.container.journal.batch)
    if router.has(queue):
        at_ms = client.container.clock.now_ms() + REPLY_QUEUE_GRACE_MS
        router.timer_queue.at(at_ms, ReplyQueueEnd(client.container, queue))


@final
class ReplyQueueEnd(TimerCallback):
    """Deletes a reply queue whose producers are still attached."""

    def __init__(self, container: Container, queue: Queue) -> None:
        self._container: Final = container
        self._queue: Final = queue

    def due(self, now_ms: i64) -> None:  # noqa: ARG002
        self._container.router.delete(self._queue, self._container.journal.batch)

    def is_abandoned(self) -> bool:
        return not self._container.router.has(self._queue)


def post(client: LinklessClient, target: PostingTarget, encoded: bytes) -> Posted:
    """Put an encoded message into its node, and note what it costs the client's user.

    Raise NoCredit, RoutingError, or LinkFault if the message is malformed; then nothing is changed.
    A round of work must follow.
    """
    container = client.container
    if container.router.credit_policy.shortage() is not None:
        raise NoCredit(
            "the broker is short of memory or disk space, or its store is slow", is_by_user=False
        )
    quota = container.user_limits.quota_of(client)
    try:
        if quota is not None and not quota.has_allowance():
            quota.held += 1
            raise NoCredit(
                f"user {client.identity.name()} has used its limits of messages", is_by_user=True
            )
        container.posting = client
        posted = _put(container, target, encoded)
        if quota is not None:
            quota.pay(1)
            quota.received(i64(len(encoded)))
    finally:
        container.posting = None
        container.user_limits.forget_user(client.identity.user)
    return posted


def _put(container: Container, target: PostingTarget, encoded: bytes) -> Posted:
    message = _read(container, target, encoded)
    node = target.node
    matched: i64 = 1
    if isinstance(node, Topic):
        matched = len(node.destinations(message))
    batch = container.journal.batch
    if node.duplicates is not None:
        node.duplicates.put(message, batch)
    else:
        node.put(message, batch)
    container.stats.published += 1
    container.stats.published_bytes += i64(len(encoded))
    return Posted(durable=message.durable or node.stores_all, matched=matched)


def _read(container: Container, target: PostingTarget, encoded: bytes) -> Message:
    sections = container.sections
    sections.read(encoded, 0, i64(len(encoded)))
    return read_message(
        sections,
        encoded,
        container.clock,
        origin=target.origin,
        arrived_ms=container.clock.wall_ms(),
    )
