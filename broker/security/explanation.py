"""Explanations of decisions for operators: the rule, a name that shows why, and near misses."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, final

from broker.security.coverage import Automaton, Budget, Outcome, asked_names, common, cover, shown
from broker.security.decision import OVERLAP, Decision
from broker.security.glob_index import pattern_matches
from broker.security.patterns import WORDED, RulePattern, Tokens
from broker.security.resources import EVERY
from broker.security.rules import ALLOW, Rule
from broker.security.wildcards import has_wildcard, pattern_tokens

if TYPE_CHECKING:
    from broker.security.access import AccessRequest, AccessRules

NEAR_MISSES_MAX: Final = 20
"""Maximum near misses in an explanation."""

ALLOWED: Final = "allowed"
REFUSED: Final = "refused"

WHO: Final = "who"
WHEN: Final = "when"
ON: Final = "on"


@dataclass(frozen=True)
class NearMiss:
    """An allow rule with the verb that does not match in one respect: `who`, `when` or `on`."""

    rule: str
    failed: str


@dataclass(frozen=True)
class Explanation:
    """A decision with its reasons. `witness` is a name that the decision depends on.

    It is a name that the deny rule matches, or that no allow rule matches; empty if none was found.
    """

    decision: str
    canonical: str
    rule: str
    because: str
    witness: str
    near_misses: tuple[NearMiss, ...]

    def record(self) -> dict[str, object]:
        """Return the explanation as plain values."""
        return {**asdict(self), "near_misses": [asdict(each) for each in self.near_misses]}


def explanation_of(rules: AccessRules, request: AccessRequest) -> Explanation:
    """Return the explanation of the decision about `request`."""
    decision, name = rules.judge(request)
    asked = _Asked(request)
    return Explanation(
        decision=ALLOWED if decision.allowed else REFUSED,
        canonical=request.resource.text(),
        rule=decision.rule,
        because=decision.because,
        witness=_witness(asked, rules.rule(decision.rule), decision, name=name),
        near_misses=() if decision.allowed else tuple(_near_misses(rules, asked)),
    )


@final
class _Asked:
    """The request of an explanation, with the names that it means."""

    def __init__(self, request: AccessRequest) -> None:
        self.request: Final = request
        self.resource: Final = request.resource
        self.is_worded: Final = request.resource.kind in WORDED
        name = request.name()
        self.is_keyed: Final = name.is_keyed
        wild = has_wildcard(name.words) or has_wildcard(name.key or [])
        self.is_one_name: Final = not self.is_worded or not (
            name.is_any_key or (request.is_pattern() and wild)
        )
        self.sequences: Final = (
            [name.tokens()] if self.is_one_name else asked_names(pattern_tokens(name))
        )

    def tokens_of(self, pattern: RulePattern) -> Tokens | None:
        """Return a pattern of the same kind as it is compared here, None if it matches nothing."""
        if pattern.kind != self.resource.kind:
            return None
        filled = pattern.filled(self.request.user, self.request.client_id)
        return None if filled is None else filled.tokens(is_keyed=self.is_keyed)


def _witness(asked: _Asked, rule: Rule | None, decision: Decision, *, name: Tokens) -> str:
    if decision.allowed or asked.is_one_name:
        return asked.resource.text().partition(":")[2]
    found: Tokens | None = name or None
    if decision.because == OVERLAP and rule is not None:
        found = _in_common(rule, asked)
    return "" if found is None else shown(found)


def _in_common(rule: Rule, asked: _Asked) -> Tokens | None:
    """Return a name that the request means and `rule` matches."""
    for pattern in rule.on:
        tokens = asked.tokens_of(pattern)
        if tokens is None:
            continue
        for sequence in asked.sequences:
            found = common(sequence, tokens)
            if found is not None:
                return found
    return None


def _near_misses(rules: AccessRules, asked: _Asked) -> list[NearMiss]:
    """Return the allow rules with the verb and kind that fail in exactly one respect."""
    request = asked.request
    found: list[NearMiss] = []
    for rule in rules.rules:
        patterns = [each for each in rule.on if each.kind == asked.resource.kind]
        if rule.effect != ALLOW or request.verb not in rule.verbs or not patterns:
            continue
        failed: list[str] = []
        if not set(rule.who) & set(request.principals):
            failed.append(WHO)
        if rule.when is not None and not rule.when.hold(request.entrance, if_unknown=False):
            failed.append(WHEN)
        if not any(_matches(pattern, asked) for pattern in patterns):
            failed.append(ON)
        if len(failed) == 1:
            found.append(NearMiss(rule.id, failed[0]))
        if len(found) == NEAR_MISSES_MAX:
            break
    return found


def _matches(pattern: RulePattern, asked: _Asked) -> bool:
    """Return whether a pattern alone matches all that the request means."""
    resource = asked.resource
    if not asked.is_worded:
        if resource.name == EVERY:
            return pattern.text == f"{pattern.kind}:{EVERY}"
        filled = pattern.filled(asked.request.user, asked.request.client_id)
        return filled is not None and pattern_matches(filled, resource.name, resource.key)
    tokens = asked.tokens_of(pattern)
    if tokens is None:
        return False
    outcome, _ = cover(asked.sequences, Automaton([tokens]), Budget())
    return outcome is Outcome.COVERED
