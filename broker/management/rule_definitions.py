"""Definitions of access rules: roles, rules and limits. An import changes the rules file."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.links.container import Container
from broker.management.definition import (
    ADDED,
    CHANGED,
    REFUSED,
    UNCHANGED,
    Definition,
    DefinitionError,
    DefinitionKind,
    DefinitionReader,
    ImportOutcome,
    ImportTerms,
    name_in,
)
from broker.security.access import AccessRules
from broker.security.limits import limit_of
from broker.security.rules import RuleError, check_name, rule_of, strings
from broker.security.rules_edit import (
    RulesChange,
    changed_rules,
    table_of_limit,
    table_of_rule,
    write_rules,
)
from broker.security.rules_file import USERS_PER_ROLE_MAX, RulesFileError, read_rules

NO_FILE: Final = "the broker has no rules file: set acl_file to one, and restart or reload it"

ROLES: Final = "roles"
RULES: Final = "rules"
LIMITS: Final = "limits"


class RulesInFile:
    """The rules file of a broker, and the rules in force. `file` returns its path, None if none."""

    def __init__(self, container: Container, file: Callable[[], Path | None]) -> None:
        self._container: Final = container
        self._file: Final = file
        self.changing: Final = asyncio.Lock()

    @property
    def rules(self) -> AccessRules:
        """The rules in force."""
        return self._container.access

    def current(self) -> AccessRules:
        """Return the rules of the file as it is now. Raise RulesFileError without a file."""
        return read_rules(self._path())

    def _path(self) -> Path:
        path = self._file()
        if path is None:
            raise RulesFileError(NO_FILE)
        return path

    def written(self, change: RulesChange) -> AccessRules:
        """Change the file, and return its rules. To be called off the event loop.

        Raise RulesFileError if it cannot be changed, or would be invalid; it is then as before.
        """
        path = self._path()
        try:
            text, rules = changed_rules(path.read_text(encoding="utf-8"), change, str(path))
            write_rules(path, text)
        except OSError as error:
            raise RulesFileError(f"{path}: {error.strerror}") from None
        return rules

    def adopt(self, rules: AccessRules) -> None:
        """Apply rules to all connections. To be called by the event loop."""
        self._container.adopt_access(rules)


@dataclass
class _Planned:
    """The outcomes of an import, and the change of the file that it needs."""

    outcomes: list[ImportOutcome]
    change: RulesChange


Plan = Callable[[AccessRules, Sequence[Definition]], _Planned]


class RuleDefinitions(DefinitionKind):
    """The roles, the rules or the limits of the rules file."""

    part = "acl"

    def __init__(self, name: str, file: RulesInFile) -> None:
        """`name` is ROLES, RULES or LIMITS."""
        self.name = name
        self._file: Final = file

    def page(self, offset: int, count: int, *, secrets: bool) -> tuple[list[Definition], int]:  # noqa: ARG002
        found = _definitions(self.name, self._file.rules)
        return found[offset : offset + count], len(found)

    async def take(
        self, definitions: Sequence[Definition], terms: ImportTerms
    ) -> list[ImportOutcome]:
        loop = asyncio.get_running_loop()
        plan = PLANS[self.name]
        async with self._file.changing:
            try:
                # in a thread, as reading 10,000 rules takes long, and the change takes a sync
                current = await loop.run_in_executor(None, self._file.current)
                planned = await loop.run_in_executor(None, plan, current, definitions)
                has_work = any(each.result in (ADDED, CHANGED) for each in planned.outcomes)
                if has_work and not terms.dry_run:
                    rules = await loop.run_in_executor(None, self._file.written, planned.change)
                    self._file.adopt(rules)
            except RulesFileError as error:
                names = [name_in(each, _name_key(self.name)) for each in definitions]
                return [ImportOutcome(name=each, result=REFUSED, note=str(error)) for each in names]
        return planned.outcomes


def _name_key(kind: str) -> str:
    return "id" if kind == RULES else "name"


def _definitions(kind: str, rules: AccessRules) -> list[Definition]:
    """Return all definitions of a kind."""
    if kind == ROLES:
        return [{"name": role, "users": sorted(users)} for role, users in rules.roles.items()]
    if kind == LIMITS:
        return [table_of_limit(each) for each in rules.limits]
    return [table_of_rule(each) for each in rules.rules if not each.is_built_in]


def _planned_roles(rules: AccessRules, definitions: Sequence[Definition]) -> _Planned:
    outcomes: list[ImportOutcome] = []
    changed: dict[str, list[str]] = {}
    for each in definitions:
        name = name_in(each)
        try:
            reader = DefinitionReader(each, "name", "users")
            check_name(reader.required("name", str), ROLES)
            users = strings(each, "users", place=f"role {name}", most=USERS_PER_ROLE_MAX)
            for user in users:
                check_name(user, f"role {name}")
        except (RuleError, DefinitionError) as error:
            outcomes.append(ImportOutcome(name=name, result=REFUSED, note=str(error)))
            continue
        there = rules.roles.get(name)
        if there != frozenset(users):
            changed[name] = sorted(users)
        outcomes.append(_outcome(name, there is None, is_same=there == frozenset(users)))
    return _Planned(outcomes, RulesChange(roles=changed))


def _planned_rules(rules: AccessRules, definitions: Sequence[Definition]) -> _Planned:
    there = {each.id: table_of_rule(each) for each in rules.rules if not each.is_built_in}
    outcomes: list[ImportOutcome] = []
    changed: dict[str, Mapping[str, object]] = {}
    for each in definitions:
        name = name_in(each, "id")
        try:
            wanted = table_of_rule(rule_of(each, "a rule"))
        except RuleError as error:
            outcomes.append(ImportOutcome(name=name, result=REFUSED, note=str(error)))
            continue
        if there.get(name) != wanted:
            changed[name] = wanted
        outcomes.append(_outcome(name, name not in there, is_same=there.get(name) == wanted))
    return _Planned(outcomes, RulesChange(rules=changed))


def _planned_limits(rules: AccessRules, definitions: Sequence[Definition]) -> _Planned:
    """Plan the import of limits, which have no ids: the same `who` means the same limit.

    If several limits have the same `who`, the first means the first, and so on.
    """
    places: dict[tuple[tuple[str, ...], int], int] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    for place, limit in enumerate(rules.limits):
        key = tuple(sorted(limit.who))
        places[key, seen[key]] = place
        seen[key] += 1
    asked: Counter[tuple[str, ...]] = Counter()
    outcomes: list[ImportOutcome] = []
    changed: dict[int, Mapping[str, object]] = {}
    last = len(rules.limits)
    for number, each in enumerate(definitions, start=1):
        try:
            wanted = limit_of(each, number)
        except RuleError as error:
            name = f"limit {number}"
            outcomes.append(ImportOutcome(name=name, result=REFUSED, note=str(error)))
            continue
        key = tuple(sorted(wanted.who))
        place = places.get((key, asked[key]), -1)
        asked[key] += 1
        is_same = place >= 0 and rules.limits[place].amounts == wanted.amounts
        outcomes.append(_outcome(", ".join(key), place < 0, is_same=is_same))
        if not is_same:
            changed[place if place >= 0 else last] = table_of_limit(wanted)
            last += place < 0
    return _Planned(outcomes, RulesChange(limits=changed))


def _outcome(name: str, is_new: bool, *, is_same: bool) -> ImportOutcome:  # noqa: FBT001
    result = UNCHANGED if is_same else ADDED if is_new else CHANGED
    return ImportOutcome(name=name, result=result)


PLANS: Final[Mapping[str, Plan]] = {
    ROLES: _planned_roles,
    RULES: _planned_rules,
    LIMITS: _planned_limits,
}
