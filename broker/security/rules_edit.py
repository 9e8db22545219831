"""Changes the text of a rules file: adds rules, roles and limits, or replaces single ones.

Comments and spacing stay, except within a table that is replaced. A file of a form that cannot be
changed in place is written anew, without its comments.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

from broker.security.access import AccessRules
from broker.security.limits import AMOUNTS, Limit
from broker.security.rules import KEYS, Rule
from broker.security.rules_file import LIMIT, ROLES, RULE, parse_rules

Table: TypeAlias = Mapping[str, object]

HEAD: Final = re.compile(r"^\[\[?[ \t]*(rule|limit|roles)[ \t]*\]?\][^\n]*$", re.MULTILINE)
"""The line that begins a rule, a limit or the table of roles."""

BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")

FILE_MODE: Final = 0o600


@dataclass(frozen=True, kw_only=True)
class RulesChange:
    """Tables that a rules file is to have: rules by id, users by role, limits by their place.

    A limit whose place, from 0, is behind the last one is added.
    """

    rules: Mapping[str, Table] = field(default_factory=dict)
    roles: Mapping[str, list[str]] = field(default_factory=dict)
    limits: Mapping[int, Table] = field(default_factory=dict)


def table_of_rule(rule: Rule) -> dict[str, object]:
    """Return the table of the rules file that describes a rule."""
    table: dict[str, object] = {
        "id": rule.id,
        "effect": rule.effect,
        "who": list(rule.who),
        "can": list(rule.can),
        "on": [pattern.text for pattern in rule.on],
    }
    if rule.when is not None:
        when: dict[str, object] = {}
        if rule.when.listeners:
            when["listener"] = sorted(rule.when.listeners)
        if rule.when.networks:
            when["from"] = [str(each) for each in rule.when.networks]
        if rule.when.tls is not None:
            when["tls"] = rule.when.tls
        table["when"] = when
    return table


def table_of_limit(limit: Limit) -> dict[str, object]:
    """Return the table of the rules file that describes a limit."""
    return {
        "who": list(limit.who),
        **{name: limit.amounts[name] for name in AMOUNTS if name in limit.amounts},
    }


def changed_rules(text: str, change: RulesChange, file: str) -> tuple[str, AccessRules]:
    """Return the text of a rules file with a change, and its rules; `file` names it in errors.

    Raise RulesFileError if the text, or what it becomes, is invalid.
    """
    parse_rules(text.encode(), file)
    wanted = _merged(tomllib.loads(text), change)
    try:
        new = _in_place(text, change)
        if tomllib.loads(new) != wanted:
            raise ValueError("a table is inside a string, or of another form")
    except ValueError:  # TOMLDecodeError is one
        new = _written(wanted)
    return new, parse_rules(new.encode(), file)


def write_rules(file: Path, text: str) -> None:
    """Replace the content of a rules file in one step. OSError leaves it as it was."""
    target = file.resolve()
    new = target.with_name(f"{target.name}.new")
    descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        status = target.stat()
        with suppress(PermissionError):  # another account's file, in a folder of ours
            os.chown(new, status.st_uid, status.st_gid)
        new.chmod(status.st_mode & 0o777)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _merged(record: Table, change: RulesChange) -> dict[str, object]:
    """Return the content of a file after a change."""
    rules = {str(each["id"]): each for each in _tables(record, RULE)}
    limits = dict(enumerate(_tables(record, LIMIT)))
    roles = record.get(ROLES, {})
    assert isinstance(roles, dict)
    found: dict[str, object] = {
        RULE: list({**rules, **change.rules}.values()),
        LIMIT: list({**limits, **change.limits}.values()),
        ROLES: {**roles, **change.roles},
    }
    return {**record, **{name: each for name, each in found.items() if each or name in record}}


def _tables(record: Table, name: str) -> list[Table]:
    found = record.get(name, [])
    assert isinstance(found, list)
    return found


def _in_place(text: str, change: RulesChange) -> str:
    """Return the text with changed tables in place, and new ones at the end."""
    starts = [found.start() for found in HEAD.finditer(text)]
    parts = [text[: starts[0]] if starts else text]
    rules, roles, limits = dict(change.rules), dict(change.roles), dict(change.limits)
    limit_at = 0
    for start, end in pairwise([*starts, len(text)]):
        block = text[start:end]
        record = tomllib.loads(block)
        if RULE in record:
            new = rules.pop(str(_tables(record, RULE)[0]["id"]), None)
            parts.append(block if new is None else _replaced(block, _rule_text(new)))
        elif LIMIT in record:
            new = limits.pop(limit_at, None)
            limit_at += 1
            parts.append(block if new is None else _replaced(block, _limit_text(new)))
        else:
            parts.append(
                _replaced(block, _roles_text({**record[ROLES], **roles})) if roles else block
            )
            roles = {}
    added = [_roles_text(roles)] if roles else []
    added += [_rule_text(each) for each in rules.values()]
    added += [_limit_text(limits[place]) for place in sorted(limits)]
    before = "".join(parts).rstrip("\n")
    return "\n\n".join([before, *added] if before else added) + "\n"


def _replaced(block: str, new: str) -> str:
    """Return the new text of a table, with the comments and empty lines that end the old one.

    Most of these belong to the next table.
    """
    lines = block.splitlines(keepends=True)
    end = len(lines)
    while end > 0 and lines[end - 1].lstrip()[:1] in ("", "#"):
        end -= 1
    return "".join([f"{new}\n", *lines[end:]])


def _written(record: Table) -> str:
    """Return a whole file."""
    roles = record.get(ROLES, {})
    assert isinstance(roles, dict)
    parts = [_roles_text(roles)] if roles else []
    parts += [_rule_text(each) for each in _tables(record, RULE)]
    parts += [_limit_text(each) for each in _tables(record, LIMIT)]
    return "\n\n".join(parts) + "\n"


def _rule_text(table: Table) -> str:
    return "\n".join(
        ["[[rule]]", *(f"{key} = {_value(table[key])}" for key in KEYS if key in table)]
    )


def _limit_text(table: Table) -> str:
    return "\n".join(["[[limit]]", *(f"{key} = {_value(each)}" for key, each in table.items())])


def _roles_text(roles: Mapping[str, object]) -> str:
    return "\n".join(
        ["[roles]", *(f"{_key(role)} = {_value(each)}" for role, each in roles.items())]
    )


def _value(value: object) -> str:
    """Return a value as TOML: JSON's texts, lists and numbers are TOML's, its objects are not."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + "}"
    # JSON leaves this character as it is, and TOML does not allow it
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else _value(key)
