"""The HTTP application: its paths, and its responses to errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.http import events, messages
from broker.http.access import CHALLENGE, UNAUTHORIZED, Access, Visitor
from broker.http.arguments import Arguments
from broker.http.connection import CONNECTION, HttpConnection
from broker.http.streams import ArrowStream, BrokenOff, Streams
from broker.links.access import BROWSE, LEASE, lease_resource, node_resource, subscription_resource
from broker.links.container import Container
from broker.management.messages import queue_of
from broker.management.request import BAD_REQUEST, BUSY, CONFLICT, FAILED, GONE, NOT_FOUND, Refused
from broker.routing.addresses.identity import identity_in
from broker.routing.batches.lease_batch import SLICES_MAX
from broker.routing.entries.browse_slice import WHENEVER, BrowseSlice
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.errors import (
    LeaseFenced,
    LeaseGone,
    NoSuchLeaseBatch,
    NoSuchNode,
    RoutingError,
)
from broker.routing.queues.message_events import KINDS
from broker.routing.queues.node import QUEUE
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector
from broker.security.resources import MANAGEMENT, Resource
from storage.api import Store, StoreError

NODE: Final = ("address", "subscription")
"""The arguments that name the queue or the subscription to read from; exactly one is needed."""

STATUS: Final[dict[type[Exception], int]] = {
    NoSuchNode: NOT_FOUND,
    NoSuchLeaseBatch: NOT_FOUND,
    LeaseFenced: CONFLICT,
    LeaseGone: GONE,
}
"""Status codes by error of routing. Any other error means a bad argument (400)."""

VIEW: Final = "view"
EVENT_LOG: Final = Resource(MANAGEMENT, "events")
LEASES: Final = Resource(MANAGEMENT, "leases")

Work = Callable[[Request, Visitor], Awaitable[Response]]


class Readings:
    """The handlers of all paths. All but /livez need a right."""

    def __init__(
        self, container: Container, store: Store, *, access: Access, streams: Streams
    ) -> None:
        self._container: Final = container
        self._store: Final = store
        self._access: Final = access
        self._streams: Final = streams
        self._reading: Final = messages.Reading(container)

    def routes(self) -> list[Route]:
        """Return the routes of all paths."""
        known: dict[str, Work] = {
            "/events/bounds": self._event_bounds,
            "/arrow/events": self._events,
            "/arrow/browse": self._browse,
            "/arrow/lease": self._lease,
        }
        guarded = [Route(path, self.guarded(work)) for path, work in known.items()]
        return [Route("/livez", _alive), *guarded]

    def guarded(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        """Return a handler that admits the client, and then calls `work`; else raises Refused."""

        async def answer(request: Request) -> Response:
            headers = request.headers
            connection: HttpConnection = request.scope["state"][CONNECTION]
            visitor = await self._access.check(
                headers.get("authorization"), headers.get("host", ""), connection.entrance
            )
            if self._container.closing:
                raise Refused(BUSY, "the broker is stopping")
            return await work(request, visitor)

        return answer

    async def _event_bounds(self, request: Request, visitor: Visitor) -> Response:
        visitor.demand(VIEW, EVENT_LOG)
        _arguments(request)
        first, last = await self._store.event_bounds()
        return JSONResponse({"first": first, "last": last})

    async def _events(self, request: Request, visitor: Visitor) -> Response:
        visitor.demand(VIEW, EVENT_LOG)
        asked = _arguments(request, "behind", "until", "address", "kind")
        address, kind = asked.text("address", ""), asked.one_of("kind", KINDS)
        behind, until = asked.number("behind", 0), asked.number("until", 0)
        if not until:
            # rows added during the stream are left to the next request
            _, until = await self._store.event_bounds()
        batches = events.batches(
            self._store,
            behind=behind,
            until=until,
            address=self._container.router.prefixes.canonical(address) if address else "",
            kind=kind,
        )
        return ArrowStream(self._streams, events.SCHEMA, batches)

    async def _lease(self, request: Request, visitor: Visitor) -> Response:
        asked = _arguments(request, "lease", "fencing_token", "batch", "slice")
        leases = self._container.router.leases
        name = asked.text("lease")
        lease = leases.all().get(name)
        if lease is None or not visitor.may(LEASE, lease_resource(lease)):
            # the answer does not tell whether there is such a lease
            visitor.demand(VIEW, LEASES)
        if lease is not None:
            visitor.demand(LEASE, lease_resource(lease))
        entries = leases.slice_of(
            name,
            asked.number("fencing_token"),
            asked.number("batch"),
            index=asked.number("slice", high=SLICES_MAX - 1),
        )
        return ArrowStream(self._streams, messages.SCHEMA, self._reading.held(entries))

    async def _browse(self, request: Request, visitor: Visitor) -> Response:
        asked = _arguments(request, *NODE, "slice", "slices", "arrived_until_ms", "selector")
        slices = asked.number("slices", 1, low=1, high=SLICES_MAX)
        selector = asked.text("selector", "")
        batches = self._reading.browse(
            self._queue(asked, visitor),
            part=BrowseSlice(
                index=asked.number("slice", 0, high=slices - 1),
                slices=slices,
                arrived_until_ms=asked.number("arrived_until_ms", WHENEVER),
            ),
            wanted=ConsumerFilter(parse_selector(selector)) if selector else None,
        )
        return ArrowStream(self._streams, messages.SCHEMA, batches)

    def _queue(self, asked: Arguments, visitor: Visitor) -> Queue:
        """Return the queue of the address or subscription; Refused unless exactly one is given.

        Raise Refused, too, unless the client may browse it.
        """
        address, subscription = (asked.text(name, "") for name in NODE)
        if bool(address) == bool(subscription):
            raise Refused(BAD_REQUEST, "address or subscription is needed, one of them")
        router = self._container.router
        identity = identity_in(subscription)
        if identity is not None:
            visitor.demand(BROWSE, subscription_resource(identity))
        else:
            visitor.demand(BROWSE, node_resource(router.parse(address or subscription, QUEUE)))
        return queue_of(router, name=address, subscription=subscription)


def application(routes: list[Route]) -> Starlette:
    """Return the ASGI application. Its responses to errors are JSON, `{"error": why}`."""
    return Starlette(
        routes=routes,
        exception_handlers={
            Refused: _refused,
            RoutingError: _unwilling,
            StoreError: _unable,
            BrokenOff: _unable,
            HTTPException: _unknown,
            Exception: _failed,
        },
    )


class ShortHeads:
    """ASGI middleware that passes requests to `inner` if their head has at most `bytes_max` bytes.

    The connection limits only an incomplete head; a longer one that arrives at once passes there.
    """

    def __init__(self, inner: ASGIApp, bytes_max: int) -> None:
        self._inner: Final = inner
        self._bytes_max: Final = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        answer = self._inner
        if size > self._bytes_max:
            answer = _error(
                BAD_REQUEST, f"the head of a request has at most {self._bytes_max} bytes"
            )
        await answer(scope, receive, send)


def _arguments(request: Request, *known: str) -> Arguments:
    return Arguments(request.query_params.multi_items(), *known)


async def _alive(request: Request) -> Response:  # noqa: ARG001 - as starlette calls it
    """Respond `ok`: the event loop runs. Says nothing about the store."""
    return PlainTextResponse("ok\n")


def _error(status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": reason}, status_code=status, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001
    refused = cast(Refused, error)
    headers = CHALLENGE if refused.status == UNAUTHORIZED else None
    return _error(refused.status, str(refused), headers)


async def _unwilling(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return _error(STATUS.get(type(error), BAD_REQUEST), str(error))


async def _unable(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return _error(BUSY, str(error))


async def _unknown(request: Request, error: Exception) -> Response:
    """Respond to an unknown path, or to a method that the path does not have."""
    status = cast(HTTPException, error).status_code
    told = f"{request.method} {request.url.path:.100} is not known here"
    return _error(status, told, dict(cast(HTTPException, error).headers or {}))


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return _error(FAILED, "internal error")
