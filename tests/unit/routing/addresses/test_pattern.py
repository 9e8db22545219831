"""Words, wildcards, and the keys that a pattern matches."""

import pytest
from hypothesis import given

from broker.routing.addresses import pattern
from broker.routing.errors import InvalidAddress
from tests.support.topics import KEYS, PATTERNS, stands_for

pytestmark = pytest.mark.requirement("DST-06")

MATCHES = {
    "a word is itself": ("a.b", "a.b", True),
    "another word is not": ("a.b", "a.c", False),
    "a star is one word": ("a.*", "a.b", True),
    "a star is not none": ("a.*", "a", False),
    "a star is not two": ("a.*", "a.b.c", False),
    "a star is an empty word too": ("a.*", "a.", True),
    "a hash is one word": ("a.#", "a.b", True),
    "a hash is none": ("a.#", "a", True),
    "a hash is many": ("a.#", "a.b.c.d", True),
    "a hash alone is nothing at all": ("#", "", True),
    "a star alone is not": ("*", "", False),
    "a hash in the middle": ("a.#.z", "a.b.c.z", True),
    "a hash in the middle is none": ("a.#.z", "a.z", True),
    "what is behind a hash counts": ("a.#.z", "a.b.c", False),
    "two hashes": ("#.m.#", "a.m.b.c", True),
    "two hashes around what is not there": ("#.m.#", "a.b.c", False),
    "a star in a word is a star": ("a*", "ab", False),
    "a word that only looks like a wildcard": ("a*", "a*", True),
    "nothing stands for nothing": ("", "", True),
    "nothing does not stand for something": ("", "a", False),
}


@pytest.mark.parametrize(("text", "key", "expected"), MATCHES.values(), ids=MATCHES.keys())
def test_a_pattern_stands_for(text: str, key: str, expected: bool) -> None:
    words = pattern.normal(pattern.check(text))
    assert pattern.matches(words, pattern.words_of(key)) is expected
    assert stands_for(text, key) is expected


@given(text=PATTERNS, key=KEYS)
def test_every_pattern_stands_for_what_it_should(text: str, key: str) -> None:
    words = pattern.normal(pattern.check(text))
    assert pattern.matches(words, pattern.words_of(key)) is stands_for(text, key)


NORMAL = {
    "nothing to do": ("a.*.b.#", "a.*.b.#"),
    "a hash goes behind its neighbours": ("#.*.a", "*.#.a"),
    "two of them are one": ("a.#.#", "a.#"),
    "two of them around stars": ("#.*.#.*", "*.*.#"),
    "a word parts them": ("#.a.#", "#.a.#"),
    "no words": ("", ""),
}


@pytest.mark.parametrize(("text", "expected"), NORMAL.values(), ids=NORMAL.keys())
def test_patterns_of_one_meaning_have_one_form(text: str, expected: str) -> None:
    assert pattern.normal(pattern.words_of(text)) == pattern.words_of(expected)


REFUSED = {
    "three times a hash": "#.a.#.b.#",
    "three times a hash in a row": "#.#.#",
    "more than 32 words": ".".join(["a"] * 33),
    "more than 32 empty words": "." * 32,
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(InvalidAddress, match="at most"):
        pattern.check(text)


def test_the_largest_patterns_are_taken() -> None:
    assert len(pattern.check(".".join(["#", "#", *["*"] * 30]))) == pattern.WORDS_MAX


WILDCARDS = {
    "a star": ("a.*", True),
    "a hash": ("#", True),
    "neither": ("a.b", False),
    "a star in a word": ("a.b*", False),
    "a hash in a word": ("#1.a", False),
    "nothing": ("", False),
}


@pytest.mark.parametrize(("text", "expected"), WILDCARDS.values(), ids=WILDCARDS.keys())
def test_a_wildcard_is_a_whole_word(text: str, expected: bool) -> None:
    assert pattern.is_pattern(text) is expected


def test_what_is_too_long_is_no_key() -> None:
    assert pattern.is_key("x" * 255, 255)
    assert not pattern.is_key("x" * 256, 255)
    assert pattern.is_key("." * 31, 255)
    assert not pattern.is_key("." * 32, 255)
