"""Long lists in pieces: which part was asked for, and which attributes of it. For all entities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from heapq import nsmallest
from typing import Final

from broker.management.request import BAD_REQUEST, Refused, Request, checked_number
from broker.management.response import Response

COUNT_DEFAULT: Final = 100
COUNT_MAX: Final = 1000
OFFSET_MAX: Final = 1_000_000

ATTRIBUTES_MAX: Final = 100


@dataclass(frozen=True, kw_only=True)
class Page:
    """`count` entities from number `offset` on, of those that match `pattern`."""

    offset: int
    count: int
    pattern: str
    attributes: Sequence[str]

    def choose(self, names: Iterable[str]) -> list[str]:
        """The names on this page, in their order. What follows a NUL in one is not for the pattern:
        it parts those that would be the same."""
        matching = (name for name in names if fnmatchcase(name.partition("\0")[0], self.pattern))
        # the front of a heap: the whole of a long list is never sorted for its first page
        return nsmallest(self.offset + self.count, matching)[self.offset :]

    def response(self, records: Iterable[Mapping[str, object]]) -> Response:
        """What QUERY answers: a row for each record, in the order of the attributes."""
        rows: list[object] = [
            [record[attribute] for attribute in self.attributes] for record in records
        ]
        return Response(
            body={"attributeNames": list(self.attributes), "results": rows},
            properties={"count": len(rows)},
        )


def read_page(request: Request, known: Sequence[str], *others: str) -> Page:
    """The page that `request` asks for; `others` are the arguments that its entity knows besides.

    `offset` and `count` are application properties, as the draft has them.
    """
    request.only("attributeNames", "filter", *others)
    attributes = request.texts("attributeNames", at_most=ATTRIBUTES_MAX)
    for name in attributes:
        if name not in known:
            raise Refused(
                BAD_REQUEST, f"no attribute {name:.50}; known are {', '.join(sorted(known))}"
            )
    given = request.properties
    return Page(
        offset=checked_number("offset", given.get("offset"), 0, low=0, high=OFFSET_MAX),
        count=checked_number("count", given.get("count"), COUNT_DEFAULT, low=1, high=COUNT_MAX),
        pattern=request.text("filter", "*"),
        attributes=attributes or list(known),
    )
