"""Named subscriptions: list, show, purge, and delete by an operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.journal import Journal
from broker.links.access import Right, subscription_resource
from broker.management.entity import Caller, Entity, EntityRecord, Operation, attributes_of
from broker.management.later import Later
from broker.management.listing import Listing, list_of
from broker.management.nodes import PURGE_MAX, oldest_ms_of
from broker.management.page import read_page
from broker.management.request import CONFLICT, NOT_FOUND, Refused, Request
from broker.management.response import NO_CONTENT, Response
from broker.routing.addresses.identity import SubscriptionIdentity, identity_of
from broker.routing.queues.queue_inspection import purge
from broker.routing.router import Router
from broker.routing.topics.subscription import Subscription

SUBSCRIPTION: Final = "subscription"


@dataclass(frozen=True, kw_only=True)
class SubscriptionRecord(EntityRecord):
    """A subscription that has a name. `container_id` is null in the global name space.

    Of its messages `messages` are ready for delivery, `acquired` are delivered to consumers that
    have not settled them, and `held` wait for a time or to be moved. `oldest_ms` is the age of the
    oldest ready message in ms.
    """

    container_id: str | None
    durable: bool
    shared: bool
    address: str
    selector: str | None
    no_local: bool
    messages: int
    acquired: int
    held: int
    bytes: int
    oldest_ms: int
    consumers: int


def record_of(subscription: Subscription) -> SubscriptionRecord:
    """Return the attributes of a named `subscription`."""
    identity = subscription.identity
    assert identity is not None
    queue, wanted = subscription.queue, subscription.spec.filter
    selector = None if wanted is None else wanted.selector
    return SubscriptionRecord(
        name=identity[1],
        identity=identity_of(identity),
        type=SUBSCRIPTION,
        container_id=identity[0],
        durable=identity[2],
        shared=subscription.is_shared,
        address=subscription.spec.address.text,
        selector=None if selector is None else selector.text,
        no_local=wanted is not None and wanted.excluded_publisher != "",
        messages=int(queue.backlogs.waiting),
        acquired=int(queue.state.acquired),
        held=int(queue.state.held()),
        bytes=int(queue.state.bytes),
        oldest_ms=oldest_ms_of(queue),
        consumers=len(queue.consumers.attached),
    )


def _is_active(record: EntityRecord) -> bool:
    """Return whether a subscription has consumers."""
    return isinstance(record, SubscriptionRecord) and record.consumers > 0


VERBS: Final = {"READ": "view", "PURGE": "purge"}
"""The right on the subscription itself that allows an operation on it, named by its identity."""


class SubscriptionEntities(Entity):
    """All named subscriptions. Each other one is of a single link, and counted with its topic."""

    type = SUBSCRIPTION
    part = "subscriptions"
    attributes = attributes_of(SubscriptionRecord)

    def __init__(self, router: Router, journal: Journal) -> None:
        self._router: Final = router
        self._journal: Final = journal

    def operations(self) -> Mapping[str, Operation]:
        return {"READ": self._read, "DELETE": self._delete, "PURGE": self._purge}

    def right(self, request: Request) -> Right | None:
        verb = VERBS.get(request.operation)
        if verb is None:
            return None
        # of the same name as `_found` has it, or the right would be one on another subscription
        subscription = self._router.subscriptions.identified(request.subject())
        if subscription is None or subscription.identity is None:
            return None
        return Right(verb, subscription_resource(subscription.identity))

    def query(self, request: Request) -> Response:
        """Return a page of subscriptions, by name, then identity; the filter is for the name."""
        page = read_page(request, self.attributes)
        named = {
            f"{identity[1]}\0{identity_of(identity)}": subscription
            for identity, subscription in self._router.subscriptions.named.items()
        }
        return page.response(record_of(named[key]).as_map() for key in page.choose(named))

    def listed(self, request: Request) -> Later:
        named = self._router.subscriptions.named
        listing = Listing(
            items=list(named),
            names_of=lambda identity: (identity[1], identity_of(identity)),
            record_of=self._record_at,
            filters={
                "durable": "durable",
                "shared": "shared",
                "topic": "address",
                "client_id": "container_id",
            },
            tests={"active": _is_active},
        )
        return list_of(request, self.attributes, listing)

    def _record_at(self, identity: SubscriptionIdentity) -> SubscriptionRecord | None:
        found = self._router.subscriptions.named.get(identity)
        return None if found is None else record_of(found)

    def _found(self, request: Request) -> Subscription:
        """Return the subscription of that identity, else of that name; Refused if not just one."""
        wanted = request.subject()
        identified = self._router.subscriptions.identified(wanted)
        if identified is not None:
            return identified
        named = self._router.subscriptions.named
        found = [named[each] for each in named if each[1] == wanted]
        if not found:
            raise Refused(NOT_FOUND, f"no subscription {wanted}")
        if len(found) > 1:
            raise Refused(CONFLICT, f"{len(found)} subscriptions are called {wanted}: say which")
        return found[0]

    def _read(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        request.only()
        return Response(body=record_of(self._found(request)).as_map())

    def _delete(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Unsubscribe. With `force` even if there are consumers, whose links are then detached."""
        request.only("force")
        subscription = self._found(request)
        consumers = len(subscription.queue.consumers.attached)
        if consumers and not request.flag("force"):
            raise Refused(CONFLICT, f"{subscription.name()} has {consumers} consumers: force it")
        self._router.subscriptions.end(subscription, self._journal.batch)
        return Response(status=NO_CONTENT, description="No Content")

    def _purge(self, request: Request, caller: Caller) -> Response:  # noqa: ARG002
        """Remove up to PURGE_MAX ready messages; `left` is the number that remains."""
        request.only()
        queue = self._found(request).queue
        purged = purge(queue, PURGE_MAX, self._journal.batch)
        return Response(body={"purged": int(purged), "left": int(queue.backlogs.waiting)})
