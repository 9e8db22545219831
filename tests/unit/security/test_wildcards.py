"""Decisions about names with wildcards, compared with enumeration of short names."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from typing import Final

import pytest

from broker.routing.addresses import pattern
from broker.security.access import AccessRules
from broker.security.decision import COVER, DEFAULT, OVERLAP, UNDECIDED
from broker.security.identity import Identity
from broker.security.resources import Resource
from broker.security.rules import Rule, rule_of
from broker.security.wildcards import UNION_MAX

ALPHABET: Final = ("a", "b", "z", "$c")
NAMES: Final = [
    ".".join(words) for length in range(1, 6) for words in product(ALPHABET, repeat=length)
]
ANN: Final = Identity("ann", roles=frozenset())
CASES: Final = 600


@cache
def named(text: str) -> frozenset[str]:
    """Return the names that routing's matcher finds for a pattern."""
    words = pattern.normal(text.split("."))
    return frozenset(name for name in NAMES if pattern.matches(words, name.split(".")))


def asked_names(text: str) -> frozenset[str]:
    """Return the names that a subscriber with this pattern gets messages of.

    A wildcard that begins it stands for no name that begins with `$`: clients create none.
    """
    if text[0] not in "*#":
        return named(text)
    return frozenset(name for name in named(text) if not name.startswith("$"))


def random_pattern(chooser: random.Random) -> str:
    while True:
        words = chooser.choices(
            ["a", "b", "*", "#", "$c"], [4, 4, 5, 5, 1], k=chooser.randint(1, 3)
        )
        # such a pattern names names that begin with `$` and others
        if words.count("#") <= 2 and not (words[0] == "#" and "$c" in words):
            return ".".join(words)


def subscribing(rules: AccessRules, text: str) -> str:
    resource = Resource("topic", text, is_pattern=True)
    return rules.decide(ANN, "subscribe", resource).because


def test_decisions_agree_with_enumeration() -> None:
    chooser = random.Random(5)
    counts = {COVER: 0, OVERLAP: 0, DEFAULT: 0}
    for _ in range(CASES):
        effects = ["allow"] * chooser.randint(1, 4) + ["deny"] * chooser.randint(0, 1)
        texts = [(effect, random_pattern(chooser)) for effect in effects]
        rules = AccessRules(
            rule_of(
                {
                    "id": f"r{number}",
                    "effect": effect,
                    "who": ["user:ann"],
                    "can": ["subscribe"],
                    "on": [f"topic:{text}"],
                },
                "rule",
            )
            for number, (effect, text) in enumerate(texts)
        )
        text = random_pattern(chooser)
        asked = asked_names(text)
        denied = frozenset[str]().union(*(named(each) for how, each in texts if how == "deny"))
        allowed = frozenset[str]().union(*(named(each) for how, each in texts if how == "allow"))
        expected = OVERLAP if asked & denied else COVER if asked <= allowed else DEFAULT
        assert subscribing(rules, text) == expected, (texts, text)
        counts[expected] += 1
    assert min(counts.values()) > CASES / 20, counts


def allowing(texts: list[str]) -> AccessRules:
    record = {"who": ["user:ann"], "can": ["subscribe"]}
    return AccessRules(
        rule_of({**record, "id": f"r{number}", "on": [f"topic:{text}"]}, "rule")
        for number, text in enumerate(texts)
    )


def by_length(most: int) -> list[str]:
    """Return patterns that cover all names together, by their number of words."""
    return [".".join(["*"] * count) for count in range(1, most)] + [".".join(["*"] * most + ["#"])]


def test_more_patterns_than_the_limit_are_not_compared_together() -> None:
    rules = allowing(by_length(UNION_MAX))
    assert subscribing(rules, "#") == COVER
    rules = allowing(by_length(UNION_MAX + 1))
    assert subscribing(rules, "#") == UNDECIDED
    assert subscribing(rules, "*.*") == COVER, "a single rule covers it"


def test_too_many_states_leave_it_undecided() -> None:
    before_the_first = [".".join(["*"] * count + ["a", "#"]) for count in range(15)]
    rules = allowing([*before_the_first, ".".join(["*"] * 15 + ["#"])])
    assert subscribing(rules, "#.a.#") == UNDECIDED


def test_too_many_steps_leave_it_undecided() -> None:
    rules = AccessRules(
        rule_of(
            {
                "id": f"r{number}",
                "effect": "deny",
                "who": ["user:ann"],
                "can": ["subscribe"],
                "on": [f"topic:a{number}.b.c.d"],
            },
            "rule",
        )
        for number in range(2000)
    )
    assert subscribing(rules, "*.b.c.x.#") == UNDECIDED


def test_one_name_that_no_rule_allows_is_enough_to_refuse() -> None:
    rules = allowing([f"t{number}.#" for number in range(1000)])
    assert subscribing(rules, "#") == DEFAULT


def tangled_rules(effect: str, count: int) -> list[Rule]:
    """Return rules of few words and many wildcards; a name of a thousand words reaches them all.

    None matches a name that ends with `z`.
    """
    chooser = random.Random(9)
    texts = [".".join(chooser.choices(["a", "*"], k=10)) for _ in range(count)]
    return [
        rule_of(
            {
                "id": f"{effect}-{number}",
                "effect": effect,
                "who": ["user:ann"],
                "can": ["subscribe"],
                "on": [f"topic:#.{text}.#.y"],
            },
            "rule",
        )
        for number, text in enumerate(texts)
    ]


ALL: Final = {"id": "all", "who": ["user:ann"], "can": ["subscribe"], "on": ["topic:#"]}
MANY_WORDS: Final = ".".join(["a"] * 30)

CUT: Final = [
    pytest.param("deny", 1000, f"{MANY_WORDS}.z", UNDECIDED, id="a name, many deny rules"),
    pytest.param("deny", 5, f"{MANY_WORDS}.z", COVER, id="a name, few deny rules"),
    pytest.param("allow", 1000, f"{MANY_WORDS}.z", UNDECIDED, id="a name, many allow rules"),
    pytest.param("allow", 5, f"{MANY_WORDS}.z", DEFAULT, id="a name, few allow rules"),
    pytest.param("allow", 1000, f"{MANY_WORDS}.*", UNDECIDED, id="a pattern, many allow rules"),
    pytest.param("allow", 5, f"{MANY_WORDS}.*", DEFAULT, id="a pattern, few allow rules"),
]


@pytest.mark.parametrize(("effect", "count", "name", "because"), CUT)
def test_too_many_visits_leave_it_undecided(
    effect: str, count: int, name: str, because: str
) -> None:
    """A walk that ended early allows nothing: a deny rule behind its end may match."""
    rules = tangled_rules(effect, count)
    if effect == "deny":
        rules.append(rule_of(ALL, "rule"))
    resource = Resource("topic", name, is_pattern=True)
    decision = AccessRules(rules).decide(ANN, "subscribe", resource)
    assert (decision.because, decision.allowed) == (because, because == COVER)
