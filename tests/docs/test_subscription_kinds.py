"""The picture of the twelve kinds of attach has each kind in its place, with its identity."""

import re
from pathlib import Path
from typing import Final

from broker.routing.topics.subscription import SubscriptionTraits, row_of

PICTURE: Final = Path(__file__).resolve().parents[2] / "docs" / "images" / "subscription-kinds.svg"
CELL: Final = re.compile(r"<g transform=\"translate\((\d+) (\d+)\)\">\n(.*?)\n  </g>", re.DOTALL)


def pictured() -> list[tuple[int, int, str, str]]:
    """Return row and column of each cell, its kind, and the name of its queue."""
    cells = [(int(y), int(x), text) for x, y, text in CELL.findall(PICTURE.read_text())]
    rows, columns = sorted({y for y, _, _ in cells}), sorted({x for _, x, _ in cells})
    return [
        (
            rows.index(y),
            columns.index(x),
            "".join(re.findall(r">(SUB-\d\d)<", text)),
            "".join(re.findall(r"identity\".*?>(.*?)<", text)),
        )
        for y, x, text in cells
    ]


def test_each_kind_is_where_its_row_and_column_say() -> None:
    expected = []
    for row in range(4):
        for column in range(3):
            kind = row_of(
                SubscriptionTraits(
                    has_source=column < 2,
                    is_shared=row >= 2,
                    is_global=row % 2 == 1,
                    is_durable=column == 1,
                ),
                link_name="NAME|2",
                container_id="CLIENT",
            )
            name = "without a name"
            if kind.identity is not None:
                name = f"{kind.identity[0] or '/'}/{kind.identity[1].replace('NAME|2', 'LINK')}"
            expected.append((row, column, f"SUB-{kind.number:02}", name))
    assert pictured() == expected
