"""The index of globs."""

from __future__ import annotations

import pytest

from broker.security.glob_index import GlobIndex, for_any_value, pattern_matches
from broker.security.patterns import parse
from broker.security.rules import Rule
from broker.security.variables import RuleEntry

SUBSCRIPTIONS = [
    *("subscription:c1/news", "subscription:c1/*", "subscription:app-*/news"),
    *("subscription:*", "subscription:{client_id}/news", "subscription:{user}-*/{user}"),
]


def found(texts: list[str], name: str, key: str, values: tuple[str, str]) -> list[str]:
    index = GlobIndex()
    for text in texts:
        pattern = parse(text)
        index.add(RuleEntry(Rule("r", who=("anonymous",), can=("use",), on=(pattern,)), pattern))
    entries = [each for part in index.for_values(*values) for each in part.matching(name, key)]
    return [each.pattern.text for each in entries]


MATCHES = [
    pytest.param("c1", "news", ("", ""), {0, 1, 3}, id="exact, by client id, by glob"),
    pytest.param("c1", "news", ("ann", "c1"), {0, 1, 3, 4}, id="its own client id"),
    pytest.param("c2", "news", ("ann", "c1"), {3}, id="another client id"),
    pytest.param("app-1", "news", ("", ""), {2, 3}, id="a glob of client ids"),
    pytest.param("ann-1", "ann", ("ann", ""), {3, 5}, id="the user's name"),
    pytest.param("c1/news", "x", ("", ""), {3}, id="a slash in a client id is no border"),
    pytest.param("bob-1", "bob", ("*", ""), {3}, id="a user with the name of a wildcard"),
]


@pytest.mark.parametrize(("name", "key", "values", "expected"), MATCHES)
def test_subscriptions(name: str, key: str, values: tuple[str, str], expected: set[int]) -> None:
    assert set(found(SUBSCRIPTIONS, name, key, values)) == {SUBSCRIPTIONS[n] for n in expected}


NAMED = [
    pytest.param("client-id:app-*", "app-1", True, id="a glob"),
    pytest.param("client-id:app-*", "web-1", False, id="another id"),
    pytest.param("client-id:{user}-x", "ann-x", True, id="some user's"),
    pytest.param("client-id:*{user}{client_id}*", "x", True, id="neighbouring variables"),
    pytest.param("client-id:{user}-x", "ann-y", False, id="no user's"),
]


@pytest.mark.parametrize(("text", "name", "expected"), NAMED)
def test_a_pattern_may_name_an_id_for_some_user(text: str, name: str, expected: bool) -> None:
    assert pattern_matches(for_any_value(parse(text)), name, "") is expected
