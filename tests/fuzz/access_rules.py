"""Entry point for the file of access rules: its text, and requests that are compared with it.

Any text is either refused with an error that names the file, or gives rules that decide, explain
and are checked within the limits of every input.
"""

from __future__ import annotations

from typing import Final

from broker.security.access import AccessRules
from broker.security.identity import Identity
from broker.security.resources import Resource
from broker.security.rules import rule_of
from broker.security.rules_file import RulesFileError, parse_rules

NAME: Final = "acl.toml"

WHO: Final = (
    Identity("", roles=frozenset()),
    Identity("#", roles=frozenset({"a", "admin"}), mechanism="EXTERNAL"),
)
REQUESTS: Final = (
    ("send", Resource("queue", "a.b")),
    ("subscribe", Resource("topic", "#.a.*.#", "a.#", is_pattern=True)),
    ("send", Resource("topic", "a")),
    ("use", Resource("subscription", "c/1", "*")),
    ("view", Resource("management", "*")),
)

RULE: Final = """
[roles]
a = ["ann", "cert:bob"]
[[rule]]
id = "one"
effect = "deny"
who = ["role:a", "user:ann", "authenticated", "anonymous"]
can = ["produce", "consume", "subscribe", "use", "view", "*"]
on = ["queue:a.*.#", "topic:#.{user}/k.#", "subscription:{client_id}/a*b", "management:*"]
when = {listener = ["amqps"], from = ["10.0.0.0/8", "::/0"], tls = true}
"""
PLAIN_RULES: Final = "".join(
    f'[[rule]]\nid = "{number}"\nwho = ["role:a"]\ncan = ["*"]\non = ["{text}"]\n'
    for number, text in enumerate(
        ("queue:#", "topic:a", "topic:a.#/k", "client-id:a*", "user-id:{user}")
    )
)


def seeds() -> list[bytes]:
    return [text.encode() for text in ("", RULE, PLAIN_RULES, RULE + PLAIN_RULES)]


def extremes() -> list[bytes]:
    """Return files that are slow to read unless limits hold."""
    return [
        text.encode()
        for text in (
            "a." * 30_000 + "b=1",
            "a={" * 20_000,
            "a = " + "[" * 60_000,
            "[[rule]]\n" * 7000,
        )
    ]


def access_rules(data: bytes) -> None:
    """Read a file of rules; if it is valid, decide and explain requests, and check it."""
    rules = _read(data)
    if isinstance(rules, str):
        assert rules.startswith(f"{NAME}: ")
        return
    for identity in WHO:
        for verb, resource in REQUESTS:
            _agree(rules, identity, verb, resource=resource)
    rules.check()
    for rule in rules.rules:
        if not rule.is_built_in and rule.when is None:
            record = {key: value for key, value in rule.record().items() if key != "when"}
            assert rule_of(record, "again").record() == rule.record()


def _read(data: bytes) -> AccessRules | str:
    """Return the rules of a file, or why it is refused."""
    try:
        return parse_rules(data, NAME)
    except RulesFileError as error:
        return str(error)


def _agree(rules: AccessRules, identity: Identity, verb: str, *, resource: Resource) -> None:
    decision = rules.decide(identity, verb, resource, client_id="c/1")
    explanation = rules.explain(identity, verb, resource, client_id="c/1")
    assert (explanation.decision == "allowed") is decision.allowed
    assert explanation.rule == decision.rule
