"""Containment and overlap of patterns, compared with enumeration of all short names."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from operator import and_
from typing import Final

import pytest

from broker.routing.addresses import pattern
from broker.security.coverage import (
    FRESH,
    Automaton,
    Budget,
    Outcome,
    asked_names,
    characters,
    common,
    cover,
    shown,
)
from broker.security.patterns import KEY, MANY, ONE, PLAIN, Piece, Tokens, normal

pytestmark = pytest.mark.attack("Z3")

ALPHABET: Final = ("a", "b", "z")
"""Words of the names; patterns have the first two, and `z` stands for all others."""

LONGEST: Final = 6
"""Words of the longest names: more than two patterns of three words can tell apart."""

NAMES: Final = [
    words for length in range(LONGEST + 1) for words in product(ALPHABET, repeat=length)
]
CASES: Final = 1500


def tokens(text: str) -> Tokens:
    """Return a pattern, with `!` for PLAIN and a `/` of its own for KEY, as tokens."""
    known = {"*": ONE, "#": MANY, "!": PLAIN, "/": KEY}
    pieces: list[Piece] = [known.get(word, word) for word in text.split(".")]
    return tuple(each for each in normal(pieces) if isinstance(each, str | int))


@cache
def named(text: str) -> frozenset[int]:
    """Return the numbers of the names that routing's matcher finds for a pattern."""
    words = pattern.normal(text.split("."))
    return frozenset(
        number for number, name in enumerate(NAMES) if pattern.matches(words, list(name))
    )


def random_pattern(chooser: random.Random) -> str:
    while True:
        words = chooser.choices(["a", "b", "*", "#"], k=chooser.randint(1, 3))
        if words.count("#") <= 2:
            return ".".join(words)


def as_words(name: Tokens) -> tuple[str, ...]:
    return tuple("z" if word == FRESH else str(word) for word in name)


def test_cover_agrees_with_enumeration() -> None:
    chooser = random.Random(7)
    covered = 0
    for _ in range(CASES):
        asked = random_pattern(chooser)
        rules = [random_pattern(chooser) for _ in range(chooser.randint(1, 4))]
        union = frozenset[int]().union(*map(named, rules))
        automaton = Automaton(map(tokens, rules))
        outcome, name = cover([tokens(asked)], automaton, Budget(100_000))
        assert (outcome is Outcome.COVERED) == (named(asked) <= union), (asked, rules)
        covered += outcome is Outcome.COVERED
        if outcome is Outcome.NOT_COVERED:
            number = NAMES.index(as_words(name))
            assert number in named(asked) - union, (asked, rules, name)
    assert CASES / 5 < covered < CASES * 4 / 5


def test_overlap_agrees_with_enumeration() -> None:
    chooser = random.Random(8)
    for _ in range(CASES):
        one, other = random_pattern(chooser), random_pattern(chooser)
        both = named(one) & named(other)
        found = common(tokens(one), tokens(other))
        assert (found is not None) is bool(both), (one, other)
        assert Automaton([tokens(one)]).overlaps(tokens(other)) is bool(both)
        if found is not None:
            assert NAMES.index(as_words(found)) in both


def test_keys_are_compared_apart_from_names() -> None:
    chooser = random.Random(9)
    for _ in range(CASES):
        asked = [random_pattern(chooser) for _ in range(2)]
        rules = [[random_pattern(chooser) for _ in range(2)] for _ in range(2)]
        outcome, _ = cover(
            [tokens(".".join((asked[0], "/", asked[1])))],
            Automaton([tokens(".".join((name, "/", key))) for name, key in rules]),
            Budget(100_000),
        )
        # nothing matters about a name but which rules match
        by_name = {tuple(name in named(rule[0]) for rule in rules) for name in named(asked[0])}
        by_key = {tuple(key in named(rule[1]) for rule in rules) for key in named(asked[1])}
        expected = all(any(map(and_, name, key)) for name in by_name for key in by_key)
        assert (outcome is Outcome.COVERED) is expected, (asked, rules)


