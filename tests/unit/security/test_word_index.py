"""The index of patterns of words finds what comparing them one by one finds."""

from __future__ import annotations

import random
from typing import Final

import pytest

from broker.routing.addresses import pattern
from broker.security.coverage import UNLIMITED, Automaton, Budget
from broker.security.patterns import MANY, parse, words_of
from broker.security.rules import Rule
from broker.security.variables import RuleEntry
from broker.security.wildcards import pattern_tokens
from broker.security.word_index import ENTRY_VISITS, AskedName, WordIndex

WORDS: Final = ["a", "b", "$c"]


def entry(text: str) -> RuleEntry:
    found = parse(text)
    return RuleEntry(Rule("r", who=("anonymous",), can=("subscribe",), on=(found,)), found)


def index_of(texts: list[str]) -> WordIndex:
    index = WordIndex()
    for text in texts:
        index.add(entry(text))
    return index


def words(chooser: random.Random, most: int, alphabet: list[str]) -> str:
    while True:
        found = chooser.choices(alphabet, k=chooser.randint(1, most))
        if found.count("#") <= 2:
            return ".".join(found)


def random_patterns(chooser: random.Random) -> list[str]:
    alphabet = [*WORDS, "*", "#"]
    names = [words(chooser, 4, alphabet) for _ in range(8)]
    keys = [f"/{words(chooser, 2, alphabet)}" if chooser.random() < 0.4 else "" for _ in names]
    return [f"topic:{name}{key}" for name, key in zip(names, keys, strict=True)]


def texts(found: list[RuleEntry]) -> list[str]:
    return sorted(each.pattern.text for each in found)


def routing_matches(text: str, name: str, key: str) -> bool:
    """Return whether routing's matcher finds name and key in a pattern of a topic."""
    outer, _, behind = text.removeprefix("topic:").partition("/")
    return pattern.matches(pattern.normal(outer.split(".")), name.split(".")) and (
        not behind or pattern.matches(pattern.normal(behind.split(".")), pattern.words_of(key))
    )


def test_literal_names_match_as_in_routing() -> None:
    chooser = random.Random(3)
    found = 0
    for _ in range(300):
        patterns = random_patterns(chooser)
        name = words(chooser, 5, [*WORDS, "z"])
        key = words(chooser, 2, [*WORDS, "z"]) if chooser.random() < 0.8 else ""
        asked = AskedName(words_of(name), words_of(key), is_any_key=False)
        matching = list(index_of(patterns).matching(asked, Budget()))
        assert texts(matching) == sorted(
            text for text in patterns if routing_matches(text, name, key)
        )
        found += len(matching)
    assert found > 200


def test_names_with_wildcards_overlap_as_one_by_one() -> None:
    chooser = random.Random(4)
    found = 0
    for _ in range(300):
        patterns = random_patterns(chooser)
        name, key = words(chooser, 4, [*WORDS, "*", "#"]), words(chooser, 2, ["a", "*", "#"])
        asked = AskedName(words_of(name), words_of(key), is_any_key=chooser.random() < 0.3)
        automaton = Automaton([pattern_tokens(asked)])
        overlapping = list(index_of(patterns).overlapping(automaton, Budget(10_000)))
        expected = [
            text for text in patterns if automaton.overlaps(parse(text).tokens(is_keyed=True) or ())
        ]
        assert texts(overlapping) == sorted(expected)
        found += len(overlapping)
    assert found > 200


def test_any_key_touches_rules_with_keys_and_is_matched_by_those_without() -> None:
    index = index_of(["topic:t", "topic:t/k", "topic:*/a.b", "topic:u/k"])
    asked = AskedName(["t"], [], is_any_key=True)
    assert texts(list(index.matching(asked, Budget()))) == ["topic:t"]
    assert texts(list(index.touching(asked, Budget()))) == ["topic:*/a.b", "topic:t", "topic:t/k"]
    assert index.has_keys(asked, Budget())
    assert not index.has_keys(AskedName(["v", "w"], [], is_any_key=True), Budget())


def test_rules_with_a_key_match_no_node_by_itself() -> None:
    index = index_of(["topic:t", "topic:t/k"])
    asked = AskedName(["t"], None, is_any_key=False)
    assert texts(list(index.matching(asked, Budget()))) == ["topic:t"]


