"""Rules about rights as values, and how they are read from records of the rules file or a store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, final

from broker.security.conditions import ConditionError, Conditions, network_of
from broker.security.patterns import PatternError, RulePattern, parse
from broker.security.resources import (
    ALL_VERBS,
    EVERY,
    KEYED_VERBS,
    TOPIC,
    VERB_SETS,
    VERBS,
    verbs_of_name,
)

ALLOW: Final = "allow"
DENY: Final = "deny"
EFFECTS: Final = (ALLOW, DENY)

AUTHENTICATED: Final = "authenticated"
ANONYMOUS: Final = "anonymous"
OF_USER: Final = "user:"
OF_ROLE: Final = "role:"

KEYS: Final = ("id", "effect", "who", "can", "on", "when")
CONDITION_KEYS: Final = ("listener", "from", "tls")

RULES_MAX: Final = 10_000
"""Maximum rules of a set."""

WHO_MAX: Final = 64
"""Maximum users and roles that one rule names; more of them belong in a role."""

PATTERNS_MAX: Final = 64
"""Maximum patterns of one rule."""

CONDITION_VALUES_MAX: Final = 64
"""Maximum listeners, and maximum networks, of one rule."""

PLACES_MAX: Final = 100_000
"""Maximum places in the index of a set: patterns times users and roles, over all rules."""

NAME_CHARACTERS_MAX: Final = 255
"""Maximum characters of the name of a user, a role or a listener in a rule."""

ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class RuleError(ValueError):
    """A rule is invalid. The message names the rule and the key, and says what is allowed."""


@final
class Rule:
    """One rule. `who` and `can` are as the operator wrote them, `verbs` what `can` means.

    `when` is None if the rule has no condition.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the rules file's word
        *,
        effect: str = ALLOW,
        who: tuple[str, ...],
        can: tuple[str, ...],
        on: tuple[RulePattern, ...],
        when: Conditions | None = None,
        is_built_in: bool = False,
    ) -> None:
        self.id: Final = id
        self.effect: Final = effect
        self.who: Final = who
        self.can: Final = can
        self.verbs: Final = verbs_of(can)
        self.on: Final = on
        self.when: Final = when
        self.is_built_in: Final = is_built_in

    def record(self) -> dict[str, object]:
        """Return the rule for operators, with the keys of the rules file."""
        return {
            "id": self.id,
            "effect": self.effect,
            "who": list(self.who),
            "can": list(self.can),
            "on": [pattern.text for pattern in self.on],
            "when": "" if self.when is None else self.when.text(),
        }


def verbs_of(can: Iterable[str]) -> frozenset[str]:
    """Return the verbs that verbs and sets of verbs stand for."""
    found: set[str] = set()
    for name in can:
        found.update(ALL_VERBS if name == EVERY else VERB_SETS.get(name, (name,)))
    return frozenset(found)


def rule_of(record: Mapping[str, object], place: str) -> Rule:
    """Return the rule that a table of the rules file describes.

    `place` names it in errors until its id is known. Raise RuleError if it is invalid.
    """
    id_ = record.get("id")
    if not isinstance(id_, str) or not ID.fullmatch(id_):
        raise RuleError(
            f"{place}: id = {_quoted(id_)}: a rule has an id of at most 64 letters, digits and"
            " . _ -, beginning with a letter or digit"
        )
    place = f"rule {id_}"
    check_keys(record, KEYS, place)
    effect = record.get("effect", ALLOW)
    if effect not in EFFECTS:
        raise RuleError(f"{place}: effect = {_quoted(effect)}: only {' or '.join(EFFECTS)}")
    who = strings(record, "who", place=place, most=WHO_MAX)
    for each in who:
        check_who(each, place)
    can = strings(record, "can", place=place, most=len(ALL_VERBS) + len(VERB_SETS) + 1)
    for each in can:
        if each not in (EVERY, *VERB_SETS, *ALL_VERBS):
            allowed = ", ".join((*ALL_VERBS, *VERB_SETS, EVERY))
            raise RuleError(f"{place}: can: {each!r} is no verb; only {allowed}")
    on = _patterns(record, place)
    _check_fit(can, on, place)
    return Rule(id_, effect=str(effect), who=who, can=can, on=on, when=_conditions(record, place))


def check_keys(record: Mapping[str, object], allowed: tuple[str, ...], place: str) -> None:
    """Raise RuleError if a table has another key than the `allowed` ones."""
    for key in record:
        if key not in allowed:
            raise RuleError(f"{place}: unknown key {key!r}; only {', '.join(allowed)}")


