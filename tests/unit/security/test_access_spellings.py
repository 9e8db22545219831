"""No spelling of a name, user or client id gives more rights: attack classes Z3 and Z4."""

from __future__ import annotations

import random
from typing import Final

import pytest

from broker.cli.rules_source import canonical
from broker.security.access import AccessRules
from broker.security.identity import Identity
from broker.security.resources import Resource
from broker.security.rules import rule_of

CASES: Final = 300

RULES: Final = AccessRules(
    [
        rule_of(
            {
                "id": "pay",
                "effect": "deny",
                "who": ["authenticated"],
                "can": ["*"],
                "on": ["queue:hr.pay.#", "topic:hr.pay.#", "topic:news/secret.#"],
            },
            "rule",
        ),
        rule_of(
            {
                "id": "own",
                "who": ["authenticated"],
                "can": ["send", "subscribe", "use", "share"],
                "on": [
                    *("queue:in.{user}.#", "topic:in.{user}.#", "topic:out.{client_id}/{user}.#"),
                    *("subscription:{client_id}/{user}-*", "global-subscription:{user}-*"),
                ],
            },
            "rule",
        ),
    ]
)
APPLICATION: Final = Identity("ann", roles=frozenset({"application"}))

BEGINNINGS: Final = (
    *("", "/{kind}/durable/", "/durable/{kind}/", "/{kind}/transient/", "/transient/{kind}/"),
    *("/{kind}/tmp/", "/tmp/{kind}/", "{kind}://", "{kind}:///{kind}/durable/"),
)
"""Beginnings by which an address can name a node (DST-10, prefixes of clients)."""

NODES: Final = ["hr.pay", "hr.pay.june", "hr.payroll", "news", "$own", "in.ann.x", "in.bob.x"]


@pytest.mark.attack("Z3")
@pytest.mark.parametrize("kind", ["queue", "topic"])
@pytest.mark.parametrize("beginning", BEGINNINGS)
@pytest.mark.parametrize("name", NODES)
def test_all_spellings_of_a_node_have_the_same_rights(kind: str, beginning: str, name: str) -> None:
    """Attack class Z3. The class of an address is no part of the name that rules are about."""
    address = beginning.format(kind=kind) + name
    plain = RULES.decide(APPLICATION, "send", Resource(kind, name))
    spelled = RULES.decide(APPLICATION, "send", canonical(f"{kind}:{address}", "send"))
    assert (spelled.allowed, spelled.rule) == (plain.allowed, plain.rule)


KEYS = [
    pytest.param("topic:news/secret", id="the key"),
    pytest.param("topic:news/secret.a", id="a longer key"),
    pytest.param("topic:news/#", id="all keys"),
    pytest.param("topic:news/*", id="a key of one word"),
    pytest.param("topic:news", id="no key"),
    pytest.param("topic:news/", id="an empty key"),
    pytest.param("topic:*/secret", id="by a wildcard"),
    pytest.param("topic:#", id="by all topics"),
    pytest.param("topic:#.news/#.secret.#", id="by wildcards for no word"),
    pytest.param("topic:topic:///durable/topic/news/secret", id="with prefix and class"),
]


@pytest.mark.attack("Z3")
@pytest.mark.parametrize("text", KEYS)
def test_no_spelling_of_a_key_avoids_a_deny_rule(text: str) -> None:
    assert RULES.decide(APPLICATION, "subscribe", canonical(text, "subscribe")).rule == "pay"


ALPHABET: Final = "ab.*#/{}$-"


def word(chooser: random.Random) -> str:
    return "".join(chooser.choices(ALPHABET, k=chooser.randint(1, 4)))


def own_words(name: str, begins: str, value: str) -> bool:
    """Return whether `name` is `begins` and `value`, literally, with or without more words."""
    return name == begins + value or name.startswith(f"{begins}{value}.")


@pytest.mark.attack("Z4")
def test_no_user_and_no_client_id_widens_a_pattern() -> None:
    """Attack class Z4: names of users and client ids are drawn from wildcards and separators."""
    chooser = random.Random(11)
    allowed = 0
    for _ in range(CASES):
        user, client_id, other = word(chooser), word(chooser), word(chooser)
        ann = Identity(user, roles=frozenset())
        for victim in (user, other, f"{user}.{other}", f"{other}.{user}"):
            for kind in ("queue", "topic"):
                name = f"in.{victim}"
                decision = RULES.decide(ann, "send", Resource(kind, name), client_id=client_id)
                assert not decision.allowed or own_words(name, "in.", user), (user, name)
                allowed += decision.allowed
            key = Resource("topic", f"out.{victim}", other)
            decision = RULES.decide(ann, "send", key, client_id=client_id)
            is_own = key.name == f"out.{client_id}" and own_words(other, "", user)
            assert not decision.allowed or is_own, (user, client_id, key.text())
    assert allowed > CASES


@pytest.mark.attack("Z4")
def test_no_client_id_reaches_the_subscriptions_of_another() -> None:
    """Attack class Z4, and Z3: the border between client id and name is no character."""
    chooser = random.Random(12)
    allowed = 0
    for _ in range(CASES):
        user, client_id, other = word(chooser), word(chooser), word(chooser)
        ann = Identity(user, roles=frozenset())
        for holder in (client_id, other, f"{client_id}/{user}-x", f"{other}/{client_id}"):
            for name in (f"{user}-x", f"{other}-x", other):
                resource = Resource("subscription", holder, name)
                decision = RULES.decide(ann, "use", resource, client_id=client_id)
                is_own = holder == client_id and name.startswith(f"{user}-")
                assert decision.allowed is is_own, (user, client_id, resource.text())
                allowed += decision.allowed
                shared = RULES.decide(ann, "share", Resource("global-subscription", name))
                assert shared.allowed is name.startswith(f"{user}-")
    assert allowed > CASES / 2


@pytest.mark.attack("Z4")
def test_wildcards_of_a_subscriber_are_compared_with_literal_values() -> None:
    """Attack class Z4: a subscriber's wildcard is not the wildcard in the name of a user."""
    chooser = random.Random(13)
    for _ in range(CASES):
        user = word(chooser)
        ann = Identity(user, roles=frozenset())
        for pattern in ("in.#", "in.*", "in.*.#", "#", "in.*.*"):
            decision = RULES.decide(ann, "subscribe", Resource("topic", pattern, is_pattern=True))
            assert not decision.allowed, (user, pattern)
