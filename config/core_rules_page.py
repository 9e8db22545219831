"""Write the table of the core specification's rules, from the tables of `tests/conformance`."""

from __future__ import annotations

import re
from typing import Final

from config.settings_texts import ROOT
from tests.conformance.musts import SHOULD, Must, all_musts
from tests.conformance.test_this_broker import NOT_APPLICABLE

PAGE: Final = ROOT / "docs" / "conformance" / "core.md"

BEGIN: Final = "<!-- core rules -->\n"
END: Final = "<!-- end: core rules -->\n"

PARTS: Final = {2: "transport", 3: "messaging", 4: "transactions", 5: "security"}
"""The parts of the specification that have rules for a broker beside those of types."""

WORDS: Final = {
    "kept": "yes",
    "not kept": "**no**",
    "not offered": "not offered",
    "the client's": "client's rule",
}


def page_text(text: str) -> str:
    """Return the page with its tables made from those of the harness."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}{END}{behind}"


def tables() -> str:
    """Return a heading and a table for each part."""
    rules = core_rules()
    found = []
    for part, name in PARTS.items():
        rows = [rule for rule in rules if clause_of(rule)[0] == part]
        lines = [f"## Part {part}: {name}", "", "| clause | | a broker has to | kept | shown by |"]
        found += [*lines, "|---|---|---|---|---|", *map(row_of, rows), ""]
    return "\n".join(found) + "\n"


def core_rules() -> list[Must]:
    """Return the rules of parts 2 to 5, in the order of their clauses."""
    rules = [rule for rule in all_musts() if (clause := clause_of(rule)) and clause[0] in PARTS]
    return sorted(rules, key=clause_of)


def clause_of(rule: Must) -> tuple[int, ...]:
    """Return the numbers of the first clause that `rule` names; empty for those of other sources.

    A table of core begins its name with `core`; its rules of other sources name them.
    """
    first = re.match(r"\d+(\.\d+)*", rule.clause)
    if first is None or not rule.place.startswith("core"):
        return ()
    return tuple(int(number) for number in first[0].split("."))


def row_of(rule: Must) -> str:
    """Return the line of a rule."""
    level = "SHOULD" if rule.is_should else "MUST"
    words = rule.words.removeprefix(SHOULD)
    return f"| {rule.clause} | {level} | {words} | {kept(rule)} | {shown_by(rule)} |"


def kept(rule: Must) -> str:
    """Return whether this broker keeps the rule, in the word of the table."""
    if not rule.cases:
        return WORDS[rule.verdict]
    left = NOT_APPLICABLE.intersection(rule.cases)
    if not left:
        return "yes"
    return "in part" if len(left) < len(rule.cases) else "not offered"


def shown_by(rule: Must) -> str:
    """Return the cases of the rule, or the reason why it has none."""
    if rule.cases:
        return ", ".join(f"`{name}`" for name in rule.cases)
    return rule.reason.removeprefix(f"{rule.verdict}: ")


def counts() -> dict[str, int]:
    """Return how many rules have each word."""
    found: dict[str, int] = {}
    for rule in core_rules():
        word = kept(rule)
        found[word] = found.get(word, 0) + 1
    return found


def write() -> None:
    """Write the page."""
    PAGE.write_text(page_text(PAGE.read_text()))
