"""The page on access lists the kinds, verbs and names that rules can have."""

from __future__ import annotations

import re
from typing import Final

from broker.security.resources import EVERY, NAMES, VERBS
from tests.interop.broker_process import ROOT

PAGE: Final = ROOT / "docs/operations/access.md"
ROW: Final = re.compile(r"^\| `(?P<kind>[a-z-]+):[^|]*\| (?P<verbs>[^|]*) \| (?P<names>[^|]*) \|$")


def rows() -> dict[str, re.Match[str]]:
    """Return the rows of the table of kinds, by kind."""
    found = filter(None, map(ROW.match, PAGE.read_text().splitlines()))
    return {row["kind"]: row for row in found}


def quoted(text: str) -> tuple[str, ...]:
    """Return the words of a cell that are written as code."""
    return tuple(re.findall(r"`([^`]+)`", text))


def test_the_page_has_the_verbs_of_every_kind() -> None:
    assert {kind: quoted(row["verbs"]) for kind, row in rows().items()} == VERBS


def test_the_page_has_the_names_of_kinds_whose_names_are_a_closed_list() -> None:
    named = {kind: quoted(rows()[kind]["names"]) for kind in NAMES}
    assert named == {kind: (*names, EVERY) for kind, names in NAMES.items()}
