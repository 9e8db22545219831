"""Access rules by management: decisions with reasons, problems, and the rules in force."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from pathlib import Path

import pytest

from broker.management.management import Management
from broker.management.users import LoginRules
from broker.security.access import AccessRules
from broker.security.rules_file import parse_rules
from broker.security.throttle import LoginThrottle
from broker.security.users import Users
from tests.support.broker import Broker
from tests.support.frames import Transfer
from tests.support.management import Manager, Reply, read_reply, request

RULES = """
[roles]
orders = ["svc"]
[[rule]]
id = "orders"
who = ["role:orders", "role:packing"]
can = ["produce"]
on = ["queue:orders.#"]
when = {listener = ["internet"]}
[[rule]]
id = "looking"
who = ["user:looker"]
can = ["view"]
on = ["management:acl"]
[[limit]]
who = ["role:orders"]
connections = 5
"""


def rules(text: str = RULES) -> AccessRules:
    return parse_rules(text.encode(), "acl.toml")


class Setting:
    """A broker with RULES and users, of which `packer` has the role packing, and `idler` none."""

    def __init__(self, folder: Path, user: str = "looker") -> None:
        users = Users(folder / "users", first=("first", "one"))
        users.add("packer", "sesame", roles=["packing"])
        users.add("idler", "sesame", roles=["idling"])
        self.broker = Broker(access=rules())
        self._beside: list[Coroutine[None, None, None]] = []
        container = self.broker.container
        container.service = Management(
            container,
            None,
            self._beside.append,
            accounts=lambda: LoginRules(users, anonymous=False, throttle=LoginThrottle()),
            listeners=lambda: ["amqp", "internet"],
        )
        self.manager = Manager(self.broker, user=user)

    async def ask(self, operation: str, name: str | None = None, /, **arguments: object) -> Reply:
        return await self.told(request(operation, "acl", name, body=arguments))

    async def told(self, payload: bytes) -> Reply:
        self.manager.send(payload)
        while self._beside:
            await self._beside.pop(0)
        bodies = self.manager.client.bodies()
        (found,) = [body for body in bodies if isinstance(body, Transfer)]
        return read_reply(found.payload)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path)


SENDING = {"verb": "send", "resource": "queue:queue://orders.new", "listener": "internet"}

DECISIONS: list[object] = [
    pytest.param({"user": "svc"}, "allowed", "orders", id="a role of the rules file"),
    pytest.param({"user": "packer"}, "allowed", "orders", id="a role of the users file"),
    pytest.param({"user": "x", "roles": ["packing"]}, "allowed", "orders", id="a role given"),
    pytest.param({"user": "idler"}, "refused", "", id="another role"),
    pytest.param({"user": "first"}, "allowed", "built-in:admin-everything", id="the first user"),
    pytest.param({}, "refused", "", id="no user"),
    pytest.param({"user": "svc", "listener": "amqp"}, "refused", "", id="another listener"),
]


@pytest.mark.parametrize(("asked", "decision", "rule"), DECISIONS)
async def test_a_decision_is_that_of_the_rules_in_force(
    setting: Setting, asked: Mapping[str, object], decision: str, rule: str
) -> None:
    told = (await setting.ask("EXPLAIN", **{**SENDING, **asked})).map
    assert (told["decision"], told["rule"]) == (decision, rule)
    assert told["canonical"] == "queue:orders.new"


async def test_a_refusal_has_its_reasons(setting: Setting) -> None:
    told = (await setting.ask("EXPLAIN", **{**SENDING, "user": "svc", "listener": "amqp"})).map
    assert told["because"] == "default"
    assert isinstance(told["near_misses"], list)
    assert told["near_misses"][0] == {"rule": "orders", "failed": "when"}
    assert told["limits"] == "connections = 5"


async def test_new_rules_are_asked_at_once(setting: Setting) -> None:
    asked = {**SENDING, "user": "svc"}
    assert (await setting.ask("EXPLAIN", **asked)).map["decision"] == "allowed"
    setting.broker.container.adopt_access(rules(RULES.replace("produce", "consume")))
    assert (await setting.ask("EXPLAIN", **asked)).map["decision"] == "refused"


async def test_problems_of_the_rules(setting: Setting) -> None:
    sound = (await setting.ask("CHECK")).map
    assert sound == {"problems": [], "rules": 2, "roles": 1, "limits": 1}
    changed = RULES.replace('"internet"', '"wan"').replace("role:packing", "role:pack")
    setting.broker.container.adopt_access(rules(changed))
    problems = (await setting.ask("CHECK")).map["problems"]
    assert isinstance(problems, list)
    texts = [f"{each['rule']}: {each['problem']}" for each in problems]
    assert any(text.startswith("orders: unknown role pack:") for text in texts)
    assert "orders: never decides: there is no listener wan" in texts


async def test_rules_are_listed(setting: Setting) -> None:
    rows = setting.manager.query("acl", filter="[lo]*").rows
    assert [row["name"] for row in rows] == ["limit 1", "looking", "orders"]
    assert rows[2]["when"] == 'listener = ["internet"]'
    assert (await setting.ask("READ", "orders")).map["can"] == ["produce"]
    assert (await setting.ask("READ", "built-in:admin-everything")).map["built_in"] is True
    assert (await setting.ask("READ", "others")).status == 404


@pytest.mark.parametrize("operation", ["EXPLAIN", "CHECK", "READ"])
async def test_the_right_to_view_is_needed(tmp_path: Path, operation: str) -> None:
    refused = await Setting(tmp_path, user="svc").ask(operation, "orders", **SENDING)
    assert refused.status == 403
    assert refused.description == "not allowed to view management:acl (no rule allows it)"


WRONG = [
    pytest.param({"resource": "orders"}, "'orders' is no resource: write KIND:NAME", id="no kind"),
    pytest.param({"verb": "eat"}, "queue has no verb 'eat'", id="no verb"),
    pytest.param({"verb": None}, "verb must be a string", id="verb left out"),
    pytest.param({"password": "x"}, "EXPLAIN knows no argument password", id="unknown argument"),
    pytest.param({"roles": "r"}, "roles must be a list of at most 64 strings", id="roles"),
]


@pytest.mark.parametrize(("asked", "expected"), WRONG)
async def test_wrong_questions(
    setting: Setting, asked: Mapping[str, object], expected: str
) -> None:
    refused = await setting.ask("EXPLAIN", **{**SENDING, **asked})
    assert refused.status == 400
    assert expected in refused.description
