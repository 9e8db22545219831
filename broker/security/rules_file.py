"""Reads the file of access rules, `config/acl.toml`: `[roles]`, `[[rule]]` and `[[limit]]`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker.security.access import AccessRules
from broker.security.account import refusal_of_roles
from broker.security.limits import LIMITS_MAX, Limit, limit_of
from broker.security.rules import RULES_MAX, Rule, RuleError, check_name, rule_of, strings

FILE_BYTES_MAX: Final = 4 << 20
"""Maximum bytes of the file."""

ROLES_MAX: Final = 1000
"""Maximum roles in the file."""

USERS_PER_ROLE_MAX: Final = 10_000
"""Maximum users of one role in the file."""

KEY_PARTS_MAX: Final = 40
"""Maximum parts of a key such as `a.b.c`. More than the words of a name, which look the same."""

LONG_KEY: Final = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"""
    rf"{{{KEY_PARTS_MAX}}}"
)
"""A key with more parts: tomllib takes 17 s to read one of 64 KiB."""

ROLES: Final = "roles"
RULE: Final = "rule"
LIMIT: Final = "limit"
TABLES: Final = (ROLES, RULE, LIMIT)


class RulesFileError(ValueError):
    """A rules file is invalid or cannot be read. The message names the file, the rule, the key."""


def read_rules(file: Path) -> AccessRules:
    """Return the rules of `file`. Raise RulesFileError if it is missing, too large or invalid."""
    try:
        with file.open("rb") as source:
            data = source.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise RulesFileError(f"{file}: there is no such file; an empty one is a file") from None
    except OSError as error:
        raise RulesFileError(f"{file}: {error.strerror}") from None
    return parse_rules(data, str(file))


def parse_rules(data: bytes, file: str) -> AccessRules:
    """Return the rules in the content of a file; `file` names it in errors.

    Raise RulesFileError if it is too large or invalid.
    """
    if len(data) > FILE_BYTES_MAX:
        raise RulesFileError(f"{file}: has more than {FILE_BYTES_MAX} bytes, split it")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise RulesFileError(f"{file}: not UTF-8") from None
    if LONG_KEY.search(text) is not None:
        raise RulesFileError(f"{file}: a key with more than {KEY_PARTS_MAX} parts")
    try:
        record = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for numbers of thousands of digits
        raise RulesFileError(f"{file}: no TOML: {error}") from None
    try:
        _check_tables(record)
        return AccessRules(_rules(record), _roles(record), limits=_limits(record))
    except RuleError as error:
        raise RulesFileError(f"{file}: {error}") from None


def _check_tables(record: Mapping[str, object]) -> None:
    for name in record:
        if name not in TABLES:
            raise RuleError(
                f"unknown key {name!r}; only the tables [{ROLES}], [[{RULE}]] and [[{LIMIT}]]"
            )


def _rules(record: Mapping[str, object]) -> list[Rule]:
    tables = _tables(record, RULE, most=RULES_MAX)
    return [rule_of(table, f"{RULE} {number}") for number, table in enumerate(tables, start=1)]


def _limits(record: Mapping[str, object]) -> list[Limit]:
    tables = _tables(record, LIMIT, most=LIMITS_MAX)
    return [limit_of(table, number) for number, table in enumerate(tables, start=1)]


def _tables(record: Mapping[str, object], name: str, *, most: int) -> list[dict[str, object]]:
    """Return the tables of that name. Raise RuleError if they are none, or too many."""
    tables = record.get(name, [])
    if not isinstance(tables, list):
        raise RuleError(f"{name}: each {name} is a table that begins with [[{name}]]")
    if len(tables) > most:
        raise RuleError(f"{len(tables)} {name}s, at most {most} are allowed")
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict):
            raise RuleError(f"{name} {number}: a {name} is a table that begins with [[{name}]]")
    return tables


def _roles(record: Mapping[str, object]) -> dict[str, frozenset[str]]:
    table = record.get(ROLES, {})
    if not isinstance(table, dict):
        raise RuleError(f"{ROLES}: a table of roles, each with a list of users")
    if len(table) > ROLES_MAX:
        raise RuleError(f"{ROLES}: {len(table)} roles, at most {ROLES_MAX} are allowed")
    found: dict[str, frozenset[str]] = {}
    for role in table:
        refusal = refusal_of_roles((role,))
        if refusal is not None:
            raise RuleError(f"{ROLES}: {refusal}")
        users = strings(table, role, place=ROLES, most=USERS_PER_ROLE_MAX)
        for user in users:
            check_name(user, f"{ROLES}: {role}")
        found[role] = frozenset(users)
    return found
