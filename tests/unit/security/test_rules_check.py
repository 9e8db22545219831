"""Problems of rules: rules that never decide, unknown roles."""

from __future__ import annotations

import pytest

from broker.security.access import AccessRules
from broker.security.limits import limit_of
from broker.security.rules import Rule, rule_of


def rule(text: str, on: str, who: str = "user:ann", **more: object) -> Rule:
    """Return a rule: `text` is its id, effect and verbs."""
    id_, effect, *can = text.split()
    record = {"id": id_, "effect": effect, "who": who.split(), "can": can, "on": on.split()}
    return rule_of({**record, **more}, "rule")


def dead(*rules: Rule, roles: dict[str, list[str]] | None = None) -> list[str]:
    """Return the ids of the rules that never decide."""
    problems = AccessRules(rules, roles).check()
    return [each.rule for each in problems if each.text.startswith("never decides")]


WHOLE = rule("whole allow send", "queue:a.#")

DEAD = [
    pytest.param([rule("x allow send", "queue:a.b"), WHOLE], True, id="a part of another"),
    pytest.param([rule("x allow send", "queue:b"), WHOLE], False, id="another name"),
    pytest.param([rule("x allow send browse", "queue:a"), WHOLE], False, id="one verb more"),
    pytest.param([rule("x allow send", "queue:a queue:b"), WHOLE], False, id="one name more"),
    pytest.param([rule("x allow send", "queue:a", "user:bob"), WHOLE], False, id="another user"),
    pytest.param(
        [rule("x allow send", "queue:a"), rule("y allow *", "queue:#", "authenticated")],
        True,
        id="every user has it",
    ),
    pytest.param(
        [rule("x allow send", "queue:a"), rule("y allow *", "queue:#", "role:r")],
        True,
        id="a role of the user has it",
    ),
    pytest.param(
        [rule("x allow send", "queue:a", "role:s"), rule("y allow *", "queue:#", "authenticated")],
        False,
        id="a role without a login may have it",
    ),
    pytest.param(
        [rule("x allow send", "queue:a"), rule("y deny *", "queue:#")], True, id="all denied"
    ),
    pytest.param(
        [rule("x deny send", "queue:a"), rule("y allow *", "queue:#")], False, id="deny wins"
    ),
    pytest.param(
        [rule("x deny send", "queue:a"), rule("y deny *", "queue:#")], True, id="denied anyway"
    ),
    pytest.param(
        [rule("x allow send", "queue:a"), rule("y allow send", "queue:a", when={"tls": True})],
        False,
        id="only under a condition",
    ),
    pytest.param(
        [rule("x allow send", "queue:a", when={"tls": True}), WHOLE], True, id="no condition"
    ),
    pytest.param(
        [rule("x allow send", "topic:t/k"), rule("y allow *", "topic:t")], True, id="any key"
    ),
    pytest.param(
        [rule("x allow send", "topic:t"), rule("y allow send", "topic:t/k")], False, id="a key"
    ),
    pytest.param(
        [rule("x allow use", "subscription:c-*/n"), rule("y allow use", "subscription:c*/*")],
        True,
        id="a glob in another",
    ),
    pytest.param(
        [rule("x allow use", "client-id:a*b"), rule("y allow use", "client-id:ab*")],
        False,
        id="a glob that goes further",
    ),
    pytest.param(
        [rule("x allow send", "queue:in.{user}"), rule("y allow send", "queue:in.*.#")],
        True,
        id="all values of a variable",
    ),
    pytest.param(
        [rule("x allow send", "queue:in.{user}"), rule("y allow send", "queue:in.*")],
        False,
        id="a value may have two words",
    ),
    pytest.param(
        [rule("x allow send", "queue:in.{user}"), rule("y allow send", "queue:in.{user}")],
        True,
        id="the same variable",
    ),
    pytest.param(
        [rule("x allow use", "client-id:{user}-1"), rule("y allow use", "client-id:*-1")],
        True,
        id="a variable in a glob",
    ),
    pytest.param(
        [rule("x allow send", "queue:a", "role:admin")], True, id="a built-in role has it"
    ),
]


@pytest.mark.parametrize(("rules", "expected"), DEAD)
def test_rules_that_never_decide(rules: list[Rule], expected: bool) -> None:
    assert ("x" in dead(*rules, roles={"r": ["ann"], "s": ["eve"]})) is expected


def test_a_variable_covers_no_wildcard() -> None:
    rules = [rule("x allow send", "queue:in.{user}"), rule("y allow send", "queue:in.*")]
    assert dead(*rules) == []


