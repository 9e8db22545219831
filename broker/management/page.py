"""Pages of long lists, for all entities: the requested part and the requested attributes."""

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
    """A requested part of a list: `count` entities from index `offset` on.

    The list has the entities whose name matches `pattern`, a case-sensitive shell pattern.
    """

    offset: int
    count: int
    pattern: str
    attributes: Sequence[str]

    def choose(self, names: Iterable[str]) -> list[str]:
        """Return the names on this page, sorted.

        The pattern applies to the part of a name before a NUL; the part after it only
        distinguishes entities of equal names.
        """
        matching = (name for name in names if fnmatchcase(name.partition("\0")[0], self.pattern))
        # with a heap, the first page of a long list does not need the whole list sorted
        return nsmallest(self.offset + self.count, matching)[self.offset :]

    def response(self, records: Iterable[Mapping[str, object]]) -> Response:
        """Return the response to QUERY: a row per record, values in the order of `attributes`."""
        rows: list[object] = [
            [record[attribute] for attribute in self.attributes] for record in records
        ]
        return Response(
            body={"attributeNames": list(self.attributes), "results": rows},
            properties={"count": len(rows)},
        )


def read_page(request: Request, known: Sequence[str], *others: str) -> Page:
    """Return the page that `request` asks for; Refused if an argument is unknown or invalid.

    `known` are the entity's attributes, `others` further arguments that it accepts. `offset` and
    `count` are application properties, as in the AMQP Management draft.
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
