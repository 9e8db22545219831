"""Names of properties are the identifiers of selectors: JMS 2.0 3.8.1.1."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.jms.identifiers import RESERVED, first_wrong, is_identifier
from broker.routing.errors import InvalidSelector
from broker.routing.selector import parse_selector

SEVEN: Final = "\N{ARABIC-INDIC DIGIT SEVEN}"

pytestmark = pytest.mark.requirement("MAP-05", "RCV-05")


@pytest.mark.parametrize(
    ("name", "at"),
    [
        pytest.param("a", -1, id="a letter"),
        pytest.param("_a$1", -1, id="underscore, dollar, digit"),
        pytest.param("$", -1, id="the dollar alone"),
        pytest.param("größe", -1, id="letters of other alphabets"),
        pytest.param("€uro", -1, id="another currency"),
        pytest.param("1a", 0, id="a digit first"),
        pytest.param(f"{SEVEN}a", 0, id="a digit of another script first"),
        pytest.param(f"a{SEVEN}", -1, id="a digit of another script later"),
        pytest.param("a-b", 1, id="a hyphen"),
        pytest.param("a b", 1, id="a space"),
        pytest.param("ab.c", 2, id="a point"),
        pytest.param("äb☃", 2, id="a sign behind letters"),
        pytest.param("a\n", 1, id="a line break"),
    ],
)
def test_the_first_character_that_no_identifier_has(name: str, at: int) -> None:
    assert first_wrong(name) == at
    assert is_identifier(name) == (at < 0)


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_the_words_of_selectors_are_no_identifiers_in_any_case(word: str) -> None:
    for name in (word, word.lower(), word.capitalize()):
        assert first_wrong(name) < 0
        assert not is_identifier(name)
    assert is_identifier(f"{word}_")


def test_the_empty_string_is_no_identifier() -> None:
    assert not is_identifier("")


@given(
    st.text(f"aN1_$é☃-.{SEVEN}", min_size=1, max_size=4)
    | st.sampled_from(["null", "Like", "nulls"])
)
def test_identifiers_are_the_names_that_a_selector_takes(name: str) -> None:
    try:
        parse_selector(f"{name} IS NULL")
    except InvalidSelector:
        assert not is_identifier(name)
    else:
        assert is_identifier(name)
