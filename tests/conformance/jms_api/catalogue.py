"""The rules of the suite, read from the annotations of its Java sources before anything runs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..harness import Rule

SOURCE: Final = "jms-api"
"""The source of these rules: the clauses are those of the JMS 2.0 specification."""

FOLDER: Final = Path(__file__).parent / "java"
SOURCES: Final = FOLDER / "src" / "jmsapi"

LITERALS: Final = r'(?:"(?:[^"\\]|\\.)*"(?:\s*\+\s*)?)+'

ANNOTATED: Final = re.compile(
    r'@Rule\(clause = "(?P<clause>[\d.]+)",\s*'
    rf"says = (?P<says>{LITERALS})"
    rf"(?:,\s*clientBreaksIt = (?P<client>{LITERALS}))?\)\s*"
    r"void (?P<method>\w+)\(Probe probe\)"
)
"""A test as Rule.java says that it is written."""


@dataclass(frozen=True)
class JmsRule(Rule):
    """A rule of JMS, and the method that tests it.

    `client_breaks_it` says how Qpid JMS itself breaks the rule; it is empty if it keeps it.
    """

    method: str
    client_breaks_it: str


def jms_rules() -> list[JmsRule]:
    """Return the rules of all classes, in the order of their clauses."""
    rules = [
        JmsRule(
            name=_name_of(found["method"]),
            source=SOURCE,
            clause=found["clause"],
            sentence=_text_of(found["says"]),
            method=found["method"],
            client_breaks_it=_text_of(found["client"] or '""'),
        )
        for file in sorted(SOURCES.glob("*Tests.java"))
        for found in ANNOTATED.finditer(file.read_text(encoding="utf-8"))
    ]
    return sorted(rules, key=lambda rule: [int(part) for part in rule.clause.split(".")])


def _name_of(method: str) -> str:
    """Return the name of a case: someWords becomes some_words."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", method).lower()


def _text_of(literals: str) -> str:
    """Return the text of string literals that are joined by +."""
    parts = re.findall(r'"(?:[^"\\]|\\.)*"', literals)
    return "".join(str(ast.literal_eval(part)) for part in parts)
