"""Problems of a set of rules: rules that never decide, roles that are unknown or without rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from broker.security.built_in import BUILT_IN_ROLES
from broker.security.coverage import (
    FRESH,
    UNLIMITED,
    Automaton,
    Budget,
    Outcome,
    characters,
    cover,
)
from broker.security.glob_index import GlobIndex
from broker.security.limits import Limit
from broker.security.patterns import (
    KEY,
    MANY,
    ONE,
    VARIABLES,
    WORDED,
    Piece,
    RulePattern,
    Template,
    Token,
    Tokens,
    normal,
)
from broker.security.resources import KEYED_VERBS, TOPIC, VERBS
from broker.security.rules import (
    ALLOW,
    AUTHENTICATED,
    DENY,
    OF_ROLE,
    OF_USER,
    Rule,
)
from broker.security.variables import RuleEntry
from broker.security.word_index import AskedName, WordIndex

if TYPE_CHECKING:
    from broker.security.access import AccessRules


@dataclass(frozen=True)
class RuleProblem:
    """A problem of a rule; `rule` is its id, or empty if the problem is of a role or user."""

    rule: str
    text: str


def problems_of(
    rules: AccessRules,
    *,
    known_roles: Iterable[str],
    users: Mapping[str, Iterable[str]],
    listeners: Iterable[str] | None,
) -> list[RuleProblem]:
    """Return the problems of `rules`, by rule id; see `AccessRules.check`."""
    found = [
        *_dead(rules),
        *_unknown_listeners(rules, listeners),
        *_unknown_roles(rules, {*known_roles, *(role for held in users.values() for role in held)}),
        *_weak_limits(rules),
    ]
    found.sort(key=lambda problem: problem.rule)
    return [*found, *_unused_roles(rules), *_users_without_role(rules, users)]


def _own(rules: AccessRules) -> list[Rule]:
    return [rule for rule in rules.rules if not rule.is_built_in]


def _unknown_listeners(
    rules: AccessRules, listeners: Iterable[str] | None
) -> Iterator[RuleProblem]:
    if listeners is None:
        return
    known = set(listeners)
    for rule in _own(rules):
        named = frozenset() if rule.when is None else rule.when.listeners
        if named and not named & known:
            names = ", ".join(sorted(named))
            yield RuleProblem(rule.id, f"never decides: there is no listener {names}")


USER_WORD: Final = "user "
NO_ROLE: Final = ": has no role"
"""Begin and end of the problem of a user without any role."""


def _unknown_roles(rules: AccessRules, known: set[str]) -> Iterator[RuleProblem]:
    known |= {*rules.roles, *BUILT_IN_ROLES}
    named = [(rule.id, rule.who) for rule in _own(rules)]
    named += [(limit.name(), limit.who) for limit in rules.limits]
    for name, whos in named:
        for who in whos:
            role = who.removeprefix(OF_ROLE)
            if role != who and role not in known:
                yield RuleProblem(
                    name,
                    f"unknown role {role}: it is not in [roles], so only tokens or certificates"
                    " can carry it",
                )


def _unused_roles(rules: AccessRules) -> Iterator[RuleProblem]:
    named = {who for rule in rules.rules for who in rule.who}
    named |= {who for limit in rules.limits for who in limit.who}
    for role in sorted(rules.roles):
        if f"{OF_ROLE}{role}" not in named:
            yield RuleProblem("", f"role {role}: no rule names it")


def _weak_limits(rules: AccessRules) -> Iterator[RuleProblem]:
    """Yield the amounts that never count, since a stricter limit is for all of their users."""
    for limit in rules.limits:
        for name, amount in limit.amounts.items():
            other = next(
                (each for each in rules.limits if _beats(rules, each, limit, name=name)), None
            )
            if other is not None:
                text = (
                    f"{name} = {amount} never counts: {other.name()} allows {other.amounts[name]}"
                )
                yield RuleProblem(limit.name(), text)


def _beats(rules: AccessRules, other: Limit, limit: Limit, *, name: str) -> bool:
    """Return whether `other` is stricter than `limit`, or as strict and earlier in the file."""
    amount = limit.amounts[name]
    given = other.amounts.get(name, amount + 1)
    return (given, other.number) < (amount, limit.number) and all(
        _is_among(rules, who, other.who) for who in limit.who
    )


def _users_without_role(
    rules: AccessRules, users: Mapping[str, Iterable[str]]
) -> Iterator[RuleProblem]:
    held = {user for members in rules.roles.values() for user in members}
    for user, roles in sorted(users.items()):
        if not set(roles) and user not in held:
            yield RuleProblem("", f"{USER_WORD}{user}{NO_ROLE}")


# ---- rules that never decide ----------------------------------------------------------------


@final
class _Index:
    """All entries of one effect, to find those that may cover a pattern."""

    def __init__(self, rules: Iterable[Rule], effect: str) -> None:
        self._words: Final[dict[str, WordIndex]] = {}
        self._globs: Final[dict[str, GlobIndex]] = {}
        for rule in rules:
            for pattern in rule.on if rule.effect == effect else ():
                entry = RuleEntry(rule, pattern)
                if pattern.kind in WORDED:
                    self._words.setdefault(pattern.kind, WordIndex()).add(entry)
                else:
                    self._globs.setdefault(pattern.kind, GlobIndex()).add(entry)

    def candidates(self, pattern: RulePattern) -> Iterator[tuple[Rule, RulePattern]]:
        """Yield the rules with a pattern that matches an example of `pattern`, and that one."""
        for entry in self._matching(pattern):
            # an entry with variables has values in its pattern, the rule's own has none
            text = entry.pattern.text
            yield entry.rule, next(each for each in entry.rule.on if each.text == text)

    def _matching(self, pattern: RulePattern) -> Iterator[RuleEntry]:
        name, key = _example(pattern.name), _example(pattern.key or ())
        if pattern.kind not in WORDED:
            globs = self._globs.get(pattern.kind)
            for each in () if globs is None else globs.for_values(FRESH, FRESH):
                yield from each.matching("".join(name), "".join(key))
            return
        asked = AskedName(
            name, key if pattern.kind == TOPIC else None, is_any_key=pattern.key is None
        )
        words = self._words.get(pattern.kind)
        for index in () if words is None else words.for_values(FRESH, FRESH):
            yield from index.matching(asked, Budget(UNLIMITED))


def _example(pieces: Iterable[Piece]) -> list[str]:
    """Return a name of a pattern; NUL stands for wildcards and variables."""
    found: list[str] = []
    for piece in pieces:
        if isinstance(piece, Template):
            found.append(piece.filled(FRESH, FRESH))
        else:
            found.append(piece if isinstance(piece, str) else FRESH)
    return found


def _dead(rules: AccessRules) -> Iterator[RuleProblem]:
    """Yield the rules whose every pattern is matched by another rule as strong."""
    denying, allowing = _Index(rules.rules, DENY), _Index(rules.rules, ALLOW)
    dead: set[str] = set()
    for rule in _own(rules):
        by = _coverers(rules, rule, denying, dead=dead)
        text = "denies all of it"
        if by is None:
            by = _coverers(rules, rule, allowing, dead=dead) if rule.effect == ALLOW else None
            text = "allows all of it already"
        if by is not None:
            dead.add(rule.id)
            yield RuleProblem(rule.id, f"never decides: {', '.join(sorted(by))} {text}")


def _coverers(rules: AccessRules, rule: Rule, index: _Index, *, dead: set[str]) -> set[str] | None:
    """Return the ids of the rules that match all of `rule`, None if a part of it is left."""
    found: set[str] = set()
    for pattern in rule.on:
        others = (
            other
            for other, outer in index.candidates(pattern)
            if other.id not in (rule.id, *dead)
            and _is_as_strong(rules, other, rule, pattern=pattern)
            and _covers(outer, pattern)
        )
        other = next(others, None)
        if other is None:
            return None
        found.add(other.id)
    return found


def _is_as_strong(rules: AccessRules, other: Rule, rule: Rule, *, pattern: RulePattern) -> bool:
    """Return whether `other` has the verbs of `rule`, and holds whenever that does."""
    verbs = rule.verbs & set(VERBS[pattern.kind])
    if pattern.key is not None and pattern.kind == TOPIC:
        verbs &= set(KEYED_VERBS)
    if not verbs <= other.verbs:
        return False
    if other.when is not None and not other.when.include(rule.when):
        return False
    return all(_is_among(rules, who, other.who) for who in rule.who)


def _is_among(rules: AccessRules, who: str, others: tuple[str, ...]) -> bool:
    if who in others:
        return True
    if not who.startswith(OF_USER):
        return False
    user = who.removeprefix(OF_USER)
    return AUTHENTICATED in others or any(
        user in rules.roles.get(other.removeprefix(OF_ROLE), ()) for other in others
    )


def _covers(outer: RulePattern, inner: RulePattern) -> bool:
    """Return whether `outer` matches all that `inner` matches, whatever the variables are."""
    if outer.text == inner.text:
        return True
    if outer.has_variables():
        return False
    asked, tokens = _general(inner), _general(outer)
    if inner.kind not in WORDED:
        asked, tokens = characters(asked), characters(tokens)
    outcome, _ = cover([asked], Automaton([tokens]), Budget())
    return outcome is Outcome.COVERED


def _general(pattern: RulePattern) -> Tokens:
    """Return the tokens of a pattern, with wildcards for all values of its variables."""
    many: tuple[Piece, ...] = (MANY,)
    name = _opened(pattern.kind, pattern.name)
    if pattern.kind != TOPIC and pattern.key is None:
        return name
    return (*name, KEY, *_opened(pattern.kind, many if pattern.key is None else pattern.key))


def _opened(kind: str, pieces: tuple[Piece, ...]) -> Tokens:
    found: list[Piece] = []
    for piece in pieces:
        if not isinstance(piece, Template):
            found.append(piece)
        elif kind in WORDED:
            found += [ONE, MANY]  # a value has one word at least
        else:
            found += [MANY if part in VARIABLES else part for part in piece.parts]
    tokens: list[Token] = []
    for piece in normal(found):
        assert not isinstance(piece, Template)
        if piece != MANY or tokens[-1:] != [MANY]:
            tokens.append(piece)
    return tuple(tokens)
