"""The table of MUSTs, read line by line from `musts/*.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "musts"
NAME: Final = re.compile(r"`(\w+)`")
NO_CASE: Final = re.compile(r"[-\u2013\u2014] *(?P<reason>\S.*)")
SHOULD: Final = "(SHOULD) "

VERDICTS: Final = ("kept", "not kept", "not offered", "the client's")
"""The words with which the reason for a missing case says whether this broker keeps the rule."""


@dataclass(frozen=True)
class Must:
    """A rule and the names of the cases that test it, or the reason why none does."""

    place: str
    clause: str
    words: str
    cases: list[str]
    reason: str

    @property
    def verdict(self) -> str:
        """The one of VERDICTS with which the reason begins; empty if there is none."""
        word, colon, _ = self.reason.partition(": ")
        return word if colon and word in VERDICTS else ""

    @property
    def is_should(self) -> bool:
        """Whether the specification recommends the rule only, with SHOULD or RECOMMENDED."""
        return self.words.startswith(SHOULD)


def all_musts(folder: Path = FOLDER) -> list[Must]:
    """Return the rules of all tables."""
    return [
        must_of(f"{file.name}:{number}", line)
        for file in sorted(folder.glob("*.md"))
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if line.startswith("|") and not line.startswith(("| clause", "|--", "| -"))
    ]


def must_of(place: str, line: str) -> Must:
    """Return the rule in a row of a table; raise ValueError if it has neither case nor reason."""
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
