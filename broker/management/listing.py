"""Sorted lists of entities, page by page, that leave the event loop time for other work.

A page begins behind the entity with which the page before ended, so that entities that come or go
meanwhile neither repeat others nor hide them.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import partial
from json import JSONDecodeError, dumps, loads
from typing import Any, Final, Generic, TypeVar, final

from broker.management.entity import EntityRecord
from broker.management.later import Later
from broker.management.page import ATTRIBUTES_MAX
from broker.management.request import BAD_REQUEST, Refused, Request
from broker.management.response import Response
from broker.management.stretches import in_portions

T = TypeVar("T")

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 500

COUNT_MAX: Final = 10_000
"""Maximum of a count: a list that is longer is reported as one of at least so many entities."""

SCANNED: Final = 128
"""Entities between two looks at the clock. Of most of them plain values alone are looked at."""

SORTS_MAX: Final = 4
"""Maximum attributes to sort by."""

CURSOR_CHARACTERS_MAX: Final = 8192

OWN_ORDER: Final = ("name", "identity")
"""The attributes that a list is sorted by at last; its items know them without a record."""

ARGUMENTS: Final = ("limit", "cursor", "sort", "q", "fields", "count")

BEFORE: Final = -1
UNKNOWN: Final = 0
AFTER: Final = 1
"""The side of a key in the order of a list."""

KeyPart = tuple[int, float, str]
"""The rank of a value's type, and the value: values of different types can be compared."""

Key = tuple["KeyPart | Falling", ...]
"""The place of an entity in a list."""

Test = Callable[[EntityRecord], bool]


def _no_value(item: object, attribute: str) -> None:
    """Return None: only records have the attributes."""


@dataclass(frozen=True, kw_only=True)
class Listing(Generic[T]):
    """The entities of one kind: `items`, with a record of each.

    `names_of` returns name and identity of an item. `record_of` returns None if an entity is gone.
    `value_of` returns a number of an item, as its record has it, at less expense; None if only the
    record has the attribute. `filters` are attributes by the argument that must equal them, `tests`
    functions by the boolean argument that their result must equal.
    """

    items: Sequence[T]
    names_of: Callable[[T], tuple[str, str]]
    record_of: Callable[[T], EntityRecord | None]
    value_of: Callable[[T, str], int | None] = _no_value
    filters: Mapping[str, str] = field(default_factory=dict)
    tests: Mapping[str, Test] = field(default_factory=dict)


@final
class Falling:
    """A part of a key that is sorted in descending order."""

    __slots__ = ("part",)

    def __init__(self, part: KeyPart) -> None:
        self.part: Final = part

    def __lt__(self, other: Falling) -> bool:
        return other.part < self.part

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Falling) and other.part == self.part

    def __hash__(self) -> int:
        return hash(self.part)


@dataclass(frozen=True, kw_only=True)
class SortOrder:
    """The attributes that a list is sorted by, and which of them in descending order."""

    attributes: Sequence[str]
    falling: Sequence[bool]

    def is_own(self) -> bool:
        """Return whether the order needs no record of the entities."""
        return all(each in OWN_ORDER for each in self.attributes)

    def key(self, values: Sequence[object]) -> Key:
        """Return the place of an entity with these values."""
        parts = [_part(value) for value in values]
        return tuple(
            Falling(part) if falls else part
            for part, falls in zip(parts, self.falling, strict=True)
        )

    def text(self) -> str:
        """Return the order as the argument `sort` has it."""
        pairs = zip(self.attributes, self.falling, strict=True)
        return ",".join(f"-{name}" if falls else name for name, falls in pairs)


