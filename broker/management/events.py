"""The event log, page by page: the events of messages, such as their delivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from broker.management.entity import Caller, Entity, Operation
from broker.management.later import Later
from broker.management.page import read_page
from broker.management.request import BAD_REQUEST, Refused, Request
from broker.management.response import Response
from broker.routing.addresses.prefixes import Prefixes
from broker.routing.queues.message_events import KINDS
from storage.api import Store
from storage.events import EVENT_COLUMNS, EventPage, EventQuery

EVENTS: Final = "events"

NUMBER_MAX: Final = 2**63 - 1


class Events(Entity):
    """The rows of the event log, in ascending order of id."""

    type = EVENTS
    part = "events"
    attributes = EVENT_COLUMNS
    routine = ("BOUNDS",)

    def __init__(self, store: Store, prefixes: Prefixes) -> None:
        self._store: Final = store
        self._prefixes: Final = prefixes

    def operations(self) -> Mapping[str, Operation]:
        return {"BOUNDS": self._bounds}

    def _bounds(self, request: Request, caller: Caller) -> Later:  # noqa: ARG002
        """Return the ids of the `first` and the `last` row, both 0 if there is none."""
        request.only()

        async def answer() -> Response:
            first, last = await self._store.event_bounds()
            return Response(body={"first": first, "last": last})

        return Later(answer)

    def query(self, request: Request) -> Later:
        """Return rows with ids above `behind`, filtered by `address`, `kind` and time.

        Times are from `since_us` (included) to `until_us` (excluded), wall time in µs. `next` of
        the response is the value of `behind` for the next page; `complete` is true if no row has a
        higher id now. A page may have fewer rows than `count`, or none, without being the last.
        """
        page = read_page(
            request, self.attributes, "address", "kind", "since_us", "until_us", "behind"
        )
        kind = request.text("kind", "")
        if kind and kind not in KINDS:
            raise Refused(BAD_REQUEST, f"no kind {kind:.50}; known are {', '.join(KINDS)}")
        address = request.text("address", "")
        query = EventQuery(
            behind=request.number("behind", 0, high=NUMBER_MAX),
            at_most=page.count,
            address=self._prefixes.canonical(address) if address else "",
            kind=kind,
            since_us=request.number("since_us", 0, high=NUMBER_MAX),
            until_us=request.number("until_us", 0, high=NUMBER_MAX),
        )

        async def answer() -> Response:
            return _response(await self._store.events(query), page.attributes)

        return Later(answer)


def _response(events: EventPage, attributes: Sequence[str]) -> Response:
    places = [EVENT_COLUMNS.index(name) for name in attributes]
    rows: list[object] = [[row[place] for place in places] for row in events.rows]
    return Response(
        body={
            "attributeNames": list(attributes),
            "results": rows,
            "next": int(events.looked_to),
            "complete": events.is_last,
        },
        properties={"count": len(rows)},
    )
