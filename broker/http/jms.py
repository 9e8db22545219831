"""JMS over HTTP: posting messages, requests with replies, receiving with receipts, browsing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from broker.http.access import Visitor
from broker.http.jms_browsing import browse
from broker.http.jms_fields import fields_of, is_field, not_allowed
from broker.http.jms_posting import Posting, PostRequest
from broker.http.jms_problems import EXPECTED, JmsProblem, problem_of
from broker.http.jms_receiving import Receiving
from broker.http.jms_waiting import Disconnected, Waiting, body_of, preferred_wait
from broker.http.limits import JMS_WAIT_MAX_S
from broker.http.origin import foreign_page
from broker.http.paths import NOT_UTF8, is_utf8
from broker.http.site import Handler, Work
from broker.http.soap_faults import soap_response
from broker.http.soap_jms import SoapCall, answers_as_soap, is_version_12
from broker.links.access import Right
from broker.links.container import Container
from broker.links.linkless import LinklessClient
from broker.management.auditing import actor_at, denied
from broker.management.request import BAD_REQUEST, FORBIDDEN
from broker.routing.queues.node import QUEUE, TOPIC
from broker.security.decision import Decision

CLIENT_CLOSED: Final = 499
"""The status of a response that no client reads."""

GUARDS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}
"""Headers of all responses: a browser runs nothing of a message's body, and keeps none."""


class JmsRoutes:
    """The handlers of the paths below `/jms`. `guarded` admits clients, and raises Refused."""

    def __init__(self, container: Container, guarded: Callable[[Work], Handler]) -> None:
        self._container: Final = container
        self._guarded: Final = guarded
        waiting = Waiting()
        self._posting: Final = Posting(container, waiting)
        self._receiving: Final = Receiving(container, waiting)
        self._waiting: Final = waiting

    def routes(self) -> list[Route]:
        """Return the routes of all paths."""
        return [
            Route("/jms/queue/{name:path}", self._safe(self._to(QUEUE)), methods=["POST"]),
            Route("/jms/topic/{name:path}", self._safe(self._to(TOPIC)), methods=["POST"]),
            Route("/jms/receive/queue/{name:path}", self._safe(self._receive), methods=["POST"]),
            Route("/jms/receipts/{receipt}", self._safe(self._accept), methods=["DELETE"]),
            Route("/jms/receipts/{receipt}/{action}", self._safe(self._settle), methods=["POST"]),
            Route("/jms/browse/queue/{name:path}", self._safe(self._browse), methods=["GET"]),
        ]

    def _safe(self, work: Work) -> Handler:
        """Return a handler that responds to errors by problems, and refuses foreign web pages."""
        guarded = self._guarded(work)

        async def answer(request: Request) -> Response:
            try:
                check_origin(request)
                if not is_utf8(request.scope["raw_path"]):
                    raise JmsProblem(BAD_REQUEST, "bad-request", NOT_UTF8)
                response = await guarded(request)
            except Disconnected:
                response = Response(status_code=CLIENT_CLOSED)
            except EXPECTED as error:
                response = problem_of(error).response()
            for name, value in GUARDS.items():
                response.headers[name] = value
            return response

        return answer

    def _client(self, visitor: Visitor) -> LinklessClient:
        audit = self._container.audit

        def note(right: Right, decision: Decision) -> None:
            actor = actor_at(client.identity, client.entrance)
            audit.record(denied(actor, right.verb, right.resource, decision=decision))

        client = LinklessClient(self._container, visitor.identity, visitor.entrance, denied=note)
        return client

    def _to(self, kind: str) -> Work:
        async def send(request: Request, visitor: Visitor) -> Response:
            return await self._send(request, visitor, kind)

        return send

    async def _send(self, request: Request, visitor: Visitor, kind: str) -> Response:
        call = SoapCall(
            content_type=request.headers.get("content-type", ""),
            soap_action=request.headers.get("soapaction"),
            kind=kind,
            name=request.path_params["name"],
        )
        fields = fields_of(request.headers.raw, request.query_params.multi_items())
        try:
            wait_s = preferred_wait(request.headers.get("prefer"), JMS_WAIT_MAX_S)
            body = await body_of(request, self._container)
            posted = PostRequest(call=call, fields=fields, body=body, wait_s=wait_s)
            return await self._posting.send(self._client(visitor), posted, request)
        except EXPECTED as error:
            if not answers_as_soap(call, fields):
                raise
            return soap_response(problem_of(error), is_12=is_version_12(call.content_type))

    async def _receive(self, request: Request, visitor: Visitor) -> Response:
        _refuse_fields(request)
        return await self._receiving.receive(self._client(visitor), request)

    async def _accept(self, request: Request, visitor: Visitor) -> Response:
        return await self._receiving.settle(self._client(visitor), request, "accept")

    async def _settle(self, request: Request, visitor: Visitor) -> Response:
        action = request.path_params["action"]
        return await self._receiving.settle(self._client(visitor), request, action)

    async def _browse(self, request: Request, visitor: Visitor) -> Response:
        client = self._client(visitor)
        with self._waiting.one(client.identity.user):
            return await browse(client, request)


def _refuse_fields(request: Request) -> None:
    """Raise JmsProblem if a request that sends no message has a header of one."""
    for name in request.headers:
        if is_field(name):
            raise not_allowed(name)


def check_origin(request: Request) -> None:
    """Raise JmsProblem if a browser sends the request for a page that is not the broker's own.

    A browser knows the password of its user, and without passwords every page that is open on this
    machine could send messages.
    """
    if foreign_page(request.headers):
        raise JmsProblem(FORBIDDEN, "foreign-origin", "web pages of other origins are refused")
