"""Rights that a token carries: scopes such as `jms-broker.send:queue:orders.#` (RFC 8693 4.2).

Each scope of the broker is an allow rule of the login with that token, and of no other. Deny rules
of the rules file win over it, as over every allow rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, final

from broker.security.glob_index import GlobIndex
from broker.security.patterns import WORDED
from broker.security.rules import AUTHENTICATED, Rule, RuleError, rule_of
from broker.security.variables import RuleEntry
from broker.security.word_index import WordIndex

SCOPES_MAX: Final = 64
"""Maximum scopes of the broker in a token."""

OF_SCOPE: Final = "scope:"
"""Begins the ids of these rules. Ids of operators have no colon."""

ID: Final = "scope"
PLACE: Final = f"rule {ID}: "
"""Begins the messages of RuleError about a rule with that id."""

KEPT_MAX: Final = 256
"""Maximum indexes that are kept, one for each set of scopes that was used lately."""


def rule_of_scope(scope: str) -> Rule:
    """Return the allow rule that VERB:PATTERN is. Raise RuleError if it is none."""
    verb, _, pattern = scope.partition(":")
    record = {"id": ID, "who": [AUTHENTICATED], "can": [verb], "on": [pattern]}
    rule = rule_of(record, ID)
    return Rule(f"{OF_SCOPE}{scope}", who=rule.who, can=rule.can, on=rule.on)


def scopes_with(prefix: str, claimed: Sequence[str]) -> tuple[str, ...]:
    """Return the scopes of the broker in a claim, without `prefix` and its dot, sorted."""
    begins = f"{prefix}."
    return tuple(sorted({each.removeprefix(begins) for each in claimed if each.startswith(begins)}))


def usable(scopes: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the scopes that are rules; why each of the others is none."""
    right: list[str] = []
    problems: list[str] = []
    for scope in scopes:
        try:
            rule_of_scope(scope)
        except RuleError as error:
            problems.append(f"{scope:.100}: {str(error).removeprefix(PLACE)}")
        else:
            right.append(scope)
    return tuple(right), tuple(problems)


@final
class ScopeRules:
    """The allow rules of one set of scopes, indexed as `AccessRules` indexes those of the file."""

    def __init__(self, scopes: Sequence[str]) -> None:
        """Raise RuleError if a scope is no rule."""
        self._words: Final[dict[str, WordIndex]] = {}
        self._globs: Final[dict[str, GlobIndex]] = {}
        for scope in scopes:
            rule = rule_of_scope(scope)
            for pattern in rule.on:
                entry = RuleEntry(rule, pattern)
                if pattern.kind in WORDED:
                    self._words.setdefault(pattern.kind, WordIndex()).add(entry)
                else:
                    self._globs.setdefault(pattern.kind, GlobIndex()).add(entry)

    def of_words(self, kind: str, user: str, client_id: str) -> list[WordIndex]:
        """Return the indexes for queues or topics; variables have these values."""
        index = self._words.get(kind)
        return [] if index is None else index.for_values(user, client_id)

    def of_globs(self, kind: str, user: str, client_id: str) -> list[GlobIndex]:
        """Return the indexes for another kind of resource; variables have these values."""
        index = self._globs.get(kind)
        return [] if index is None else index.for_values(user, client_id)


@lru_cache(maxsize=KEPT_MAX)
def rules_of_scopes(scopes: tuple[str, ...]) -> ScopeRules | None:
    """Return the rules of a set of scopes, None without any; equal sets share their rules."""
    return ScopeRules(scopes) if scopes else None