@dataclass(frozen=True, kw_only=True)
class ListRequest:
    """A requested page: `limit` entities behind `behind`, with the attributes `fields`.

    `equal` are values by attribute that entities must have, `tests` functions that they must meet.
    """

    limit: int
    order: SortOrder
    behind: Key | None
    pattern: re.Pattern[str] | None
    fields: Sequence[str]
    is_counted: bool
    equal: Mapping[str, object]
    tests: Sequence[Test]

    def is_of_names(self) -> bool:
        """Return whether an entity can be judged by its names alone."""
        return self.order.is_own() and not self.equal and not self.tests

    def has(self, record: EntityRecord) -> bool:
        """Return whether the filters choose `record`."""
        for attribute, value in self.equal.items():
            if getattr(record, attribute) != value:
                return False
        return all(test(record) for test in self.tests)


def read_list(request: Request, attributes: Sequence[str], listing: Listing[T]) -> ListRequest:
    """Return the page that `request` asks for; Refused if an argument is unknown or invalid."""
    request.only(*ARGUMENTS, *listing.filters, *listing.tests)
    fields = request.texts("fields", at_most=ATTRIBUTES_MAX)
    for name in fields:
        _known(name, attributes)
    order = _order(request.text("sort", ""), attributes)
    cursor = request.arguments.get("cursor")
    asked = request.text("q", "")
    given = request.arguments
    tests = {name: test for name, test in listing.tests.items() if given.get(name) is not None}
    return ListRequest(
        limit=request.number("limit", LIMIT_DEFAULT, low=1, high=LIMIT_MAX),
        order=order,
        behind=None if cursor in (None, "") else _behind(cursor, order),
        pattern=_pattern(asked) if asked else None,
        fields=fields or list(attributes),
        is_counted=request.flag("count"),
        equal={
            attribute: given[name]
            for name, attribute in listing.filters.items()
            if given.get(name) is not None
        },
        tests=[_meeting(test, request.flag(name)) for name, test in tests.items()],
    )


def _meeting(test: Test, expected: bool) -> Test:  # noqa: FBT001 - the second half of the test
    return lambda record: test(record) == expected


def _known(name: str, attributes: Sequence[str]) -> str:
    if name not in attributes:
        known = ", ".join(sorted(attributes))
        raise Refused(BAD_REQUEST, f"no attribute {name:.50}; known are {known}")
    return name


