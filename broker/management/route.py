"""Explain where a message would go, without sending one: the node, and a topic's subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.amqp.descriptors import AMQP_VALUE, APPLICATION_PROPERTIES
from broker.amqp.encode import BytesWriter, put_descriptor, put_value
from broker.amqp.sections import Sections
from broker.links.access import existing_node
from broker.links.container import Container
from broker.management.credit import CREDIT, Credits
from broker.management.definition import plain_value
from broker.management.entity import Caller, Operation
from broker.management.explain import ATTACH, Explanations
from broker.management.flow import FLOW, Flows
from broker.management.producer_address import producer_address
from broker.management.request import BAD_REQUEST, Refused, Request
from broker.management.response import Response
from broker.message import Message, Origin, read_message
from broker.routing.addresses.identity import identity_of
from broker.routing.queues.node import TOPIC
from broker.routing.queues.queue import Queue
from broker.routing.topics.topic import Topic
from broker.security.resources import MANAGEMENT, Resource

ROUTE: Final = "route"

VIEWED: Final = ("queues", "topics", "subscriptions")
"""The parts of management that a client must be allowed to view: the response names all three."""

LISTED_MAX: Final = 500
"""Maximum subscriptions that a response lists; the others are counted."""


class Routes:
    """The operation EXPLAIN of the type `route`: a message to an address, by what exists now."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container

    def operations(self) -> Mapping[str, Operation]:
        return {"EXPLAIN": self._explain}

    def _explain(self, request: Request, caller: Caller) -> Response:
        """Explain where a message to `address` with these `properties` would go.

        `kind` is the capability that the producer gives, `publisher` its client id. The response
        has `kind`, `node`, `is_there` (else it would be created, or the message refused), `key`,
        `subscriptions` (their identities), and `unnamed`, the number of those without a name.
        """
        request.only("address", "kind", "properties", "publisher")
        for part in VIEWED:
            caller.demand("view", Resource(MANAGEMENT, part))
        router = self._container.router
        address = producer_address(router, request)
        node = existing_node(router, address)
        told: dict[str, object] = {
            "kind": address.kind,
            "node": address.name if address.kind == TOPIC else address.text,
            "is_there": node is not None,
            "key": "",
            "subscriptions": [],
            "unnamed": 0,
            "not_listed": 0,
        }
        if node is not None:
            told["key"] = key = router.publishing_key(address, node)
            if isinstance(node, Topic):
                publisher = request.text("publisher", "")
                message = self._message(request, Origin(publisher, key))
                told |= self._subscriptions(node.destinations(message))
        return Response(body=told)

    def _message(self, request: Request, origin: Origin) -> Message:
        properties = plain_value(request.arguments.get("properties") or {})
        if not isinstance(properties, dict):
            raise Refused(BAD_REQUEST, "properties must be a map")
        for name, value in properties.items():
            if isinstance(value, list | dict):
                raise Refused(BAD_REQUEST, f"property {name:.50} must be a simple value")
        out = BytesWriter()
        put_descriptor(out, APPLICATION_PROPERTIES)
        put_value(out, properties)
        put_descriptor(out, AMQP_VALUE)
        put_value(out, "")
        data = out.getvalue()
        sections = Sections()
        sections.read(data, 0, len(data))
        return read_message(sections, data, self._container.clock, origin=origin)

    def _subscriptions(self, queues: list[Queue]) -> dict[str, object]:
        """Return the identities of the subscriptions with these queues, and how many have none."""
        of = self._container.router.subscriptions.of
        found = [of[queue].identity for queue in queues if queue in of]
        named = sorted(identity_of(each) for each in found if each is not None)
        return {
            "subscriptions": named[:LISTED_MAX],
            "unnamed": len(found) - len(named),
            "not_listed": max(0, len(named) - LISTED_MAX),
        }


def explanations_of(container: Container) -> Mapping[str, Mapping[str, Operation]]:
    """Return the operations that explain something, by their type."""
    return {
        ATTACH: Explanations(container).operations(),
        ROUTE: Routes(container).operations(),
        FLOW: Flows(container).operations(),
        CREDIT: Credits(container).operations(),
    }