COVERS = [
    pytest.param("a.#", ["a.#"], True, id="the same"),
    pytest.param("a.#", ["a.*.#"], False, id="none is not one"),
    pytest.param("a.#", ["a", "a.*.#"], True, id="none and one or more"),
    pytest.param("*.#", ["*", "*.*", "*.*.*.#"], True, id="by length"),
    pytest.param("*.#", ["a.#", "*.*.#"], False, id="one word that is not a"),
    pytest.param("a.*", ["a.b", "a.c"], False, id="words cannot be listed"),
    pytest.param("!", ["!"], True, id="words without $"),
    pytest.param("*", ["!"], False, id="a $ is missing"),
    pytest.param("$x", ["!"], False, id="a word with $"),
    pytest.param("a./.#", ["a./", "a./.*.#"], True, id="all keys in two parts"),
    pytest.param("a./.#", ["a./.*.#"], False, id="no key is missing"),
    pytest.param("#./.k", ["#"], False, id="no wildcard stands for the border"),
]


@pytest.mark.parametrize(("asked", "rules", "expected"), COVERS)
def test_cover(asked: str, rules: list[str], expected: bool) -> None:
    outcome, _ = cover([tokens(asked)], Automaton(map(tokens, rules)), Budget())
    assert (outcome is Outcome.COVERED) is expected


OVERLAPS = [
    pytest.param("a.#", "#.b", ("a", "b"), id="both ends"),
    pytest.param("a.*", "a", None, id="another length"),
    pytest.param("!", "$x", None, id="a word with $ is not plain"),
    pytest.param("*", "$x", ("$x",), id="but a word"),
    pytest.param("#./.a", "x./.*", ("x", KEY, "a"), id="with a key"),
    pytest.param("#", "x./.a", None, id="a key is not a name"),
]


@pytest.mark.parametrize(("one", "other", "expected"), OVERLAPS)
def test_overlap_has_a_witness(one: str, other: str, expected: Tokens | None) -> None:
    assert common(tokens(one), tokens(other)) == expected
    assert common(tokens(other), tokens(one)) == expected
    assert Automaton([tokens(one)]).overlaps(tokens(other)) is (expected is not None)


def test_a_limit_of_states_leaves_it_undecided() -> None:
    """Sixteen patterns cover all names with an `a`, by the number of words before the first."""
    at_position = [".".join(["*"] * count + ["a", "#"]) for count in range(15)]
    automaton = Automaton(map(tokens, [*at_position, ".".join(["*"] * 15 + ["#"])]))
    asked = [tokens("#.a.#")]
    assert cover(asked, automaton, Budget(), states_max=10_000)[0] is Outcome.COVERED
    assert cover(asked, automaton, Budget()) == (Outcome.UNDECIDED, ())


def test_a_limit_of_steps_leaves_it_undecided() -> None:
    budget = Budget(3)
    assert cover([tokens("a.b.c.d")], Automaton([tokens("#")]), budget) == (Outcome.UNDECIDED, ())
    assert budget.is_spent
    assert not budget.take()


ASKED = [
    pytest.param("a.*", ["a.*"], id="a literal first"),
    pytest.param("*.a", ["!.a"], id="one word without $"),
    pytest.param("#", ["!.#"], id="a name has a word"),
    pytest.param("#.a", ["a", "!.#.a"], id="the # may stand for none"),
    pytest.param("#./.k", ["!.#./.k"], id="a name has a word, before a key, too"),
]


@pytest.mark.parametrize(("asked", "expected"), ASKED)
def test_a_wildcard_that_begins_a_request_means_no_names_with_a_first_dollar(
    asked: str, expected: list[str]
) -> None:
    assert asked_names(tokens(asked)) == [tokens(each) for each in expected]


def test_globs_are_compared_by_characters() -> None:
    inner, outer = characters(("app-", MANY, "-x")), characters(("app", MANY))
    assert cover([inner], Automaton([outer]), Budget())[0] is Outcome.COVERED
    outcome, name = cover([outer], Automaton([inner]), Budget())
    assert (outcome, shown(name, is_glob=True)) == (Outcome.NOT_COVERED, "app")


def test_a_name_is_shown_with_a_word_that_no_rule_has() -> None:
    assert shown(("x", FRESH, KEY, "k", f"${FRESH}")) == "x.xx/k.$xx"
    assert shown(("a", KEY)) == "a"
