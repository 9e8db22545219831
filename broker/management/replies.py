"""Responses of the broker's own nodes: the reply node of a request, and the way there."""

from __future__ import annotations

from typing import Final

from broker.journal import Journal, Waiter
from broker.links.access import demand_responding, may_be_responded_at
from broker.links.container import Container
from broker.links.peer import Peer
from broker.management.request import Envelope
from broker.message import Message
from broker.routing.errors import NoSuchNode, RoutingError
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue


class Answer(Waiter):
    """A response that is sent once the changes it reports are durable."""

    def __init__(self, journal: Journal, node: Node, message: Message) -> None:
        self._journal: Final = journal
        self._node: Final = node
        self._message: Final = message

    def committed(self) -> None:
        try:
            self._node.put(self._message, self._journal.batch)
        except RoutingError:
            return  # the reply node is full or deleted by now: nothing can take the response


class Replies:
    """The way of responses to the clients of a container."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def node_for(self, peer: Peer, envelope: Envelope) -> Node | None:
        """Return the node for the response to an earlier request.

        None if it is gone, or the client may not send there by now.
        """
        own = peer.replies.get(envelope.reply_to)
        if own is not None:
            return own
        node = self._container.router.find_named(envelope.reply_to)
        return node if node is not None and may_be_responded_at(peer, node) else None

    def checked_node(self, peer: Peer, envelope: Envelope, request: Message) -> Node:
        """Return the node for the response; called before the request is executed.

        Raise NotPermitted if the client may not send there, NoSuchNode if there is none, QueueFull
        if it has no room.
        """
        node: Node | None = peer.replies.get(envelope.reply_to)
        if node is None:
            address = self._container.router.parse(envelope.reply_to)
            demand_responding(peer, address)
            node = self._container.router.find(address)
        if node is None:
            raise NoSuchNode(f"no node {envelope.reply_to:.100} to send the response to")
        if isinstance(node, Queue):
            node.check_room(request)
        return node

    def send(self, node: Node, response: Message) -> None:
        """Put `response` into its node, once all changes until now are durable."""
        journal = self._container.journal
        journal.submit(Answer(journal, node, response))
