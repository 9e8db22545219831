"""The application of the API: requests become calls of endpoints, failures become problems."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from secrets import token_hex
from typing import Final, cast

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from broker.http.access import Visitor
from broker.http.api.bodies import parsed, read_bytes
from broker.http.api.description import description
from broker.http.api.endpoint import DELETE, GET, NAME, POST, PUT, ROOT, Call, CallResult, Endpoint
from broker.http.api.idempotency import Idempotency, purpose_of
from broker.http.api.json_values import encoded_in_portions
from broker.http.api.origin import check_origin
from broker.http.api.page import PAGE_HEADERS, page_of
from broker.http.api.parameters import read_parameters
from broker.http.api.problems import Failure, problem_of
from broker.http.api.slots import RequestSlots
from broker.http.paths import NOT_UTF8, is_utf8
from broker.http.site import Handler, Site
from broker.management.request import BAD_REQUEST, BUSY, FAILED, Refused
from storage.api import StoreError

REQUEST_ID: Final = "jms_broker.request_id"
"""Key of the id of a request in its ASGI scope."""

HEADERS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
"""Headers of every response."""

ID: Final = "id"

CONDITIONS: Final = ("if-match", "if-none-match")

IDEMPOTENCY_KEY: Final = "idempotency-key"


def api_routes(site: Site, known: Sequence[Endpoint]) -> list[BaseRoute]:
    """Return the routes of the API, with these endpoints, and of its description.

    The description takes 0.1 s of a core, so a thread makes it, for the first request.
    """
    described = cache(partial(description, known))

    async def openapi(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
        text = await asyncio.to_thread(described)
        return Response(text, media_type="application/json", headers=HEADERS)

    async def page(request: Request, visitor: Visitor) -> Response:  # noqa: ARG001
        return Response(page_of(known), media_type="text/html", headers={**HEADERS, **PAGE_HEADERS})

    return [
        Mount(ROOT, Identified(Api(site, known).application())),
        Route("/openapi.json", site.guarded(openapi)),
        Route("/docs", site.guarded(page)),
    ]


class Identified:
    """ASGI middleware that gives each request an id, and each response the headers of all."""

    def __init__(self, inner: ASGIApp) -> None:
        self._inner: Final = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[REQUEST_ID] = token_hex(8)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update({**HEADERS, "x-request-id": scope[REQUEST_ID]})
            await send(message)

        await self._inner(scope, receive, send_with_headers)


class Api:
    """The handlers of all endpoints."""

    def __init__(self, site: Site, known: Sequence[Endpoint]) -> None:
        self._site: Final = site
        self._known: Final = known
        self._slots: Final = RequestSlots()
        self._idempotency: Final = Idempotency(lambda: int(site.container.clock.now_ms()))
        # conditions and changes of one request are not mixed with those of another
        self._changing: Final = asyncio.Lock()

    def application(self) -> Starlette:
        """Return the application, whose responses to errors are problems."""
        found = Starlette(
            routes=self._routes(),
            exception_handlers={
                Refused: _refused,
                StoreError: _unable,
                ClientDisconnect: _unable,
                HTTPException: _unknown,
                Exception: _failed,
            },
        )
        found.router.redirect_slashes = False
        return found

    def _routes(self) -> list[Route]:
        """Return a route for each path, with all of its methods."""
        by_path: dict[str, dict[str, Endpoint]] = {}
        for endpoint in self._known:
            by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
        return [
            Route(path, self._handler(methods), methods=list(methods))
            for path, methods in by_path.items()
        ]

    def _handler(self, methods: Mapping[str, Endpoint]) -> Handler:
        async def work(request: Request, visitor: Visitor) -> Response:
            method = GET if request.method == "HEAD" else request.method
            with self._slots.taken(visitor.user):
                answer = await self._answer(methods[method], request, visitor)
                return await _response_of(answer)

        return self._site.guarded(work)

    async def _answer(self, endpoint: Endpoint, request: Request, visitor: Visitor) -> CallResult:
        """Carry out a request for an endpoint."""
        headers = request.headers
        if endpoint.method != GET:
            check_origin(headers)
        _check_path(request)
        arguments = read_parameters(request.query_params.multi_items(), endpoint.parameters)
        data = b""
        if endpoint.body is not None:
            data = await read_bytes(request, is_needed=endpoint.method == POST)
        call = Call(
            site=self._site,
            visitor=visitor,
            caller=visitor.caller(request.scope[REQUEST_ID]),
            name=_name_in(request.path_params),
            arguments=arguments,
            body=None if endpoint.body is None else parsed(data, endpoint.body),
            headers=headers,
            demand=visitor.demand,
        )
        key = headers.get(IDEMPOTENCY_KEY)
        if endpoint.method == POST and key is not None:
            path = f"{request.url.path}?{request.url.query}"
            purpose = purpose_of(visitor.identity, path, key)
            return await self._idempotency.answer(purpose, data, partial(endpoint.work, call))
        async with AsyncExitStack() as held:
            if endpoint.method in (PUT, DELETE) and any(each in headers for each in CONDITIONS):
                await held.enter_async_context(self._changing)
            return await endpoint.work(call)


def _check_path(request: Request) -> None:
    """Raise Failure if the path is not UTF-8: names would be mistaken for others."""
    if not is_utf8(request.scope["raw_path"]):
        raise Failure(BAD_REQUEST, NOT_UTF8)


def _name_in(found: Mapping[str, object]) -> str:
    return str(found.get(NAME, found.get(ID, "")))


async def _response_of(answer: CallResult) -> Response:
    if answer.stream is not None:
        return StreamingResponse(answer.stream, media_type=answer.media_type)
    if answer.body is None:
        return Response(status_code=answer.status, headers=dict(answer.headers))
    body = answer.body
    content = body if isinstance(body, bytes) else await encoded_in_portions(body)
    return Response(
        content,
        status_code=answer.status,
        headers=dict(answer.headers),
        media_type=answer.media_type,
    )


async def _refused(request: Request, error: Exception) -> Response:
    return problem_of(cast(Refused, error), request.scope[REQUEST_ID])


async def _unable(request: Request, error: Exception) -> Response:
    return problem_of(Failure(BUSY, str(error)), request.scope[REQUEST_ID])


async def _unknown(request: Request, error: Exception) -> Response:
    """Respond to an unknown path, or to a method that the path does not have."""
    found = cast(HTTPException, error)
    text = f"{request.method} {request.url.path:.100} is not known here"
    response = problem_of(Failure(found.status_code, text), request.scope[REQUEST_ID])
    response.headers.update(found.headers or {})
    return response


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return problem_of(Failure(FAILED, "internal error"), request.scope[REQUEST_ID])
