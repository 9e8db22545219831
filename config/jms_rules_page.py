"""Write the table of the rules of JMS, from the annotations of the suite in Java."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from config.settings_texts import ROOT
from tests.conformance.jms_api.catalogue import JmsRule, jms_rules

PAGE: Final = ROOT / "docs" / "conformance" / "jms-api.md"

BEGIN: Final = "<!-- jms rules -->\n"
END: Final = "<!-- end: jms rules -->\n"

CHAPTERS: Final = {
    3: "messages",
    4: "queues and topics",
    6: "connections and sessions",
    7: "sending",
    8: "receiving",
    9: "other facilities",
    10: "exceptions",
    11: "connection consumers",
}
"""The chapters of the JMS 2.0 specification that have rules here."""


def page_text(text: str) -> str:
    """Return the page with its tables made from the suite."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}{END}{behind}"


def tables() -> str:
    """Return the number of rules, then a heading and a table for each chapter."""
    rules = jms_rules()
    broken = sum(bool(rule.client_breaks_it) for rule in rules)
    kept = f"jms-broker keeps {len(rules) - broken} of these {len(rules)} rules"
    found = [f"{kept}, and Qpid JMS itself breaks the other {broken}.", ""]
    for chapter, held in groupby(rules, key=lambda rule: int(rule.clause.partition(".")[0])):
        found += [f"## Chapter {chapter}: {CHAPTERS[chapter]}", ""]
        found += ["| clause | rule | case |", "|---|---|---|", *map(row_of, held), ""]
    return "\n".join(found) + "\n"


def row_of(rule: JmsRule) -> str:
    """Return the line of a rule."""
    note = f" **Qpid JMS breaks it:** {rule.client_breaks_it}." if rule.client_breaks_it else ""
    return f"| {rule.clause} | {rule.sentence}{note} | `{rule.name}` |"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page_text(PAGE.read_text()))