def _order(text: str, attributes: Sequence[str]) -> SortOrder:
    """Return the order that `text` says, such as `-messages,name`; ties are broken by names."""
    words = text.split(",") if text else []
    if len(words) > SORTS_MAX:
        raise Refused(BAD_REQUEST, f"sort has at most {SORTS_MAX} attributes")
    chosen = {_known(word.removeprefix("-"), attributes): word.startswith("-") for word in words}
    chosen = {**chosen, **{name: False for name in OWN_ORDER if name not in chosen}}
    return SortOrder(attributes=list(chosen), falling=list(chosen.values()))


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of names that contain `text`, or match it if it has wildcards."""
    return re.compile(translate(text if set(text) & set("*?[") else f"*{text}*"))


def _part(value: object) -> KeyPart:
    """Return a value as a part of a key: none first, then numbers, texts, and all others."""
    if value is None:
        return 0, 0, ""
    if isinstance(value, int | float):
        return 1, value, ""
    if isinstance(value, str):
        return 2, 0, value
    return 3, 0, str(value)


def cursor_of(order: SortOrder, key: Key) -> str:
    """Return the text from which `_behind` makes `key` again."""
    parts = [each.part if isinstance(each, Falling) else each for each in key]
    return (
        urlsafe_b64encode(dumps([order.text(), parts], ensure_ascii=False).encode())
        .decode()
        .rstrip("=")
    )


def _behind(cursor: object, order: SortOrder) -> Key:
    """Return the place that a cursor of this order names; Refused if it is none."""
    wrong = Refused(BAD_REQUEST, "cursor must be the `next` of a list with the same sort")
    if not isinstance(cursor, str) or len(cursor) > CURSOR_CHARACTERS_MAX:
        raise wrong
    try:
        found = loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, JSONDecodeError, RecursionError):
        raise wrong from None
    if not isinstance(found, list) or len(found) != 2 or found[0] != order.text():
        raise wrong
    parts = found[1]
    if not isinstance(parts, list) or len(parts) != len(order.attributes):
        raise wrong
    if not all(_is_part(part) for part in parts):
        raise wrong
    read: list[KeyPart] = [(part[0], part[1], part[2]) for part in parts]
    pairs = zip(read, order.falling, strict=True)
    return tuple(Falling(part) if falls else part for part, falls in pairs)


def _is_part(part: object) -> bool:
    return (
        isinstance(part, list)
        and len(part) == 3
        and isinstance(part[0], int)
        and isinstance(part[1], int | float)
        and isinstance(part[2], str)
    )


@final
class Chosen(Generic[T]):
    """The entities of the page so far, the smallest keys first, and the number of all."""

    def __init__(self, listing: Listing[T], wanted: ListRequest) -> None:
        self._listing: Final = listing
        self._wanted: Final = wanted
        self.found: list[tuple[Key, T]] = []
        self.total = 0

    def take(self, portion: Sequence[T]) -> None:
        """Look at some entities."""
        wanted, listing = self._wanted, self._listing
        is_full = len(self.found) > wanted.limit
        last = self.found[-1][0] if is_full else None
        fresh: list[tuple[Key, T]] = []
        for item in portion if wanted.is_counted else self._near(portion, last):
            names = listing.names_of(item)
            if not wanted.is_counted and self._is_outside(item, names, last):
                continue
            if wanted.pattern is not None and wanted.pattern.match(names[0]) is None:
                continue
            values = self._values(item, names)
            if values is None:
                continue
            self.total += 1
            key = wanted.order.key(values)
            if last is not None and not key < last:
                continue
            if wanted.behind is None or wanted.behind < key:
                fresh.append((key, item))
        if fresh:
            self.found += fresh
            self.found.sort(key=lambda pair: pair[0])
            del self.found[wanted.limit + 1 :]

    def _near(self, portion: Sequence[T], last: Key | None) -> Sequence[T]:
        """Return the items that may be between the cursor and `last`, by plain values alone.

        Of 100,000 entities nearly all are outside. They are told by the first value to sort by, and
        those with the same value by their names.
        """
        behind, falls = self._wanted.behind, self._wanted.order.falling[0]
        low, high = (last, behind) if falls else (behind, last)
        pairs = list(zip(portion, self._first_values(portion), strict=True))
        if low is not None and (limit := self._plain_limit(low)) is not None:
            reaches = self._reaches(low, is_behind=low is behind)
            pairs = [
                pair
                for pair in pairs
                if pair[1] is None or pair[1] > limit or (pair[1] == limit and reaches(pair[0]))
            ]
        if high is not None and (limit := self._plain_limit(high)) is not None:
            reaches = self._reaches(high, is_behind=high is behind)
            pairs = [
                pair
                for pair in pairs
                if pair[1] is None or pair[1] < limit or (pair[1] == limit and reaches(pair[0]))
            ]
        return [item for item, _ in pairs]

    def _plain_limit(self, bound: Key) -> Any:
        """Return the first value of a bound; None if items have no such values to compare with.

        A client may have made its cursor by itself.
        """
        value = _plain_value(bound[0])
        is_text = self._wanted.order.attributes[0] in OWN_ORDER
        return value if isinstance(value, str) == is_text else None

    def _first_values(self, portion: Sequence[T]) -> Sequence[Any]:
        """Return the first value to sort by of each item; None if only the record has it."""
        attribute = self._wanted.order.attributes[0]
        if attribute in OWN_ORDER:
            at, names_of = OWN_ORDER.index(attribute), self._listing.names_of
            return [names_of(item)[at] for item in portion]
        value_of = self._listing.value_of
        return [value_of(item, attribute) for item in portion]

    def _reaches(self, bound: Key, *, is_behind: bool) -> Callable[[T], bool]:
        """Return whether an item with the first value of a bound may be on its right side."""
        order = self._wanted.order
        name = _plain_value(bound[1])
        if order.attributes[1] not in OWN_ORDER or order.falling[1] or not isinstance(name, str):
            return lambda _: True
        at, names_of = OWN_ORDER.index(order.attributes[1]), self._listing.names_of
        if is_behind:
            return lambda item: names_of(item)[at] >= name
        return lambda item: names_of(item)[at] <= name

    def _is_outside(self, item: T, names: tuple[str, str], last: Key | None) -> bool:
        """Return whether an item is not on the page, as far as is known without its record.

        `last` is the key of the last entity so far, None if there is room for more.
        """
        behind = self._wanted.behind
        if last is not None and self._side(item, names, last) == AFTER:
            return True
        return behind is not None and self._side(item, names, behind) == BEFORE

    def _side(self, item: T, names: tuple[str, str], key: Key) -> int:
        """Return BEFORE or AFTER, or UNKNOWN if an item is at `key`, or only its record tells."""
        for attribute, limit in zip(self._wanted.order.attributes, key, strict=True):
            if attribute in OWN_ORDER:
                part = _part(names[OWN_ORDER.index(attribute)])
            else:
                value = self._listing.value_of(item, attribute)
                if value is None:
                    return UNKNOWN
                part = _part(value)
            if isinstance(limit, Falling):
                if part != limit.part:
                    return AFTER if part < limit.part else BEFORE
            elif part != limit:
                return BEFORE if part < limit else AFTER
        return UNKNOWN

    def _values(self, item: T, names: tuple[str, str]) -> Sequence[object] | None:
        """Return the values to sort by, None if the entity is gone or is not chosen."""
        wanted = self._wanted
        own = dict(zip(OWN_ORDER, names, strict=True))
        if wanted.is_of_names():
            return [own[name] for name in wanted.order.attributes]
        record = self._listing.record_of(item)
        if record is None or not wanted.has(record):
            return None
        return [
            own[name] if name in own else getattr(record, name) for name in wanted.order.attributes
        ]


def _plain_value(part: KeyPart | Falling) -> Any:
    """Return the value of a part of a key; None if it has neither a number nor a text."""
    rank, number, text = part.part if isinstance(part, Falling) else part
    if rank == 1:
        return number
    return text if rank == 2 else None


def _plain(value: object) -> object:
    """Return `value`, a tuple as a list: responses have no other sequences."""
    return list(value) if isinstance(value, tuple) else value


def list_of(request: Request, attributes: Sequence[str], listing: Listing[T]) -> Later:
    """Return the page of `listing` that `request` asks for, which is made beside other work."""
    wanted = read_list(request, attributes, listing)
    return Later(partial(listed, listing, wanted))


async def listed(listing: Listing[T], wanted: ListRequest) -> Response:
    """Return the page: `items`, and `next`, the cursor of the page behind it, null at the end.

    If it is to be counted, `total` entities are chosen on all pages; `relation` is `gte` if there
    are more than COUNT_MAX, else `eq`.
    """
    chosen = Chosen(listing, wanted)
    async for portion in in_portions(listing.items, SCANNED):
        chosen.take(portion)
    page = chosen.found[: wanted.limit]
    is_last = len(chosen.found) <= wanted.limit
    items: list[object] = []
    async for part in in_portions(page):
        records = [listing.record_of(item) for _, item in part]
        items += [
            {name: _plain(getattr(record, name)) for name in wanted.fields}
            for record in records
            if record is not None
        ]
    body: dict[str, object] = {"items": items, "next": None}
    if not is_last:
        body["next"] = cursor_of(wanted.order, page[-1][0])
    if wanted.is_counted:
        body["total"] = min(chosen.total, COUNT_MAX)
        body["relation"] = "eq" if chosen.total <= COUNT_MAX else "gte"
    return Response(body=body)
