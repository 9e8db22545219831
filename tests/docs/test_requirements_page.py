"""Each requirement of the page says where it comes from, in the names of its table of sources."""

import re
from pathlib import Path
from typing import Final

PAGE: Final = (Path(__file__).resolve().parents[2] / "docs" / "requirements.md").read_text()
BELOW_SOURCES: Final = PAGE.partition("\n## Sources\n")[2]
SOURCES: Final = BELOW_SOURCES.partition("\n## ")[0]

NAMES: Final = {
    name
    for cell in re.findall(r"^\| ([^|]+?) \|", SOURCES, re.MULTILINE)
    for name in (re.findall(r"\d{4}", cell) if cell.startswith("RFC ") else [cell])
}
"""Names of documents, and the numbers of RFCs."""


def unknown(source: str) -> list[str]:
    """Return what a cell names that is neither a document nor another requirement."""
    parts = re.split(r"; |, (?=[A-Za-z])", source)
    rfcs = [number for part in parts if part.startswith("RFC ") for number in part[4:].split(", ")]
    others = [part for part in parts if not part.startswith("RFC ")]
    named = re.compile(
        "|".join(rf"{re.escape(name)}\b" for name in sorted(NAMES, key=len, reverse=True))
        + r"|[A-Z]{3}-\d\d\b"
    )
    return [*(set(rfcs) - NAMES), *(part for part in others if not named.match(part))]


def test_a_source_that_the_table_lacks_is_found() -> None:
    assert unknown("WD10 8.5, 8.6; RFC 4422, 9999, SHARED; issue 20, own") == ["9999", "issue 20"]


def test_each_requirement_has_a_source_that_the_page_names() -> None:
    # the rows SUB-01 to SUB-12 are the table of one source, which the line above it names
    rows = re.findall(
        r"^\| (?!SUB-(?:0|1))([A-Z]{3}-\d\d) \| (.*) \|$", BELOW_SOURCES, re.MULTILINE
    )
    cells = {name: row.rpartition(" | ")[2] for name, row in rows}
    assert len(cells) > 130
    assert {name: unknown(cell) for name, cell in cells.items() if unknown(cell)} == {}