def strings(record: Mapping[str, object], key: str, *, place: str, most: int) -> tuple[str, ...]:
    """Return the list of texts at `key`. Raise RuleError if it is none, empty or too long."""
    value = record.get(key)
    if not isinstance(value, list) or not value:
        raise RuleError(f"{place}: {key} must be a list of texts that is not empty")
    if len(value) > most:
        raise RuleError(f"{place}: {key} has {len(value)} values, at most {most} are allowed")
    found: list[str] = []
    for each in value:
        if not isinstance(each, str):
            raise RuleError(f"{place}: {key}: {_quoted(each)} is no text")
        found.append(each)
    return tuple(dict.fromkeys(found))


def check_name(name: str, place: str) -> None:
    """Raise RuleError if no user, role or listener can have that name, or it has a wildcard."""
    if not name or not name.isprintable() or len(name) > NAME_CHARACTERS_MAX or "*" in name:
        raise RuleError(
            f"{place}: {_quoted(name)}: a name has 1 to {NAME_CHARACTERS_MAX} printable"
            " characters, and no wildcard *"
        )


def check_who(text: str, place: str) -> None:
    """Raise RuleError if `text` is no value of `who`."""
    for kind in (OF_USER, OF_ROLE):
        if text.startswith(kind):
            check_name(text[len(kind) :], f"{place}: who")
            return
    if text not in (AUTHENTICATED, ANONYMOUS):
        raise RuleError(
            f"{place}: who: {_quoted(text)}: only user:NAME, role:NAME, {AUTHENTICATED} and"
            f" {ANONYMOUS}"
        )


def _patterns(record: Mapping[str, object], place: str) -> tuple[RulePattern, ...]:
    found: list[RulePattern] = []
    for text in strings(record, "on", place=place, most=PATTERNS_MAX):
        try:
            found.append(parse(text))
        except PatternError as error:
            raise RuleError(f"{place}: on: {error}") from None
    return tuple(found)


def _check_fit(can: tuple[str, ...], on: tuple[RulePattern, ...], place: str) -> None:
    """Raise RuleError if a verb fits no pattern, or a pattern no verb: it would have no effect."""
    kinds = {pattern.kind for pattern in on}
    known = {verb for kind in kinds for verb in VERBS[kind]}
    for name in can:
        if not verbs_of((name,)) & known:
            raise RuleError(
                f"{place}: can: {name!r} is no verb of {', '.join(sorted(kinds))}; only"
                f" {', '.join(verb for verb in ALL_VERBS if verb in known)}"
            )
    verbs = verbs_of(can)
    for pattern in on:
        if pattern.kind == TOPIC and pattern.key is not None and not verbs & set(KEYED_VERBS):
            raise RuleError(
                f"{place}: on: {pattern.text!r} has a key, which only {' and '.join(KEYED_VERBS)}"
                " look at; name the topic alone for other verbs"
            )
        fitting = verbs_of_name(pattern.kind, pattern.text.partition(":")[2])
        if not verbs & set(fitting):
            raise RuleError(
                f"{place}: on: {pattern.text!r} has none of the verbs of can; only"
                f" {', '.join(fitting)}"
            )


def _conditions(record: Mapping[str, object], place: str) -> Conditions | None:
    table = record.get("when")
    if table is None:
        return None
    place = f"{place}: when"
    if not isinstance(table, dict) or not table:
        raise RuleError(f"{place} must be a table with {', '.join(CONDITION_KEYS)}")
    check_keys(table, CONDITION_KEYS, place)
    listeners: tuple[str, ...] = ()
    if "listener" in table:
        listeners = strings(table, "listener", place=place, most=CONDITION_VALUES_MAX)
        for name in listeners:
            check_name(name, f"{place}: listener")
    networks: tuple[str, ...] = ()
    if "from" in table:
        networks = strings(table, "from", place=place, most=CONDITION_VALUES_MAX)
    tls = table.get("tls")
    if tls is not None and not isinstance(tls, bool):
        raise RuleError(f"{place}: tls = {_quoted(tls)}: only true or false")
    try:
        found = [network_of(each) for each in networks]
    except ConditionError as error:
        raise RuleError(f"{place}: from: {error}") from None
    return Conditions(listeners=listeners, networks=found, tls=tls)


def _quoted(value: object) -> str:
    """Return a value of the file for an error, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
