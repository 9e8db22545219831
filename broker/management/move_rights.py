"""The rights that moving messages needs, beside the right to edit messages.

They are asked for before a node is looked for: a refusal does not tell what exists.
"""

from __future__ import annotations

from typing import Final, final

from broker.links.access import BROWSE, SEND, is_nobodys, node_resource, subscription_resource
from broker.management.entity import Caller, Denied
from broker.management.request import Request
from broker.routing.addresses.address import Address
from broker.routing.addresses.identity import identity_in
from broker.routing.queues.node import QUEUE, TOPIC
from broker.routing.router import Router
from broker.routing.topics.subscription import Subscription
from broker.security.decision import Decision
from broker.security.resources import Resource

MOVE: Final = "move"
PURGE: Final = "purge"


def demand_source(router: Router, caller: Caller, request: Request) -> None:
    """Raise Denied unless the caller may take messages out of the queue that `request` names.

    If it names a subscription, the caller needs the right to purge that: rules have no other verb
    for the removal of its messages.
    """
    text = request.text("subscription", "")
    if text:
        identity = identity_in(text)
        if identity is not None:
            caller.demand(PURGE, subscription_resource(identity))
        return
    resource = _queue_resource(router, request.text("queue"))
    if resource is not None:
        caller.demand(MOVE, resource)


def demand_browsing(router: Router, caller: Caller, request: Request) -> None:
    """Raise Denied unless the caller may browse the queue or subscription that `request` names."""
    identity = identity_in(request.text("subscription", ""))
    if identity is not None:
        caller.demand(BROWSE, subscription_resource(identity))
        return
    resource = None
    if not request.text("subscription", ""):
        resource = _queue_resource(router, request.text("queue"))
    if resource is not None:
        caller.demand(BROWSE, resource)


def demand_target(router: Router, caller: Caller, address: Address) -> None:
    """Raise Denied unless the caller may send to `address`.

    An address that says no kind means a node that exists, else one of the default kind: a refusal
    does not tell which.
    """
    if is_nobodys(address):
        return
    meant = address.of_kind(router.kind_of(address))
    default = address.of_kind(address.kind or router.policies.default_kind)
    if meant.kind != default.kind and not caller.may(SEND, node_resource(meant)).allowed:
        caller.demand(SEND, node_resource(default))
    caller.demand(SEND, node_resource(meant))


@final
class ReturnRights:
    """The rights of one request to put messages back where they came from.

    Each decision is taken once: many messages of a dead-letter queue come from the same place.
    """

    def __init__(self, router: Router, caller: Caller) -> None:
        self._router: Final = router
        self._caller: Final = caller
        self._taken: Final[dict[str, Decision]] = {}

    def demand_queue(self, name: str) -> None:
        """Raise Denied unless the caller may send to the queue `name`."""
        resource = _queue_resource(self._router, name)
        if resource is not None:
            self._demand(resource)

    def demand_subscription(self, subscription: Subscription) -> None:
        """Raise Denied unless the caller may send to all topics of `subscription`."""
        address = subscription.spec.address.of_kind(TOPIC)
        if address.is_temporary:
            self._demand(node_resource(address))
        else:
            self._demand(Resource(TOPIC, address.words, address.key, is_pattern=True))

    def _demand(self, resource: Resource) -> None:
        text = resource.text()
        decision = self._taken.get(text)
        if decision is None:
            decision = self._taken[text] = self._caller.may(SEND, resource)
        if not decision.allowed:
            raise Denied(SEND, resource, decision)


def _queue_resource(router: Router, name: str) -> Resource | None:
    """Return the resource of the queue `name`; None if no queue can have the name."""
    if router.prefixes.kind_in(name) not in ("", QUEUE):
        return None
    address = router.parse(name, QUEUE).of_kind(QUEUE)
    return None if is_nobodys(address) else node_resource(address)
