"""`jms-broker acl`: the output of the commands, and their exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from broker.cli.application import application

pytestmark = pytest.mark.requirement("SEC-12")

FILE = """
[roles]
orders = ["svc"]
[[rule]]
id = "orders"
who = ["role:orders"]
can = ["produce"]
on = ["queue:orders.#", "topic:orders.#"]
when = {tls = true}
[[rule]]
id = "no-pay"
effect = "deny"
who = ["authenticated"]
can = ["*"]
on = ["topic:pay"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "acl.toml"
    found.write_text(FILE)
    return found


def acl(*arguments: str | Path) -> Result:
    return CliRunner().invoke(application, ["acl", *map(str, arguments)])


def test_a_sound_file(file: Path) -> None:
    done = acl("check", file)
    assert (done.exit_code, done.stdout) == (0, f"{file}: sound: rules 2, roles 1\n")
    assert acl("check", file, "--json").stdout == ""


def test_problems_of_a_file(file: Path) -> None:
    file.write_text(FILE.replace("role:orders", "role:order"))
    done = acl("check", file)
    assert done.exit_code == 1
    header, *problems = done.stdout.splitlines()
    assert header == "rule\tproblem"
    assert problems[0].startswith("orders\tunknown role order: it is not in [roles]")
    assert problems[1] == "\trole orders: no rule names it"
    first = json.loads(acl("check", file, "--json").stdout.splitlines()[0])
    assert first["rule"] == "orders"


@pytest.mark.parametrize("command", ["check", "show", "explain"])
def test_an_invalid_file_is_told_by_every_command(command: str, file: Path) -> None:
    file.write_text(FILE.replace("produce", "sent"))
    rest = ["queue:q", "--verb", "send"] if command == "explain" else []
    done = acl(command, file, *rest)
    assert (done.exit_code, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"jms-broker: {file}: rule orders: can: 'sent' is no verb; only send")


def test_rules_are_shown_by_id(file: Path) -> None:
    header, *rules = acl("show", file).stdout.splitlines()
    assert header.split("\t") == ["id", "effect", "who", "can", "on", "when"]
    assert [line.split("\t")[0] for line in rules] == ["no-pay", "orders"]
    assert rules[1].endswith("\ttls = true")
    shown = json.loads(acl("show", file, "--json").stdout.splitlines()[0])
    assert shown == {
        "id": "no-pay",
        "effect": "deny",
        "who": ["authenticated"],
        "can": ["*"],
        "on": ["topic:pay"],
        "when": "",
    }
    assert "built-in:admin-everything\tallow" in acl("show", file, "--built-in").stdout


def test_a_decision_is_explained(file: Path) -> None:
    done = acl("explain", file, "--user", "svc", "--verb", "send", "--tls", "queue:orders.new")
    assert (done.exit_code, done.stdout.splitlines()) == (
        0,
        [
            "decision     allowed",
            "canonical    queue:orders.new",
            "rule         orders",
            "because      cover",
            "witness      orders.new",
            "near misses",
        ],
    )


def test_a_refusal_is_explained(file: Path) -> None:
    arguments = ("explain", file, "--user", "svc", "--verb", "send", "queue:orders.new")
    done = acl(*arguments)
    assert done.exit_code == 0
    assert "near misses  orders (when), built-in:admin-everything (who)" in done.stdout
    told = json.loads(acl(*arguments, "--json").stdout)
    assert told["near_misses"][0] == {"rule": "orders", "failed": "when"}


SPELLINGS = [
    pytest.param("queue:/durable/queue/a", "send", "queue:a", id="a class"),
    pytest.param("queue:queue://a/b", "send", "queue:a/b", id="a prefix"),
    pytest.param("topic:/topic/transient/a/k", "send", "topic:a/k", id="a class and a key"),
    pytest.param("topic:topic://a.*/#", "subscribe", "topic:a.*/#", id="a pattern"),
    pytest.param("queue:$tmp/queue/x", "send", "temporary:queue", id="a temporary node"),
    pytest.param("queue:$management", "view", "management:*", id="the broker's own node"),
    pytest.param("subscription:c/n", "use", "subscription:c/n", id="a subscription"),
]


@pytest.mark.parametrize(("text", "verb", "expected"), SPELLINGS)
def test_a_name_is_spelled_as_in_an_address(
    file: Path, text: str, verb: str, expected: str
) -> None:
    told = json.loads(acl("explain", file, "--verb", verb, "--json", text).stdout)
    assert told["canonical"] == expected


IDENTITIES = [
    pytest.param(["--role", "admin", "--user", "root"], True, id="a role"),
    pytest.param(["--user", "root"], False, id="no role"),
    pytest.param(["--role", "application"], True, id="a role without a login"),
]


@pytest.mark.parametrize(("arguments", "expected"), IDENTITIES)
def test_an_identity_is_given(file: Path, arguments: list[str], expected: bool) -> None:
    told = json.loads(
        acl("explain", file, "--verb", "send", "--json", *arguments, "queue:q").stdout
    )
    assert (told["decision"] == "allowed") is expected


USAGE = [
    pytest.param(["queue:q", "--verb", "eat"], "queue has no verb 'eat', only: send", id="verb"),
    pytest.param(["q", "--verb", "send"], "'q' is no resource: write KIND:NAME", id="no kind"),
    pytest.param(["queue:/queue/tmp/", "--verb", "send"], "lacks a name", id="no name"),
    pytest.param(["queue:topic://q", "--verb", "send"], "is a topic", id="two kinds"),
]


@pytest.mark.parametrize(("arguments", "told"), USAGE)
def test_wrong_usage(file: Path, arguments: list[str], told: str) -> None:
    done = acl("explain", file, *arguments)
    assert done.exit_code == 2
    assert told in done.stderr


LIMITS = """
[[limit]]
who = ["role:orders"]
connections = 50
links = 7
"""


@pytest.mark.requirement("SEC-05")
def test_limits_are_checked_shown_and_explained(file: Path) -> None:
    file.write_text(FILE + LIMITS)
    assert acl("check", file).stdout == f"{file}: sound: rules 2, roles 1, limits 1\n"
    line = acl("show", file).stdout.splitlines()[-1]
    assert line.split("\t")[:4] == [
        "limit 1",
        "limit",
        '["role:orders"]',
        '["connections = 50", "links = 7"]',
    ]
    arguments = ("explain", file, "--verb", "send", "queue:orders.new", "--user")
    assert acl(*arguments, "svc").stdout.splitlines()[-1] == (
        "limits       connections = 50, links = 7"
    )
    assert "limits" not in acl(*arguments, "other").stdout


CASES = """
[[case]]
user = "svc"
verb = "send"
resource = "queue:queue://orders.new"
tls = true
expect = "allow"
rule = "orders"
[[case]]
name = "no payroll"
user = "svc"
roles = ["admin"]
verb = "send"
resource = "topic:pay"
expect = "deny"
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    found = tmp_path / "cases.toml"
    found.write_text(CASES)
    return found


def test_decisions_that_are_as_expected(file: Path, cases: Path) -> None:
    done = acl("test", file, cases)
    assert (done.exit_code, done.stdout) == (0, f"{cases}: as expected: cases 2\n")
    assert acl("test", file, cases, "--json").stdout == ""


def test_decisions_that_differ(file: Path, cases: Path) -> None:
    file.write_text(FILE.replace('"deny"', '"allow"').replace("tls = true", "tls = false"))
    done = acl("test", file, cases)
    assert (done.exit_code, done.stdout.splitlines()) == (
        1,
        [
            "case\tuser\tverb\tresource\texpected\tfound",
            "case 1\tsvc\tsend\tqueue:orders.new\tallow (orders)\tdeny (default)",
            "no payroll\tsvc\tsend\ttopic:pay\tdeny\tallow (no-pay)",
        ],
    )
    first = json.loads(acl("test", file, cases, "--json").stdout.splitlines()[0])
    assert first["case"] == "case 1"


def test_wrong_cases(file: Path, cases: Path) -> None:
    cases.write_text(CASES.replace("topic:pay", "pay"))
    done = acl("test", file, cases)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{cases}: no payroll: 'pay' is no resource" in done.stderr
    cases.write_text("")
    assert acl("test", file, cases).exit_code == 2


PLACES = [
    pytest.param(["check"], "give a file of rules, or a running broker by --url", id="neither"),
    pytest.param(
        ["check", "FILE", "--url", "amqp://h"], "--url names a broker: give one", id="both"
    ),
    pytest.param(
        ["explain", "a", "b", "c", "--verb", "send"],
        "give a file of rules and a resource, or a resource and --url",
        id="two files",
    ),
    pytest.param(["check", "--url", "tcp://h"], "tcp:// is not AMQP", id="another protocol"),
]


@pytest.mark.parametrize(("arguments", "told"), PLACES)
def test_a_file_or_a_broker(file: Path, arguments: list[str], told: str) -> None:
    done = acl(*(file if each == "FILE" else each for each in arguments))
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
