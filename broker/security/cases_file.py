"""Reads a file of expected decisions, `[[case]]` in TOML, for `jms-broker acl test`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.security.decision import Decision
from broker.security.question import AccessQuestion
from broker.security.rules import ALLOW, EFFECTS, RuleError, check_keys, strings

CASE: Final = "case"
ROLES_MAX: Final = 64
"""Maximum roles of one case."""

REQUIRED: Final = ("verb", "resource", "expect")
TEXTS: Final = (*REQUIRED, "name", "user", "mechanism", "client_id", "listener", "from", "rule")
KEYS: Final = (*TEXTS, "roles", "tls")


class CasesFileError(ValueError):
    """A file of cases is invalid or cannot be read. The message names the file and the case."""


@dataclass(frozen=True, kw_only=True)
class AccessCase:
    """One expected decision: `rule` is the id of the rule that must decide, empty for any.

    `resource` is as the operator wrote it.
    """

    name: str
    question: AccessQuestion
    resource: str
    is_allowed: bool
    rule: str

    def is_met(self, decision: Decision) -> bool:
        """Return whether `decision` is the expected one."""
        is_by_rule = not self.rule or decision.rule == self.rule
        return decision.allowed is self.is_allowed and is_by_rule


def read_cases(file: Path) -> list[AccessCase]:
    """Return the cases of `file`. Raise CasesFileError if it is missing or invalid, or has none."""
    try:
        record = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CasesFileError(f"{file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # of the encoding, too
        raise CasesFileError(f"{file}: no TOML: {error}") from None
    try:
        return _cases(record)
    except RuleError as error:
        raise CasesFileError(f"{file}: {error}") from None


def _cases(record: Mapping[str, object]) -> list[AccessCase]:
    check_keys(record, (CASE,), "the file")
    tables = record.get(CASE)
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        raise RuleError(f"there is no table [[{CASE}]]: each expected decision is one")
    return [_case(table, f"{CASE} {number}") for number, table in enumerate(tables, start=1)]


def _case(table: Mapping[str, object], place: str) -> AccessCase:
    check_keys(table, KEYS, place)
    texts = {key: _text(table, key, place) for key in TEXTS}
    for key in REQUIRED:
        if not texts[key]:
            raise RuleError(f"{place}: {key} is required")
    if texts["expect"] not in EFFECTS:
        raise RuleError(f"{place}: expect = {texts['expect']!r}: only {' or '.join(EFFECTS)}")
    tls = table.get("tls", False)
    if not isinstance(tls, bool):
        raise RuleError(f"{place}: tls is true or false")
    roles = strings(table, "roles", place=place, most=ROLES_MAX) if "roles" in table else ()
    return AccessCase(
        name=texts["name"] or place,
        question=AccessQuestion(
            verb=texts["verb"],
            user=texts["user"],
            roles=roles,
            mechanism=texts["mechanism"],
            client_id=texts["client_id"],
            listener=texts["listener"],
            host=texts["from"],
            is_tls=tls,
        ),
        resource=texts["resource"],
        is_allowed=texts["expect"] == ALLOW,
        rule=texts["rule"],
    )


def _text(table: Mapping[str, object], key: str, place: str) -> str:
    """Return the text at `key`, empty if it is left out. Raise RuleError if it is no text."""
    value = table.get(key, "")
    if not isinstance(value, str):
        raise RuleError(f"{place}: {key} is a text")
    return value