def test_of_two_equal_rules_one_is_left() -> None:
    assert len(dead(rule("x allow send", "queue:a"), rule("y allow send", "queue:a"))) == 1


def test_the_rule_that_decides_instead_is_named() -> None:
    denied = rule("x allow send", "queue:a")
    problems = AccessRules([denied, rule("y deny *", "queue:#")]).check()
    assert [each.text for each in problems] == ["never decides: y denies all of it"]
    problems = AccessRules([denied, WHOLE]).check()
    assert [each.text for each in problems] == ["never decides: whole allows all of it already"]


ROLES = [
    pytest.param("role:r", {"r": ["ann"]}, [], id="in the file"),
    pytest.param("role:admin", {}, [], id="built in"),
    pytest.param("role:t", {}, [], id="known elsewhere"),
    pytest.param("role:x", {}, [("r", "unknown role x")], id="unknown"),
    pytest.param("user:x", {"r": ["ann"]}, [("", "role r: no rule names it")], id="no rule"),
]


@pytest.mark.parametrize(("who", "roles", "expected"), ROLES)
def test_roles(who: str, roles: dict[str, list[str]], expected: list[tuple[str, str]]) -> None:
    rules = AccessRules([rule("r allow impersonate", "user-id:x", who)], roles)
    found = rules.check(known_roles=["t"])
    found = [each for each in found if not each.text.startswith("never decides")]
    assert [each.rule for each in found] == [id_ for id_, _ in expected]
    assert all(each.text.startswith(text) for each, (_, text) in zip(found, expected, strict=True))


def test_users_without_a_role() -> None:
    rules = AccessRules([rule("r allow send", "queue:q", "role:r")], {"r": ["ann"]})
    found = rules.check(users={"ann": [], "bob": ["admin"], "eve": []})
    assert [each.text for each in found] == ["user eve: has no role"]


LISTENERS = [
    pytest.param(["amqp"], ["r"], id="no such listener"),
    pytest.param(["amqp", "amqps"], [], id="one of two"),
    pytest.param(None, [], id="not known here"),
]


@pytest.mark.parametrize(("listeners", "expected"), LISTENERS)
def test_listeners(listeners: list[str] | None, expected: list[str]) -> None:
    when = {"listener": ["amqps", "wss"]}
    rules = AccessRules([rule("r allow send", "queue:q", when=when)])
    found = rules.check(listeners=listeners)
    assert [each.rule for each in found] == expected
    assert all("there is no listener amqps, wss" in each.text for each in found)


WEAK = [
    pytest.param("role:r", 50, "role:r", 60, ["limit 2"], id="more for the same"),
    pytest.param("role:r", 50, "role:r", 50, ["limit 2"], id="the same twice"),
    pytest.param("user:bob", 50, "user:ann", 60, [], id="another user"),
    pytest.param("authenticated", 50, "user:ann", 60, ["limit 2"], id="every user has less"),
    pytest.param("role:r", 50, "user:ann", 60, ["limit 2"], id="a role of the user has less"),
    pytest.param("authenticated", 50, "user:ann", 40, [], id="a user has less"),
    pytest.param("user:ann", 40, "authenticated", 50, [], id="some users have less"),
    pytest.param("role:x", 40, "role:r", 50, ["limit 1"], id="an unknown role"),
]


@pytest.mark.requirement("SEC-05")
@pytest.mark.parametrize(("first", "few", "second", "more", "expected"), WEAK)
def test_limits_that_never_count(
    first: str, few: int, second: str, more: int, expected: list[str]
) -> None:
    limits = [
        limit_of({"who": [first], "links": few}, 1),
        limit_of({"who": [second], "links": more}, 2),
    ]
    rules = AccessRules([rule("a allow send", "queue:q", "role:r")], {"r": ["ann"]}, limits=limits)
    assert [each.rule for each in rules.check()] == expected


def test_a_role_that_only_a_limit_names_is_used() -> None:
    limits = [limit_of({"who": ["role:r"], "links": 5}, 1)]
    assert AccessRules([], {"r": ["ann"]}, limits=limits).check() == []


def test_the_limit_that_counts_instead_is_named() -> None:
    limits = [limit_of({"who": ["role:admin"], "links": each}, each) for each in (5, 7)]
    (problem,) = AccessRules([], limits=limits).check()
    assert problem.text == "links = 7 never counts: limit 5 allows 5"
