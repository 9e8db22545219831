"""Explanations of decisions: the rule, a name that shows why, near misses."""

from __future__ import annotations

from typing import Final

import pytest

from broker.security.access import AccessRules
from broker.security.entrance import Entrance
from broker.security.explanation import NEAR_MISSES_MAX, Explanation
from broker.security.identity import Identity
from broker.security.resources import resource_of
from broker.security.rules import rule_of

RULES: Final = AccessRules(
    [
        rule_of({"id": "orders", "who": ["role:a"], "can": ["send"], "on": ["queue:a.#"]}, "rule"),
        rule_of({"id": "news", "who": ["role:a"], "can": ["subscribe"], "on": ["topic:a.#"]}, ""),
        rule_of(
            {
                "id": "inside",
                "who": ["role:a"],
                "can": ["send"],
                "on": ["queue:b"],
                "when": {"tls": True, "from": ["10.0.0.0/8"]},
            },
            "",
        ),
        rule_of(
            {
                "id": "secret",
                "effect": "deny",
                "who": ["authenticated"],
                "can": ["*"],
                "on": ["topic:a.b.#", "topic:t/k.x"],
            },
            "",
        ),
        rule_of({"id": "own", "who": ["role:a"], "can": ["use"], "on": ["client-id:{user}"]}, ""),
    ]
)


def explained(request: str, roles: str = "a") -> Explanation:
    verb, text = request.split()
    identity = Identity("ann", roles=frozenset(roles.split()))
    return RULES.explain(identity, verb, resource_of(text, verb))


WITNESSES = [
    pytest.param("send queue:a.b", "allowed", "orders", "cover", "a.b", id="allowed"),
    pytest.param("send queue:c", "refused", "", "default", "c", id="no rule"),
    pytest.param("subscribe topic:a.#", "refused", "secret", "overlap", "a.b", id="denied name"),
    pytest.param("subscribe topic:#.c", "refused", "secret", "overlap", "a.b.c", id="in common"),
    pytest.param("subscribe topic:t", "refused", "secret", "overlap", "t/k.x", id="a denied key"),
    pytest.param(
        "subscribe topic:q.*", "refused", "", "default", "q.x", id="a name no rule allows"
    ),
    pytest.param("subscribe topic:c.*/k", "refused", "", "default", "c.x/k", id="with a key"),
    pytest.param("receive temporary:queue", "refused", "", "fixed", "queue", id="fixed"),
    pytest.param("subscribe topic:#.x.#.x.#", "refused", "", "undecided", "", id="a limit"),
]


@pytest.mark.parametrize(("request_", "decision", "rule", "because", "witness"), WITNESSES)
def test_the_reason_of_a_decision(
    request_: str, decision: str, rule: str, because: str, witness: str
) -> None:
    found = explained(request_)
    assert (found.decision, found.rule, found.because) == (decision, rule, because)
    assert found.witness == witness
    assert found.canonical == request_.split()[1]


NEAR = [
    pytest.param("send queue:a.b", "b", ("orders", "who"), id="another role"),
    pytest.param("send queue:c", "a", ("orders", "on"), id="another name"),
    pytest.param("send queue:b", "a", ("inside", "when"), id="a condition"),
    pytest.param("subscribe topic:*.x", "a", ("news", "on"), id="not all names of a wildcard"),
    pytest.param("subscribe topic:a.x/k", "b", ("news", "who"), id="with a key"),
    pytest.param("use client-id:bob", "a", ("own", "on"), id="another user's client id"),
]


@pytest.mark.parametrize(("request_", "roles", "expected"), NEAR)
def test_near_misses_fail_in_one_respect(
    request_: str, roles: str, expected: tuple[str, str]
) -> None:
    found = [(each.rule, each.failed) for each in explained(request_, roles).near_misses]
    assert expected in found
    assert all(failed in ("who", "when", "on") for _, failed in found)


def test_a_rule_that_fails_in_two_respects_is_no_near_miss() -> None:
    assert "inside" not in [each.rule for each in explained("send queue:c").near_misses]


def test_what_is_allowed_has_no_near_misses() -> None:
    assert explained("send queue:a.b").near_misses == ()


def test_near_misses_have_a_limit() -> None:
    rules = AccessRules(
        rule_of({"id": f"r{n}", "who": ["role:a"], "can": ["send"], "on": [f"queue:q{n}"]}, "")
        for n in range(NEAR_MISSES_MAX + 5)
    )
    identity = Identity("ann", roles=frozenset({"a"}))
    found = rules.explain(identity, "send", resource_of("queue:x", "send"))
    assert len(found.near_misses) == NEAR_MISSES_MAX


def test_the_record_has_plain_values() -> None:
    entrance = Entrance(listener="amqp", kind="amqp", host="10.1.1.1")
    identity = Identity("ann", roles=frozenset({"a"}))
    found = RULES.explain(identity, "send", resource_of("queue:b", "send"), entrance=entrance)
    assert found.record() == {
        "decision": "refused",
        "canonical": "queue:b",
        "rule": "",
        "because": "default",
        "witness": "b",
        "near_misses": [
            {"rule": "inside", "failed": "when"},
            {"rule": "orders", "failed": "on"},
            {"rule": "built-in:admin-everything", "failed": "who"},
            {"rule": "built-in:application-messages", "failed": "who"},
            {"rule": "built-in:pipeline-sends", "failed": "who"},
        ],
    }
