"""The picture of the topology: producers, addresses, subscriptions, consumers, and their links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

BOXES_MAX: Final = 50
"""Maximum boxes of a picture. If there are more, those of a column are grouped by first words."""

GROUPS_MAX: Final = 40
"""Maximum boxes of a column; the others of it are one box."""

BOX_WIDTH: Final = 210
BOX_HEIGHT: Final = 30
GAP: Final = 10
HEAD: Final = 26
COLUMN: Final = 290
"""Measures in units of the picture."""

TITLES: Final = ("Producers", "Addresses", "Subscriptions", "Consumers")
PRODUCERS, ADDRESSES, SUBSCRIPTIONS, CONSUMERS = range(len(TITLES))

TITLE_CHARACTERS: Final = 26
"""Characters of a name that fit into a box beside a number."""

OTHERS: Final = "others"

SENDER: Final = "sender"

End = tuple[int, str]
"""A column, and the name of a client, an address or a subscription in it."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """A client, an address or a subscription, or a group of them, with its ready messages.

    `lines` is the number of its links; `ready` is None where messages do not wait, or are unknown.
    """

    name: str
    x: int
    y: int
    lines: int
    ready: int | None = None

    @property
    def title(self) -> str:
        """The name, cut to the width of the box."""
        if len(self.name) <= TITLE_CHARACTERS:
            return self.name
        return self.name[: TITLE_CHARACTERS - 1] + "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, kw_only=True)
class LinkLine:
    """All links between two boxes: the points of the line, and their number.

    `rate` is that of their deliveries per second, None if it is not known yet.
    """

    x1: int
    y1: int
    x2: int
    y2: int
    links: int
    rate: float | None
    text: str

    @property
    def x_rate(self) -> int:
        """The middle of the line, at which the rate is written."""
        return (self.x1 + self.x2) // 2

    @property
    def y_rate(self) -> int:
        """The height of the rate, above the line."""
        return (self.y1 + self.y2) // 2 - 4


@dataclass(kw_only=True)
class Bundle:
    """The links between two ends: their number, and the sum of their known rates."""

    links: int = 0
    rate: float | None = None

    def add(self, links: int, rate: float | None) -> None:
        """Add links with the sum of their rates."""
        self.links += links
        if rate is not None:
            self.rate = (self.rate or 0.0) + rate


Bundles = dict[tuple[End, End], Bundle]


@dataclass(frozen=True, kw_only=True)
class BoxColumn:
    """The boxes of one kind, below each other."""

    title: str
    x: int
    boxes: Sequence[Box]


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Boxes and lines; `is_grouped` if boxes stand for several clients, addresses or others."""

    columns: Sequence[BoxColumn]
    lines: Sequence[LinkLine]
    height: int
    is_grouped: bool

    def count(self) -> str:
        """Return how many boxes there are of each kind, as text."""
        return ", ".join(f"{len(each.boxes)} {each.title.lower()}" for each in self.columns)


def picture_of(
    links: Iterable[Mapping[str, object]],
    subscriptions: Iterable[Mapping[str, object]] = (),
    ready: Mapping[str, int] | None = None,
    *,
    rates: Mapping[str, float] | None = None,
) -> Picture:
    """Return the picture of links and named subscriptions, as the API lists them.

    `ready` are the ready messages of queues by their addresses, `rates` the deliveries per second
    of links by their identities.
    """
    known = {str(each["identity"]): each for each in subscriptions}
    between = _lines_of(links, known, rates or {})
    names: list[set[str]] = [set() for _ in TITLES]
    for start, end in between:
        names[start[0]].add(start[1])
        names[end[0]].add(end[1])
    is_grouped = sum(map(len, names)) > BOXES_MAX
    shown = [_names(each, is_grouped=is_grouped) for each in names]
    counts: Bundles = {}
    for ((column, name), (next_column, next_name)), bundle in between.items():
        ends = (column, shown[column][name]), (next_column, shown[next_column][next_name])
        counts.setdefault(ends, Bundle()).add(bundle.links, bundle.rate)
    waiting = _waiting(known.values(), ready or {}, shown)
    boxes = _boxes(counts, shown, waiting)
    columns = [
        BoxColumn(
            title=title,
            x=number * COLUMN,
            boxes=[box for (column, _), box in boxes.items() if column == number],
        )
        for number, title in enumerate(TITLES)
    ]
    rows = max(1, *(len(each.boxes) for each in columns))
    return Picture(
        columns=columns,
        lines=[_line(boxes, start, end, bundle=each) for (start, end), each in counts.items()],
        height=HEAD + rows * (BOX_HEIGHT + GAP),
        is_grouped=is_grouped,
    )


