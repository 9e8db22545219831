"""LIKE: which texts a pattern matches, and that matching reads a text no more than once."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.routing.selector.facts import STEPS_MAX, Facts
from broker.routing.selector.like import Pattern
from tests.support.routing import new_message

pytestmark = pytest.mark.requirement("RCV-05")

MIB = 1024 * 1024


def matches(pattern: str, value: str, escape: str = "") -> bool:
    return Pattern(pattern, escape).matches(value, Facts(new_message()))


CASES = [
    pytest.param("12%3", "", ["123", "12993", "1233"], ["1234", "12", "0123"], id="JMS's first"),
    pytest.param("l_se", "", ["lose", "l_se"], ["loose", "lse", "LOSE"], id="JMS's second"),
    pytest.param("\\_%", "\\", ["_foo", "_"], ["bar", "", "\\_"], id="JMS's third"),
    pytest.param("", "", [""], ["a"], id="nothing"),
    pytest.param("%", "", ["", "a", "%"], [], id="anything"),
    pytest.param("%%", "", ["", "a"], [], id="anything twice"),
    pytest.param("_", "", ["a", "é", "😀"], ["", "ab"], id="one character"),
    pytest.param("_%_", "", ["ab", "abc"], ["", "a"], id="two at least"),
    pytest.param("%a", "", ["a", "ba", "aba"], ["", "ab"], id="an end"),
    pytest.param("a%", "", ["a", "ab"], ["", "ba"], id="a start"),
    pytest.param("a%a", "", ["aa", "aba"], ["a", "ab"], id="start and end do not overlap"),
    pytest.param("%ab%ab%", "", ["abab", "xabyabz"], ["ab", "aab"], id="twice"),
    pytest.param("%a_c%c", "", ["abcc", "xabcxc"], ["abc", "ac"], id="one within any"),
    pytest.param("%a_%_b", "", ["axyb", "aaabb"], ["axb", "ab"], id="ones around any"),
    pytest.param("a.c", "", ["a.c"], ["abc"], id="a dot is a dot"),
    pytest.param("!%!!", "!", ["%!"], ["a!", "%"], id="escaped percent and escape"),
    pytest.param("%%", "%", ["%"], ["", "a", "%%"], id="percent as escape"),
    pytest.param("__", "_", ["_"], ["__", "a"], id="underscore as escape"),
    pytest.param("!a", "!", ["a"], ["!a"], id="what needs no escape"),
]


@pytest.mark.parametrize(("pattern", "escape", "alike", "different"), CASES)
def test_a_pattern_matches(
    pattern: str, escape: str, alike: list[str], different: list[str]
) -> None:
    assert [value for value in alike if not matches(pattern, value, escape)] == []
    assert [value for value in different if matches(pattern, value, escape)] == []


def test_an_escape_character_at_the_end_is_noticed() -> None:
    assert Pattern("a!", "!").ends_escaped
    assert not Pattern("a!!", "!").ends_escaped


def as_expression(pattern: str) -> str:
    rules = {"%": ".*", "_": "."}
    return "".join(rules.get(character) or re.escape(character) for character in pattern)


@given(st.text("ab%_", max_size=12), st.text("ab", max_size=12))
def test_patterns_match_what_regular_expressions_do(pattern: str, value: str) -> None:
    expected = re.fullmatch(as_expression(pattern), value, re.DOTALL) is not None
    assert matches(pattern, value) is expected


# -- cost: `docs/design/hostile-input.md` S1

LONG = [
    pytest.param("%a" * 1000 + "%", True, id="a thousand times anything and a"),
    pytest.param("%a" * 1000 + "%b", False, id="and then something that is not there"),
    pytest.param("%" + "a" * 2000 + "b%", False, id="a long run that nearly matches everywhere"),
    pytest.param("%a_b%", False, id="a short run with one"),
    pytest.param("%ab" * 1000 + "%", False, id="many runs, none there"),
]


@pytest.mark.parametrize(("pattern", "expected"), LONG)
def test_a_mebibyte_is_read_once(pattern: str, expected: bool) -> None:
    facts = Facts(new_message())
    assert Pattern(pattern, "").matches("a" * MIB, facts) is expected
    assert facts.steps <= MIB + 2 * len(pattern)


ENDLESS = [
    pytest.param("%a_b%", "aab" * (MIB // 3), False, id="found at once"),
    pytest.param("%a_b%", "ab" * (MIB // 2), True, id="pieces that never agree"),
    pytest.param("%" + "a_" * 2000 + "b%", ("a" * 4000 + "xxb") * 250, True, id="many pieces"),
    pytest.param("%" + "a" * 2000 + "b%", "a" * 32 * MIB, True, id="a long text"),
    pytest.param("%" + "a" * 49 + "b" + "a" * 49 + "%", "a" * 29_000, False, id="a slow search"),
]


@pytest.mark.attack("S1")
@pytest.mark.parametrize(("pattern", "value", "expected"), ENDLESS)
def test_work_ends_when_the_budget_is_spent(pattern: str, value: str, expected: bool) -> None:
    facts = Facts(new_message())
    Pattern(pattern, "").matches(value, facts)
    assert facts.is_overspent() is expected
    assert facts.steps <= STEPS_MAX + 100


@pytest.mark.attack("S1")
def test_a_search_goes_no_further_than_there_are_steps() -> None:
    facts = Facts(new_message())
    facts.steps_max = 100
    assert not Pattern("%b%", "").matches("a" * 6401 + "b", facts)
    assert facts.is_overspent()
    facts.begin()
    assert Pattern("%b%", "").matches("a" * 6000 + "b", facts)
    assert not facts.is_overspent()


@pytest.mark.attack("S1")
def test_pieces_that_are_not_there_end_a_search_at_once() -> None:
    facts = Facts(new_message())
    assert not Pattern("%a_b%", "").matches("a" * 10_000, facts)
    assert facts.steps < 200


@given(st.text("ab%_", max_size=12), st.text("ab", min_size=80, max_size=400))
def test_patterns_match_long_values_as_regular_expressions_do(pattern: str, value: str) -> None:
    expected = re.fullmatch(as_expression(pattern), value, re.DOTALL) is not None
    assert matches(pattern, value) is expected


def test_the_next_selector_has_a_budget_of_its_own() -> None:
    facts = Facts(new_message())
    facts.spend(STEPS_MAX + 1)
    facts.begin()
    assert not facts.is_overspent()
