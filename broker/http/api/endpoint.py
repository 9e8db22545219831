"""An endpoint: a method and a path with all that is known of it, for requests and for OpenAPI."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from pydantic import BaseModel

from broker.http.access import Visitor
from broker.http.api.parameters import Parameter
from broker.http.api.problems import failure_of
from broker.http.site import Site
from broker.management.entity import Caller
from broker.management.management import SELF
from broker.management.request import FAILURES_FROM, Request
from broker.management.response import Response
from broker.security.resources import Resource

M = TypeVar("M", bound=BaseModel)

ROOT: Final = "/api/v1"
"""The path below which all endpoints are."""

GET: Final = "GET"
PUT: Final = "PUT"
POST: Final = "POST"
DELETE: Final = "DELETE"

NAME: Final = "name"
"""The path parameter with the name of an entity, which may have slashes: the last segment."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request that has been read: its parameters, the name in its path, and its body.

    `demand` raises Refused, and has it recorded, unless the client has a right. The `visitor` is
    the client, and `caller` the same for management.
    """

    site: Site
    visitor: Visitor
    caller: Caller
    name: str
    arguments: Mapping[str, object]
    body: BaseModel | None
    headers: Mapping[str, str]
    demand: Callable[[str, Resource], None]

    def now(self) -> Call | None:
        """Return this call with the roles of its user by now; None if the login has ended.

        For what goes on after its request, or lasts: rights may be withdrawn meanwhile.
        """
        visitor = self.visitor.now()
        if visitor is None:
            return None
        caller = visitor.caller(self.caller.request_id or "")
        return replace(self, visitor=visitor, caller=caller, demand=visitor.demand)

    def read(self, model: type[M]) -> M:
        """Return the body, of the model of this endpoint."""
        assert isinstance(self.body, model), "the body was read as the endpoint says"
        return self.body

    async def ask(self, request: Request) -> Response:
        """Return the response of management; raise Failure if it reports one."""
        response = await self.attempt(request)
        if response.status >= FAILURES_FROM:
            raise failure_of(response)
        return response

    async def attempt(self, request: Request) -> Response:
        """Return the response of management, whatever it is."""
        return await self.site.executor.execute(self.caller, request)


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """The response to a call: `body` becomes JSON, or is the content if it is bytes.

    `stream` yields the content of one that has no end, in place of a body.
    """

    status: int = 200
    body: object = None
    stream: AsyncIterator[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


Work = Callable[[Call], Awaitable[CallResult]]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A method of a path below the API's root.

    `right` is the right without which nothing is done, `result` the model or record of the
    response, `status` its code, and `other_status` the one of other successes, 0 if there is none.
    `media_types` are those of a response that has no such result.
    `is_list`: the response is a page of results. `is_conditional`: it is carried out only if the
    preconditions in its headers hold.
    """

    method: str
    path: str
    summary: str
    right: str
    work: Work
    parameters: Sequence[Parameter] = ()
    body: type[BaseModel] | None = None
    result: type | None = None
    status: int = 200
    other_status: int = 0
    media_types: Sequence[str] = ()
    is_list: bool = False
    is_conditional: bool = False

    @property
    def tag(self) -> str:
        """The first segment of the path."""
        return self.path.strip("/").partition("/")[0]


def query_of(kind: str, arguments: Mapping[str, object], *, count: int) -> Request:
    """Return the QUERY for `count` entities of a type."""
    return Request(
        operation="QUERY",
        type=SELF,
        properties={"entityType": kind, "count": count},
        arguments=arguments,
    )


def rows_of(response: Response) -> list[Mapping[str, object]]:
    """Return the entities in the response to a QUERY."""
    body = response.body
    assert isinstance(body, Mapping)
    names, rows = body["attributeNames"], body["results"]
    assert isinstance(names, list)
    assert isinstance(rows, list)
    return [dict(zip(names, row, strict=True)) for row in rows]