def test_general_patterns_are_found_first() -> None:
    index = index_of(["topic:a.b", "topic:a.*", "topic:#", "topic:*.b"])
    automaton = Automaton([("a", MANY)])
    found = [each.pattern.text for each in index.overlapping(automaton, Budget())]
    assert (found[0], found[-1]) == ("topic:#", "topic:a.b")


def test_the_walk_ends_with_its_budget() -> None:
    index = index_of([f"topic:t{number}" for number in range(100)])
    budget = Budget(50)
    assert len(list(index.overlapping(Automaton([(MANY,)]), budget))) < 50
    assert budget.is_spent


def tangled(count: int) -> list[str]:
    """Return patterns of few words and many wildcards, which reach many nodes with any name."""
    chooser = random.Random(6)
    return [f"topic:#.{words(chooser, 8, ['a', 'b', '*', '*'])}.#" for _ in range(count)]


def visits_of(patterns: list[str], asked: AskedName) -> int:
    """Return how many visits the entries that match a literal name take."""
    visits = Budget(UNLIMITED)
    list(index_of(patterns).touching(asked, visits))
    return UNLIMITED - visits.left


def test_the_walk_of_a_literal_name_ends_with_its_visits() -> None:
    asked = AskedName(words_of("a.b.a.b.a.b.a.b"), None, is_any_key=False)
    assert visits_of(tangled(100), asked) > 400
    visits = Budget(100)
    assert list(index_of(tangled(100)).touching(asked, visits)) == []
    assert visits.is_spent


def test_the_walk_through_keys_ends_with_its_visits() -> None:
    index = index_of([f"topic:t/k{number}.#" for number in range(100)])
    visits = Budget(50)
    found = list(index.touching(AskedName(["t"], [], is_any_key=True), visits))
    assert len(found) < 50
    assert visits.is_spent


def test_entries_of_one_node_end_with_the_visits() -> None:
    visits = Budget(50)
    asked = AskedName(["t"], None, is_any_key=False)
    assert len(list(index_of(["topic:#"] * 100).matching(asked, visits))) < 50
    assert visits.is_spent


def test_a_node_is_visited_once_for_each_word() -> None:
    patterns = ["topic:#.a.#", "topic:#.a.#.a", "topic:#.*.#"]
    # the nodes are those of #, #.a, #.a.#, #.a.#.a, #.*, #.*.# and the root
    for count in (10, 100):
        asked = AskedName(["a"] * count, None, is_any_key=False)
        assert visits_of(patterns, asked) <= 6 * (count + 1) + ENTRY_VISITS * len(patterns)


ORDINARY = [
    pytest.param("secret-7.orders", None, id="a queue of a rule"),
    pytest.param("x.y.z.secret-7.a.b", None, id="a name of many words"),
    pytest.param("region-7.north.prices", "k.l", id="a topic with a key"),
]


@pytest.mark.parametrize(("name", "key"), ORDINARY)
def test_visits_do_not_grow_with_the_number_of_ordinary_rules(name: str, key: str | None) -> None:
    def taken(rules: int) -> int:
        shapes = ("secret-{}.#", "*.secret-{}", "#.private-{}", "region-{}.*.prices/k.#")
        patterns = [f"topic:{shape.format(n)}" for n in range(rules) for shape in shapes]
        keys = None if key is None else words_of(key)
        return visits_of(patterns, AskedName(words_of(name), keys, is_any_key=False))

    assert taken(1000) == taken(10) < 50


VALUES = [
    pytest.param("ann", "in.ann.x", ["topic:in.{user}.#"], id="the user's own"),
    pytest.param("ann", "in.bob.x", [], id="another user's"),
    pytest.param("*", "in.bob.x", [], id="a user with the name of a wildcard"),
    pytest.param("a.b", "in.a.b.x", ["topic:in.{user}.#"], id="a name of two words"),
]


@pytest.mark.parametrize(("user", "name", "expected"), VALUES)
def test_patterns_with_variables(user: str, name: str, expected: list[str]) -> None:
    index = index_of(["topic:in.{user}.#"])
    asked = AskedName(words_of(name), None, is_any_key=False)
    found = [each for part in index.for_values(user, "") for each in part.matching(asked, Budget())]
    assert texts(found) == expected
