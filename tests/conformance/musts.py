"""The table of MUSTs: what `musts/*.md` says, line by line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "musts"
NAME: Final = re.compile(r"`(\w+)`")
NO_CASE: Final = re.compile(r"[-\u2013\u2014] *(?P<reason>\S.*)")


@dataclass(frozen=True)
class Must:
    """One rule, and the cases that try it; where there are none, the reason why."""

    place: str
    clause: str
    words: str
    cases: list[str]
    reason: str


def all_musts(folder: Path = FOLDER) -> list[Must]:
    """Every line of every table."""
    return [
        must_of(f"{file.name}:{number}", line)
        for file in sorted(folder.glob("*.md"))
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if line.startswith("|") and not line.startswith(("| clause", "|--", "| -"))
    ]


def must_of(place: str, line: str) -> Must:
    """The rule in a row of a table; ValueError where it has neither case nor reason."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if len(cells) != 3 or not all(cells):
        raise ValueError(f"{place}: three cells, none empty: clause, words, case or reason")
    clause, words, last = cells
    names = NAME.findall(last)
    no_case = NO_CASE.match(last)
    if not names and no_case is None:
        raise ValueError(f"{place}: neither a case in backticks nor a dash and a reason")
    return Must(
        place, clause, words, [] if no_case else names, no_case["reason"] if no_case else ""
    )