def _lines_of(
    links: Iterable[Mapping[str, object]],
    known: Mapping[str, Mapping[str, object]],
    rates: Mapping[str, float],
) -> Bundles:
    """Return the links between two ends; none for a subscription without a consumer."""
    found: Bundles = {}

    def add(start: End, end: End, *, links: int = 1, rate: float | None = None) -> None:
        found.setdefault((start, end), Bundle()).add(links, rate)

    for link in links:
        rate = rates.get(str(link["identity"]))
        address = ADDRESSES, str(link["address"]) or "(relay)"
        client = str(link["container_id"])
        identity = link.get("subscription")
        if link["role"] == SENDER:
            add((PRODUCERS, client), address, rate=rate)
        elif identity:
            subscription = SUBSCRIPTIONS, _label(str(identity), known)
            add(address, subscription, rate=rate)
            add(subscription, (CONSUMERS, client), rate=rate)
        else:
            add(address, (CONSUMERS, client), rate=rate)
    for identity, record in known.items():
        subscription = SUBSCRIPTIONS, _label(identity, known)
        add((ADDRESSES, str(record["address"])), subscription, links=0)
    return found


def _label(identity: str, known: Mapping[str, Mapping[str, object]]) -> str:
    """Return the name of a subscription, with the client that it belongs to."""
    record = known.get(identity)
    if record is None:
        return identity
    client = record["container_id"]
    return f"{record['name']} ({client})" if client else str(record["name"])


def _names(names: set[str], *, is_grouped: bool) -> dict[str, str]:
    """Return the name of the box for each name of a column."""
    if not is_grouped:
        return {name: name for name in names}
    first_words = {name: _first_word(name) for name in names}
    sizes = Counter(first_words.values())
    shown = {word for word, _ in sizes.most_common(GROUPS_MAX - 1)}
    return {
        name: OTHERS
        if word not in shown
        else name
        if sizes[word] == 1
        else f"{word}\N{HORIZONTAL ELLIPSIS}"
        for name, word in first_words.items()
    }


def _first_word(name: str) -> str:
    for at, character in enumerate(name):
        if at and character in ".-_:/ ":
            return name[:at]
    return name


def _waiting(
    known: Iterable[Mapping[str, object]],
    ready: Mapping[str, int],
    shown: Sequence[Mapping[str, str]],
) -> Counter[End]:
    """Return the ready messages of each box of queues and subscriptions."""
    found: Counter[End] = Counter()
    for address, messages in ready.items():
        if address in shown[ADDRESSES]:
            found[ADDRESSES, shown[ADDRESSES][address]] += messages
    for record in known:
        label = _label(str(record["identity"]), {str(record["identity"]): record})
        count = record["messages"]
        assert isinstance(count, int)
        found[SUBSCRIPTIONS, shown[SUBSCRIPTIONS][label]] += count
    return found


def _boxes(
    counts: Bundles,
    shown: Sequence[Mapping[str, str]],
    waiting: Mapping[End, int],
) -> dict[End, Box]:
    lines: Counter[End] = Counter()
    for ends, bundle in counts.items():
        for end in ends:
            lines[end] += bundle.links
    return {
        (column, name): Box(
            name=name,
            x=column * COLUMN,
            y=HEAD + at * (BOX_HEIGHT + GAP),
            lines=lines[column, name],
            ready=waiting.get((column, name)),
        )
        for column, names in enumerate(shown)
        for at, name in enumerate(sorted(set(names.values())))
    }


def _line(boxes: Mapping[End, Box], start: End, end: End, *, bundle: Bundle) -> LinkLine:
    """Return the line of the links between two boxes."""
    left, right = boxes[start], boxes[end]
    rate = "" if bundle.rate is None else f", {bundle.rate:,.1f} messages/s"
    return LinkLine(
        x1=left.x + BOX_WIDTH,
        y1=left.y + BOX_HEIGHT // 2,
        x2=right.x,
        y2=right.y + BOX_HEIGHT // 2,
        links=bundle.links,
        rate=bundle.rate,
        text=f"{left.name} to {right.name}: {bundle.links} links{rate}",
    )
