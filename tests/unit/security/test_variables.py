"""Indexes of patterns with variables, for the values of a connection."""

from __future__ import annotations

import pytest

from broker.security.patterns import parse
from broker.security.rules import Rule
from broker.security.variables import KEPT_MAX, FilledIndexes, RuleEntry
from broker.security.word_index import WordIndex


def filled(*texts: str) -> FilledIndexes[WordIndex]:
    found = FilledIndexes(WordIndex)
    for text in texts:
        pattern = parse(text)
        found.add(
            RuleEntry(Rule("r", who=("authenticated",), can=("send",), on=(pattern,)), pattern)
        )
    return found


def test_no_entries_are_no_index() -> None:
    assert filled().of("ann", "c") is None


SHARED = [
    pytest.param("queue:{user}", ("ann", "c2"), True, id="another connection of the user"),
    pytest.param("queue:{user}", ("bob", "c1"), False, id="another user"),
    pytest.param("queue:{client_id}", ("bob", "c1"), True, id="only the client id matters"),
    pytest.param("queue:{user}.{client_id}", ("ann", "c2"), False, id="both matter"),
]


@pytest.mark.parametrize(("text", "values", "expected"), SHARED)
def test_an_index_is_shared_if_its_values_are_the_same(
    text: str, values: tuple[str, str], expected: bool
) -> None:
    indexes = filled(text)
    first = indexes.of("ann", "c1")
    assert first is not None
    assert (indexes.of(*values) is first) is expected
    assert indexes.of("ann", "c1") is first


def test_an_entry_without_a_value_is_left_out() -> None:
    index = filled("queue:{user}", "queue:{client_id}").of("", "c1")
    assert index is not None
    assert [entry.pattern.name for entry in index.entries] == [("c1",)]


def test_indexes_used_least_lately_are_dropped() -> None:
    indexes = filled(*(f"queue:{{user}}.{number}" for number in range(KEPT_MAX // 2)))
    ann, bob = indexes.of("ann", ""), indexes.of("bob", "")
    assert indexes.of("ann", "") is ann
    indexes.of("eve", "")
    assert indexes.of("ann", "") is ann
    assert indexes.of("bob", "") is not bob
