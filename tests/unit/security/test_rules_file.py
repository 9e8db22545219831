"""The file of access rules: each error names the file, the rule, the key, and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from broker.security.identity import Identity
from broker.security.limits import LIMITS_MAX
from broker.security.resources import Resource
from broker.security.rules import RULES_MAX
from broker.security.rules_file import (
    FILE_BYTES_MAX,
    ROLES_MAX,
    USERS_PER_ROLE_MAX,
    RulesFileError,
    parse_rules,
    read_rules,
)

FILE: Final = """
[roles]
orders-app = ["svc-orders", "cert:svc-orders"]
[[rule]]
id = "orders-app"
effect = "allow"
who  = ["role:orders-app"]
can  = ["produce", "receive", "browse"]
on   = ["queue:orders.#", "temporary:*"]
when = {listener = ["amqps"], from = ["10.0.0.0/8"], tls = true}
[[rule]]
id = "billing"
who = ["role:billing"]
can = ["subscribe", "use", "create", "end"]
on  = [
  "topic:orders.*.created", "subscription:{client_id}/billing", "global-subscription:billing-*",
]
[[rule]]
id = "no-payroll"
effect = "deny"
who = ["authenticated"]
can = ["*"]
on  = ["topic:hr.payroll.#", "queue:hr.payroll.#"]
"""
RULE: Final = '[[rule]]\nid = "a"\nwho = ["anonymous"]\ncan = ["send"]\non = ["queue:q"]\n'


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "acl.toml"
    file.write_text(FILE)
    rules = read_rules(file)
    own = [rule for rule in rules.rules if not rule.is_built_in]
    assert [rule.id for rule in own] == ["billing", "no-payroll", "orders-app"]
    assert rules.roles == {"orders-app": {"svc-orders", "cert:svc-orders"}}
    identity = Identity("ann", roles=frozenset({"billing"}))
    resource = Resource("topic", "orders.*.created", is_pattern=True)
    assert rules.decide(identity, "subscribe", resource).rule == "billing"


def test_limits_are_read_in_the_order_of_the_file() -> None:
    text = '[[limit]]\nwho = ["authenticated"]\nlinks = 7\n'
    limits = parse_rules((text + FILE + text.replace("7", "8")).encode(), "acl.toml").limits
    assert [(limit.name(), limit.amounts) for limit in limits] == [
        ("limit 1", {"links": 7}),
        ("limit 2", {"links": 8}),
    ]


def test_a_name_of_all_words_is_no_long_key() -> None:
    name = ".".join(["w"] * 32)
    rules = parse_rules(RULE.replace("queue:q", f"topic:{name}/{name}").encode(), "acl.toml")
    assert rules.rule("a") is not None


@pytest.mark.parametrize("text", ["", "# nothing\n", "[roles]\n"])
def test_a_file_may_have_no_rules(text: str) -> None:
    assert all(rule.is_built_in for rule in parse_rules(text.encode(), "acl.toml").rules)


def roles(count: int, users: int) -> str:
    names = ", ".join(f'"u{number}"' for number in range(users))
    return "[roles]\n" + "".join(f"r{number} = [{names}]\n" for number in range(count))


WRONG = [
    pytest.param("rule = ", "acl.toml: no TOML: ", id="no TOML"),
    pytest.param("a = " + "[" * 5000, "acl.toml: no TOML: ", id="nested too deeply"),
    pytest.param("a = " + "1" * 5000, "acl.toml: no TOML: ", id="a number of 5,000 digits"),
    pytest.param("a." * 32_000 + "b = 1", "a key with more than 40 parts", id="a long key"),
    pytest.param("""'a' . "b\\"" . """ * 20 + "c = 1", "than 40 parts", id="a long quoted key"),
    pytest.param("[limits]\n", "unknown key 'limits'; only the tables [roles]", id="a table"),
    pytest.param("[limit]\n", "each limit is a table that begins with [[limit]]", id="one limit"),
    pytest.param("[[limit]]\n", "acl.toml: limit 1: who must be a list", id="a limit of nobody"),
    pytest.param(
        "limit = [" + "{}," * (LIMITS_MAX + 1) + "]", f"at most {LIMITS_MAX} are", id="limits"
    ),
    pytest.param("[rule]\n", "each rule is a table that begins with [[rule]]", id="one rule"),
    pytest.param("rule = [1]\n", "rule 1: a rule is a table", id="no table"),
    pytest.param("[[rule]]\n", "acl.toml: rule 1: id = None", id="no id"),
    pytest.param(RULE + RULE, "acl.toml: rule a: the id is given twice", id="an id twice"),
    pytest.param(RULE + "tls = true", "rule a: unknown key 'tls'; only id, effect", id="a key"),
    pytest.param(RULE.replace("send", "sent"), "rule a: can: 'sent' is no verb; only", id="verb"),
    pytest.param("roles = 1", "roles: a table of roles", id="roles are no table"),
    pytest.param("[roles]\nr = 'ann'", "roles: r must be a list of texts", id="a role is no list"),
    pytest.param("[roles]\n'*' = ['a']", "roles: '*' is no role: a role has", id="a role's name"),
    pytest.param("[roles]\nr = ['a*']", "roles: r: 'a*': a name has", id="a wildcard as user"),
    pytest.param(roles(ROLES_MAX + 1, 1), f"at most {ROLES_MAX} are", id="too many roles"),
    pytest.param(
        roles(1, USERS_PER_ROLE_MAX + 1), f"at most {USERS_PER_ROLE_MAX} are", id="too many users"
    ),
    pytest.param(
        "rule = [" + "{}," * (RULES_MAX + 1) + "]", f"at most {RULES_MAX} are", id="rules"
    ),
    pytest.param("#" * (FILE_BYTES_MAX + 1), f"more than {FILE_BYTES_MAX} bytes", id="too large"),
]


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_an_invalid_file(text: str, told: str) -> None:
    with pytest.raises(RulesFileError) as raised:
        parse_rules(text.encode(), "acl.toml")
    assert told in str(raised.value)
    assert str(raised.value).startswith("acl.toml: ")


def test_a_file_that_is_not_utf_8() -> None:
    with pytest.raises(RulesFileError, match=r"acl\.toml: not UTF-8"):
        parse_rules(b"\xff", "acl.toml")


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(RulesFileError, match=r"none\.toml: there is no such file"):
        read_rules(tmp_path / "none.toml")
