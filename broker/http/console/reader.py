"""The endpoints of the API, as the console uses them: with their rights, records and effects."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Final, final

from broker.http.api.bodies import parsed
from broker.http.api.endpoint import GET, Call, CallResult, Endpoint
from broker.http.api.parameters import read_parameters
from broker.http.api.problems import failure_of
from broker.http.api.slots import RequestSlots
from broker.http.console.entry import Guest
from broker.http.site import Site
from broker.management.messages import MESSAGE
from broker.management.request import FAILURES_FROM, Refused, Request

Pairs = Sequence[tuple[str, str]]


@final
class EndpointReader:
    """Carries out endpoints for the clients of the console."""

    def __init__(self, site: Site, known: Sequence[Endpoint]) -> None:
        self._site: Final = site
        self._endpoints: Final = {(each.method, each.path): each for each in known}
        self._slots: Final = RequestSlots()

    def endpoint(self, method: str, path: str) -> Endpoint:
        """Return an endpoint by its method and its path in the API."""
        return self._endpoints[method, path]

    async def carry_out(
        self,
        guest: Guest,
        endpoint: Endpoint,
        *,
        name: str = "",
        query: Pairs = (),
        body: Mapping[str, object] | None = None,
    ) -> CallResult:
        """Return the result of an endpoint; raise Refused as the API does.

        `name` is the entity in the path, `query` the parameters, `body` the fields of the body.
        """
        visitor = guest.visitor
        call = Call(
            site=self._site,
            visitor=visitor,
            caller=visitor.caller(token_hex(8)),
            name=name,
            arguments=read_parameters(query, endpoint.parameters),
            body=None
            if endpoint.body is None
            else parsed(json.dumps(body or {}).encode(), endpoint.body),
            headers={},
            demand=visitor.demand,
        )
        with self._slots.taken(visitor.user):
            return await endpoint.work(call)

    async def read(
        self, guest: Guest, path: str, *, name: str = "", query: Pairs = ()
    ) -> Mapping[str, object]:
        """Return the entity, or the page of entities, that a GET of the API returns."""
        result = await self.carry_out(guest, self.endpoint(GET, path), name=name, query=query)
        assert isinstance(result.body, Mapping)
        return result.body

    async def message(
        self, guest: Guest, number: str, place: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return a message with its body, which no endpoint of the API returns together."""
        request = Request(operation="READ", type=MESSAGE, identity=number, arguments=place)
        caller = guest.visitor.caller(token_hex(8))
        with self._slots.taken(guest.visitor.user):
            response = await self._site.executor.execute(caller, request)
        if response.status >= FAILURES_FROM:
            raise failure_of(response)
        assert isinstance(response.body, Mapping)
        return response.body

    async def items(self, guest: Guest, path: str, query: Pairs = ()) -> PartOfPage:
        """Return the entities of a list, or why the client may not see them."""
        try:
            body = await self.read(guest, path, query=query)
        except Refused as refused:
            return PartOfPage([], problem=str(refused))
        items = body["items"]
        assert isinstance(items, list)
        return PartOfPage(items, has_more=body["next"] is not None)


@final
class PartOfPage:
    """A list that is only a part of a page, which is shown without it, too."""

    def __init__(
        self,
        items: Sequence[Mapping[str, object]],
        *,
        has_more: bool = False,
        problem: str = "",
    ) -> None:
        self.items: Final = items
        self.has_more: Final = has_more
        self.problem: Final = problem
