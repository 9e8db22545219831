"""The picture of the topology: producers, addresses, consumers, and the links between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

BOXES_MAX: Final = 50
"""Maximum boxes of a picture. If there are more, those of a column are grouped by first words."""

GROUPS_MAX: Final = 40
"""Maximum boxes of a column; the others of it are one box."""

BOX_WIDTH: Final = 240
BOX_HEIGHT: Final = 34
GAP: Final = 12
COLUMN: Final = 400
"""Measures in units of the picture."""

OTHERS: Final = "others"

SENDER: Final = "sender"


@dataclass(frozen=True, kw_only=True)
class Box:
    """A client or an address, or a group of them. `lines` is the number of its links."""

    name: str
    x: int
    y: int
    lines: int

    @property
    def title(self) -> str:
        """The name, cut to the width of the box."""
        return self.name if len(self.name) <= 32 else self.name[:31] + "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, kw_only=True)
class LinkLine:
    """All links between two boxes: the points of the line, and their number."""

    x1: int
    y1: int
    x2: int
    y2: int
    links: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Boxes and lines; `is_grouped` if boxes stand for several clients or addresses."""

    producers: Sequence[Box]
    addresses: Sequence[Box]
    consumers: Sequence[Box]
    lines: Sequence[LinkLine]
    height: int
    is_grouped: bool


def picture_of(links: Iterable[Mapping[str, object]]) -> Picture:
    """Return the picture of links, as the API lists them."""
    ends = [
        (str(each["role"]), str(each["container_id"]), str(each["address"]) or "(relay)")
        for each in links
    ]
    producers = {client for role, client, _ in ends if role == SENDER}
    consumers = {client for role, client, _ in ends if role != SENDER}
    addresses = {address for _, _, address in ends}
    is_grouped = len(producers) + len(consumers) + len(addresses) > BOXES_MAX
    columns = [_names(names, is_grouped=is_grouped) for names in (producers, addresses, consumers)]
    counts: Counter[tuple[int, str, str]] = Counter()
    for role, client, address in ends:
        if role == SENDER:
            counts[0, columns[0][client], columns[1][address]] += 1
        else:
            counts[1, columns[1][address], columns[2][client]] += 1
    drawn = [
        _boxes(number, counts, sorted(set(names.values()))) for number, names in enumerate(columns)
    ]
    return Picture(
        producers=drawn[0],
        addresses=drawn[1],
        consumers=drawn[2],
        lines=[_line(drawn, between, links_of) for between, links_of in sorted(counts.items())],
        height=max(1, *map(len, drawn)) * (BOX_HEIGHT + GAP) + GAP,
        is_grouped=is_grouped,
    )


def _names(names: set[str], *, is_grouped: bool) -> dict[str, str]:
    """Return the name of the box for each client or address."""
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
        if at and character in ".-_:/":
            return name[:at]
    return name


def _boxes(column: int, counts: Mapping[tuple[int, str, str], int], names: list[str]) -> list[Box]:
    lines: Counter[str] = Counter()
    for (side, left, right), links in counts.items():
        if column == side:
            lines[left] += links
        elif column == side + 1:
            lines[right] += links
    return [
        Box(name=name, x=column * COLUMN, y=GAP + at * (BOX_HEIGHT + GAP), lines=lines[name])
        for at, name in enumerate(names)
    ]


def _line(boxes: Sequence[Sequence[Box]], between: tuple[int, str, str], links: int) -> LinkLine:
    """Return the line of `links` links from a column to the next one, between two boxes."""
    column, left, right = between
    start = next(box for box in boxes[column] if box.name == left)
    end = next(box for box in boxes[column + 1] if box.name == right)
    return LinkLine(
        x1=start.x + BOX_WIDTH,
        y1=start.y + BOX_HEIGHT // 2,
        x2=end.x,
        y2=end.y + BOX_HEIGHT // 2,
        links=links,
        text=f"{left} to {right}: {links} links",
    )
