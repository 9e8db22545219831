"""Selectors as a whole: one text is one selector, parsed once."""

import pytest

from broker.routing.errors import InvalidSelector
from broker.routing.selector import parse_selector
from broker.routing.selector.selector import PARSED, PARSED_MAX

pytestmark = pytest.mark.requirement("RCV-05")


def test_one_text_is_parsed_once() -> None:
    assert parse_selector("once = 1") is parse_selector("once = 1")
    assert parse_selector("once = 1") != parse_selector("once=1")


def test_so_many_parses_are_remembered() -> None:
    first = parse_selector("first = 1")
    for number in range(PARSED_MAX):
        parse_selector(f"one_of_so_many = {number}")  # no other test has parsed these
    assert len(PARSED) == PARSED_MAX
    assert parse_selector("first = 1") is not first
    assert parse_selector("first = 1") == first
    assert hash(parse_selector("first = 1")) == hash(first)


def test_what_is_refused_is_not_remembered() -> None:
    with pytest.raises(InvalidSelector):
        parse_selector("refused =")
    assert "refused =" not in PARSED
