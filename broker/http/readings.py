"""The paths that read many messages, or the event log, for programs that want them as Arrow."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from broker.http.access import Visitor
from broker.http.arguments import Arguments
from broker.http.arrow import LazyArrow
from broker.http.site import Site, Work
from broker.http.streams import BrokenOff, Check
from broker.links.access import BROWSE, LEASE, lease_resource, node_resource, subscription_resource
from broker.links.rights_review import LOGIN_ENDED
from broker.management.entity import VIEW
from broker.management.messages import queue_of
from broker.management.request import BAD_REQUEST, Refused
from broker.routing.addresses.identity import identity_in
from broker.routing.batches.lease_batch import SLICES_MAX
from broker.routing.entries.browse_slice import WHENEVER, BrowseSlice
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.message_events import KINDS
from broker.routing.queues.node import QUEUE
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector
from broker.security.resources import MANAGEMENT, Resource

NODE: Final = ("address", "subscription")
"""The arguments that name the queue or the subscription to read from; exactly one is needed."""

EVENT_LOG: Final = Resource(MANAGEMENT, "events")
LEASES: Final = Resource(MANAGEMENT, "leases")


class Readings:
    """The handlers of all paths that read. Each needs a right."""

    def __init__(self, site: Site) -> None:
        self._site: Final = site
        self._container: Final = site.container
        self._store: Final = site.store
        self._arrow: Final = LazyArrow(site.container, site.store, site.streams)

    def routes(self) -> list[Route]:
        """Return the routes of all paths."""
        known: dict[str, Work] = {
            "/events/bounds": self._event_bounds,
            "/arrow/events": self._events,
            "/arrow/browse": self._browse,
            "/arrow/lease": self._lease,
        }
        return [Route(path, self._site.guarded(work)) for path, work in known.items()]

    async def _event_bounds(self, request: Request, visitor: Visitor) -> Response:
        visitor.demand(VIEW, EVENT_LOG)
        _arguments(request)
        first, last = await self._store.event_bounds()
        return JSONResponse({"first": first, "last": last})

    async def _events(self, request: Request, visitor: Visitor) -> Response:
        self._arrow.check()
        visitor.demand(VIEW, EVENT_LOG)
        asked = _arguments(request, "behind", "until", "address", "kind")
        address, kind = asked.text("address", ""), asked.one_of("kind", KINDS)
        behind, until = asked.number("behind", 0), asked.number("until", 0)
        if not until:
            # rows added during the stream are left to the next request
            _, until = await self._store.event_bounds()
        answers = await self._arrow.answers()
        return answers.events(
            behind=behind,
            until=until,
            address=self._container.router.prefixes.canonical(address) if address else "",
            kind=kind,
            check=_still(visitor, VIEW, EVENT_LOG),
        )

    async def _lease(self, request: Request, visitor: Visitor) -> Response:
        self._arrow.check()
        asked = _arguments(request, "lease", "fencing_token", "batch", "slice")
        leases = self._container.router.leases
        name = asked.text("lease")
        lease = leases.all().get(name)
        if lease is None or not visitor.may(LEASE, lease_resource(lease)):
            # the answer does not tell whether there is such a lease
            visitor.demand(VIEW, LEASES)
        if lease is not None:
            visitor.demand(LEASE, lease_resource(lease))
        answers = await self._arrow.answers()
        entries = leases.slice_of(
            name,
            asked.number("fencing_token"),
            asked.number("batch"),
            index=asked.number("slice", high=SLICES_MAX - 1),
        )
        assert lease is not None, "else it has no slice"
        return answers.held(entries, check=_still(visitor, LEASE, lease_resource(lease)))

    async def _browse(self, request: Request, visitor: Visitor) -> Response:
        self._arrow.check()
        asked = _arguments(request, *NODE, "slice", "slices", "arrived_until_ms", "selector")
        slices = asked.number("slices", 1, low=1, high=SLICES_MAX)
        selector = asked.text("selector", "")
        queue, browsed = self._queue(asked, visitor)
        answers = await self._arrow.answers()
        return answers.browse(
            queue,
            part=BrowseSlice(
                index=asked.number("slice", 0, high=slices - 1),
                slices=slices,
                arrived_until_ms=asked.number("arrived_until_ms", WHENEVER),
            ),
            wanted=ConsumerFilter(parse_selector(selector)) if selector else None,
            check=_still(visitor, BROWSE, browsed),
        )

    def _queue(self, asked: Arguments, visitor: Visitor) -> tuple[Queue, Resource]:
        """Return the queue of the address or subscription, and what the right to browse is on.

        Raise Refused unless exactly one is given, and the client may browse it.
        """
        address, subscription = (asked.text(name, "") for name in NODE)
        if bool(address) == bool(subscription):
            raise Refused(BAD_REQUEST, "address or subscription is needed, one of them")
        router = self._container.router
        identity = identity_in(subscription)
        if identity is not None:
            browsed = subscription_resource(identity)
        else:
            browsed = node_resource(router.parse(address or subscription, QUEUE))
        visitor.demand(BROWSE, browsed)
        return queue_of(router, name=address, subscription=subscription), browsed


def _still(visitor: Visitor, verb: str, resource: Resource) -> Check:
    """Return what raises BrokenOff once the client of a stream may not do that any more."""

    def check() -> None:
        current = visitor.now()
        if current is None:
            raise BrokenOff(LOGIN_ENDED)
        if not current.may(verb, resource):
            raise BrokenOff(f"user {visitor.identity.name()} may not {verb} {resource.text()} now")

    return check


def _arguments(request: Request, *known: str) -> Arguments:
    return Arguments(request.query_params.multi_items(), *known)
