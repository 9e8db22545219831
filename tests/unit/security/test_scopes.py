"""Scopes of tokens as allow rules of one login."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from broker.security.access import AccessRules
from broker.security.identity import Identity
from broker.security.patterns import PATTERN_BYTES_MAX
from broker.security.resources import Resource
from broker.security.rules import RuleError, rule_of
from broker.security.scopes import OF_SCOPE, rule_of_scope, scopes_with, usable

pytestmark = [pytest.mark.requirement("SEC-03"), pytest.mark.requirement("SEC-07")]

DENY_PAYROLL = rule_of(
    {
        "id": "no-payroll",
        "effect": "deny",
        "who": ["authenticated"],
        "can": ["*"],
        "on": ["queue:hr.#", "topic:hr.#"],
    },
    "test",
)
OPEN_TO_R = rule_of(
    {"id": "open", "who": ["role:r"], "can": ["receive"], "on": ["queue:orders.*"]}, "test"
)
RULES = AccessRules([DENY_PAYROLL, OPEN_TO_R])


def ada(*scopes: str, roles: Iterable[str] = ()) -> Identity:
    return Identity("ada", roles=frozenset(roles), scopes=tuple(sorted(scopes)))


def resource(text: str) -> Resource:
    kind, _, name = text.partition(":")
    name, _, key = name.partition("/")
    return Resource(kind, name, key)


DECISIONS = [
    # scopes; verb, resource; whether it is allowed
    (["send:queue:orders.#"], "send", "queue:orders.eu", True),
    (["send:queue:orders.#"], "receive", "queue:orders.eu", False),
    (["send:queue:orders.#"], "send", "queue:bills", False),
    (["send:queue:orders.#"], "send", "topic:orders.eu", False),
    (["produce:queue:orders.#"], "create", "queue:orders.eu", True),
    (["subscribe:topic:a", "subscribe:topic:b"], "subscribe", "topic:b", True),
    (["subscribe:topic:orders.*"], "subscribe", "topic:orders.#", False),
    (["use:subscription:{client_id}/*"], "use", "subscription:here/s", True),
    (["use:subscription:{client_id}/*"], "use", "subscription:there/s", False),
    (["connect:connection:*"], "connect", "connection:amqps", True),
    (["view:management:queues"], "view", "management:queues", True),
    (["view:management:queues"], "view", "management:users", False),
    (["*:queue:#"], "send", "queue:hr.wages", False),
    (["*:queue:#"], "receive", "queue:$management", False),
    (["*:topic:#"], "subscribe", "topic:#", False),
]


@pytest.mark.parametrize(("scopes", "verb", "on", "expected"), DECISIONS)
def test_scopes_allow(scopes: list[str], verb: str, on: str, *, expected: bool) -> None:
    decision = RULES.decide(ada(*scopes), verb, resource(on), client_id="here")
    assert decision.allowed is expected
    assert not RULES.decide(ada(), verb, resource(on), client_id="here").allowed


def test_a_deny_rule_wins_over_a_scope() -> None:
    decision = RULES.decide(ada("*:queue:#"), "send", resource("queue:hr.wages"))
    assert (decision.allowed, decision.rule) == (False, "no-payroll")


def test_the_decision_names_the_scope() -> None:
    decision = RULES.decide(ada("send:queue:orders"), "send", resource("queue:orders"))
    assert decision.rule == f"{OF_SCOPE}send:queue:orders"
    explained = RULES.explain(ada("send:queue:orders"), "send", resource("queue:orders"))
    assert (explained.decision, explained.rule) == ("allowed", decision.rule)


def test_a_scope_and_a_role_cover_a_wildcard_together() -> None:
    both = ada("receive:queue:orders", roles=["r"])
    asked = Resource("queue", "orders.#", is_pattern=True)
    assert not RULES.decide(ada(roles=["r"]), "receive", asked).allowed
    assert not RULES.decide(both, "receive", asked).allowed
    wider = ada("receive:queue:orders", "receive:queue:orders.*.#", roles=["r"])
    assert RULES.decide(wider, "receive", asked).allowed


def test_scopes_are_of_one_login() -> None:
    send = resource("queue:orders")
    assert RULES.decide(ada("send:queue:orders"), "send", send).allowed
    assert not RULES.decide(ada("send:queue:bills"), "send", send).allowed
    assert not RULES.decide(ada(), "send", send).allowed


def test_some_right_on_a_kind() -> None:
    assert RULES.may_any(ada("send:queue:orders"), "send", "queue")
    assert not RULES.may_any(ada("send:queue:orders"), "send", "topic")
    assert not RULES.may_any(ada(), "send", "queue")


def test_other_roles_keep_the_scopes() -> None:
    assert ada("send:queue:a").with_roles(frozenset({"r"})).scopes == ("send:queue:a",)


def test_scopes_of_the_prefix_alone() -> None:
    claimed = ["openid", "b.send:queue:x", "b.", "bb.send:queue:y", "B.send:queue:z", "b.a", "b.a"]
    assert scopes_with("b", claimed) == ("", "a", "send:queue:x")


WRONG = [
    ("", "is no verb"),
    ("read", "is no verb"),
    ("snd:queue:a", "is no verb"),
    ("send", "a pattern is KIND:TEXT"),
    ("send:orders", "a pattern is KIND:TEXT"),
    ("send:queue:", "is empty"),
    ("send:subscription:a/b", "is no verb of subscription"),
    ("send:queue:$sub/a", "the broker's own names"),
    ("send:queue:{evil}", "is no variable"),
    (f"send:queue:{'x' * PATTERN_BYTES_MAX}", "at most"),
]


@pytest.mark.parametrize(("scope", "reason"), WRONG)
def test_a_scope_that_is_no_rule(scope: str, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        rule_of_scope(scope)
    right, problems = usable(["send:queue:a", scope])
    assert right == ("send:queue:a",)
    (problem,) = problems
    assert problem.startswith(f"{scope[:100]}: ")
    assert "rule scope" not in problem
    assert len(problem) < 300
    assert reason in problem
