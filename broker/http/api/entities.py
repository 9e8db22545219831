"""Endpoints of entities: their lists, and operations on one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker.http.api.endpoint import (
    DELETE,
    GET,
    Call,
    CallResult,
    Endpoint,
    Work,
    query_of,
    rows_of,
)
from broker.http.api.etags import check_conditions, etag_of
from broker.http.api.parameters import FLAG, NUMBER, TEXTS, Parameter
from broker.http.api.problems import Failure
from broker.management.entity import EntityRecord
from broker.management.listing import LIMIT_DEFAULT, LIMIT_MAX
from broker.management.management import SELF
from broker.management.request import NOT_FOUND, Request
from broker.management.response import NO_CONTENT

LIMIT: Final = Parameter(
    name="limit",
    type=NUMBER,
    low=1,
    high=LIMIT_MAX,
    description=f"entities on a page, {LIMIT_DEFAULT} if left out",
)
CURSOR: Final = Parameter(name="cursor", description="`next` of the page before")
AFTER: Final = Parameter(name=CURSOR.name, description=CURSOR.description, argument="after")

SORT: Final = Parameter(
    name="sort", description="attributes, such as `-messages,name`; `-` is descending"
)
FIELDS: Final = Parameter(name="fields", type=TEXTS, description="attributes, separated by commas")

OF_LISTS: Final = (
    LIMIT,
    CURSOR,
    SORT,
    Parameter(name="q", description="a part of the name, or a pattern with `*` and `?`"),
    FIELDS,
    Parameter(name="count", type=FLAG, description="also return `total`, at most 10,000"),
)
"""The parameters of every list that has an order of its own."""


Record = type[EntityRecord]


@dataclass(frozen=True, kw_only=True)
class ResourceKind:
    """A type of entities as resources: `path` is that of their list.

    `part` is the part of management by which rules name it. `settings` are the attributes that an
    ETag depends on, none if resources have no ETag. `filters` are further parameters of the list.
    `by` is what the name in the path is: `name` or `identity`. `nouns` is the plural of `noun`.
    """

    path: str
    type: str
    part: str
    record: Record
    noun: str
    nouns: str = ""
    settings: Sequence[str] = ()
    filters: Sequence[Parameter] = ()
    by: str = "name"

    def request(
        self, operation: str, name: str, arguments: Mapping[str, object] | None = None
    ) -> Request:
        """Return the request for an operation on one entity."""
        named = {self.by: name}
        return Request(
            operation=operation,
            type=self.type,
            name=named.get("name"),
            identity=named.get("identity"),
            arguments=arguments or {},
        )

    def one(self) -> str:
        """Return the path of one entity."""
        return f"{self.path}/{{name:path}}"

    def listing(self) -> Endpoint:
        """Return the endpoint of the list."""
        return Endpoint(
            method=GET,
            path=self.path,
            summary=f"List {self.nouns or self.noun + 's'}",
            right=f"view management:{self.part}",
            work=self._list,
            parameters=(*OF_LISTS, *self.filters),
            result=self.record,
            is_list=True,
        )

    def reading(self) -> Endpoint:
        """Return the endpoint of one entity."""
        return Endpoint(
            method=GET,
            path=self.one(),
            summary=f"Read one {self.noun}",
            right=f"view management:{self.part}",
            work=self._read,
            result=self.record,
        )

    def removal(
        self, operation: str, summary: str, parameters: Sequence[Parameter] = ()
    ) -> Endpoint:
        """Return the endpoint that ends one entity by an operation."""

        async def remove(call: Call) -> CallResult:
            await self.check(call)
            request = self.request(operation, named(call), call.arguments)
            await call.ask(request)
            return CallResult(status=NO_CONTENT)

        return Endpoint(
            method=DELETE,
            path=self.one(),
            summary=summary,
            right=f"edit management:{self.part}",
            work=remove,
            parameters=parameters,
            status=NO_CONTENT,
            is_conditional=bool(self.settings),
        )

    async def check(self, call: Call) -> bool | None:
        """Raise Failure unless the preconditions in the headers of a call hold.

        Return whether the entity is there, None if there is no condition.
        """
        if not self.settings:
            return None
        return await check_conditions(
            call, self.request("READ", named(call)), lambda body: etag_of(body, self.settings)
        )

    async def _list(self, call: Call) -> CallResult:
        request = Request(
            operation="LIST",
            type=SELF,
            properties={"entityType": self.type},
            arguments=call.arguments,
        )
        return CallResult(body=(await call.ask(request)).body)

    async def _read(self, call: Call) -> CallResult:
        body = (await call.ask(self.request("READ", named(call)))).body
        return CallResult(body=body, headers=self.tag(body))

    def tag(self, body: object) -> Mapping[str, str]:
        """Return the header with the ETag of an entity, none if its kind has no ETags."""
        return {"etag": etag_of(body, self.settings)} if self.settings else {}


def named(call: Call) -> str:
    """Return the name in the path of a call; Failure if it is empty."""
    if not call.name:
        raise Failure(NOT_FOUND, "the path ends with the name of an entity")
    return call.name


def whole(kind: str, argument: str = "") -> Work:
    """Return the work of a list that has no order of its own, on the pages of QUERY.

    `argument` is the argument that continues a page, if there can be several pages.
    """

    async def work(call: Call) -> CallResult:
        arguments = dict(call.arguments)
        count = arguments.pop("limit", LIMIT_DEFAULT)
        assert isinstance(count, int)
        response = await call.ask(query_of(kind, arguments, count=count))
        assert isinstance(response.body, Mapping)
        following = response.body.get("next") if argument else None
        items = rows_of(response)
        if argument and "next" not in response.body and len(items) == count:
            following = items[-1]["identity"]
        is_over = following is None or response.body.get("complete") is True
        return CallResult(body={"items": items, "next": None if is_over else str(following)})

    return work


EntityName = str | Callable[[Call], str]
"""The name of an entity, empty for none, or what returns it: `named` for the one in the path."""


def _request_of(
    call: Call, kind: str, operation: str, *, name: EntityName, arguments: Mapping[str, object]
) -> Request:
    found = name if isinstance(name, str) else name(call)
    return Request(operation=operation, type=kind, name=found or None, arguments=arguments)


def performed(kind: str, operation: str, name: EntityName = "") -> Work:
    """Return the work that performs an operation, with the parameters as its arguments."""

    async def work(call: Call) -> CallResult:
        request = _request_of(call, kind, operation, name=name, arguments=call.arguments)
        return CallResult(body=(await call.ask(request)).body)

    return work


def stated(kind: str, operation: str, name: EntityName = "") -> Work:
    """Return the work that performs an operation, with the fields of the body as its arguments."""

    async def work(call: Call) -> CallResult:
        assert call.body is not None
        said = call.body.model_dump(exclude_none=True, by_alias=True)
        request = _request_of(call, kind, operation, name=name, arguments=said)
        response = await call.ask(request)
        return CallResult(status=response.status, body=response.body)

    return work
