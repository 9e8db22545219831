"""Rules read from records: every error names the rule, the key, and what is allowed."""

from __future__ import annotations

import pytest

from broker.security.rules import (
    CONDITION_VALUES_MAX,
    PATTERNS_MAX,
    WHO_MAX,
    RuleError,
    rule_of,
    verbs_of,
)

GOOD: dict[str, object] = {
    "id": "orders",
    "who": ["role:orders"],
    "can": ["produce", "receive"],
    "on": ["queue:orders.#"],
}


def test_a_rule_with_defaults() -> None:
    rule = rule_of(GOOD, "rule 1")
    assert (rule.effect, rule.when, rule.is_built_in) == ("allow", None, False)
    assert rule.verbs == {"send", "create", "receive"}


def test_the_record_of_a_rule_is_as_it_was_written() -> None:
    record = {
        **GOOD,
        "effect": "deny",
        "when": {"listener": ["amqps"], "from": ["10.0.0.0/8"], "tls": True},
    }
    when = 'listener = ["amqps"], from = ["10.0.0.0/8"], tls = true'
    assert rule_of(record, "rule 1").record() == {**record, "when": when}


SETS = [
    pytest.param(("produce",), {"send", "create"}, id="produce"),
    pytest.param(("consume",), {"receive", "browse"}, id="consume"),
    pytest.param(("view", "consume"), {"view", "receive", "browse"}, id="a verb and a set"),
]


@pytest.mark.parametrize(("can", "expected"), SETS)
def test_sets_of_verbs(can: tuple[str, ...], expected: set[str]) -> None:
    assert verbs_of(can) == expected
    assert verbs_of(can) < verbs_of(("*",))


def many(count: int, text: str) -> list[str]:
    return [f"{text}{number}" for number in range(count)]


WRONG = [
    pytest.param({"id": None}, "rule 1: id = None: a rule has an id", id="no id"),
    pytest.param({"id": "a:b"}, "rule 1: id = 'a:b'", id="a colon in the id"),
    pytest.param({"id": "x" * 65}, "at most 64 letters", id="a long id"),
    pytest.param(
        {"effects": "deny"}, "rule orders: unknown key 'effects'; only id, effect", id="key"
    ),
    pytest.param({"effect": "forbid"}, "effect = 'forbid': only allow or deny", id="effect"),
    pytest.param({"who": "role:a"}, "who must be a list of texts", id="who is no list"),
    pytest.param({"who": []}, "who must be a list of texts that is not empty", id="empty who"),
    pytest.param({"who": [1]}, "who: 1 is no text", id="a number in who"),
    pytest.param({"who": ["ann"]}, "who: 'ann': only user:NAME, role:NAME", id="who without kind"),
    pytest.param({"who": ["user:"]}, "a name has 1 to 255", id="a user without a name"),
    pytest.param({"who": ["user:*"]}, "no wildcard *", id="a wildcard in who"),
    pytest.param(
        {"who": many(WHO_MAX + 1, "user:u")}, f"at most {WHO_MAX} are allowed", id="65 users"
    ),
    pytest.param({"can": ["recieve"]}, "can: 'recieve' is no verb; only send, receive", id="verb"),
    pytest.param(
        {"can": ["subscribe"]}, "can: 'subscribe' is no verb of queue; only send", id="no fit"
    ),
    pytest.param({"on": ["orders.#"]}, "on: 'orders.#': a pattern is KIND:TEXT", id="no kind"),
    pytest.param(
        {"on": ["queue:a", "client-id:x"]},
        "on: 'client-id:x' has none of the verbs of can; only use",
        id="a pattern without verbs",
    ),
    pytest.param(
        {"on": ["temporary:queue"], "can": ["receive"]},
        "on: 'temporary:queue' has none of the verbs of can; only create, send",
        id="a name without verbs",
    ),
    pytest.param(
        {"on": ["topic:t/k"], "can": ["create"]}, "'topic:t/k' has a key, which only send", id="key"
    ),
    pytest.param(
        {"on": many(PATTERNS_MAX + 1, "queue:q")}, f"at most {PATTERNS_MAX} are", id="65 patterns"
    ),
    pytest.param({"when": {}}, "when must be a table with listener, from, tls", id="empty when"),
    pytest.param({"when": {"port": 1}}, "when: unknown key 'port'; only listener", id="condition"),
    pytest.param({"when": {"tls": "yes"}}, "when: tls = 'yes': only true or false", id="tls"),
    pytest.param({"when": {"from": ["x"]}}, "when: from: 'x' is no network", id="no network"),
    pytest.param({"when": {"from": []}}, "from must be a list of texts", id="no networks"),
    pytest.param(
        {"when": {"listener": many(CONDITION_VALUES_MAX + 1, "l")}},
        f"when: listener has 65 values, at most {CONDITION_VALUES_MAX}",
        id="65 listeners",
    ),
]


@pytest.mark.parametrize(("change", "told"), WRONG)
def test_an_invalid_rule(change: dict[str, object], told: str) -> None:
    with pytest.raises(RuleError) as raised:
        rule_of({**GOOD, **change}, "rule 1")
    assert told in str(raised.value)
    assert str(raised.value).startswith("rule ")
