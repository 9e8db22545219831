"""The audit of a running broker: every event once, by commands as they are typed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.security.users import Users
from tests.interop.broker_process import BrokerProcess
from tests.interop.typed import Client

pytestmark = pytest.mark.requirement("SEC-08")

SETTINGS = """\
store = "sqlite:///store.db"
users_file = "users"
acl_file = "acl.toml"
credit = 100
"""
RULES = """\
[roles]
shop = ["bob"]
[[rule]]
id = "shop"
who = ["role:shop"]
can = ["*"]
on = ["connection:*", "queue:shop.#", "topic:shop.#", "subscription:*", "client-id:*"]
"""
STRICTER = RULES.replace("subscription:*", "subscription:x/*")
WRONG = "[[rule]]\nid = 'a'\nwho = ['nobody']\n"


class Audited:
    """A broker with an administrator `ada` and a user `bob` with few rights."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        users = Users(folder / "users")
        users.add("ada", "engine", administrator=True)
        users.add("bob", "tulip", roles=["shop"])
        (folder / "acl.toml").write_text(RULES)
        self.process = BrokerProcess(folder, settings=SETTINGS)
        place = self.process.url.removeprefix("amqp://")
        self.ada = Client(f"amqp://ada:engine@{place}")
        self.bob = Client(f"amqp://bob:tulip@{place}")
        self.stranger = Client(f"amqp://eve:wrong@{place}")

    def stop(self) -> list[dict[str, object]]:
        """Stop the broker, and return all its records."""
        assert self.process.stop() == 0
        return self.records()

    def records(self) -> list[dict[str, object]]:
        printed = self.ada.prints(
            "audit", "show", "--json", "--directory", str(self.folder / "store.db.audit")
        )
        return [json.loads(line) for line in printed.splitlines()]

    def verified(self) -> bool:
        done = self.ada.run("audit", "verify", "--directory", str(self.folder / "store.db.audit"))
        return done.returncode == 0


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Audited]:
    made = Audited(tmp_path)
    yield made
    made.process.stop()


def told(records: list[dict[str, object]], *actions: str) -> list[tuple[object, ...]]:
    """Return actor, via, resource and result of the records with one of these actions."""
    return [
        (record["actor"], record["via"], record["resource"], record["result"])
        for record in records
        if record["action"] in actions
    ]


def test_logins_and_missing_rights(audited: Audited) -> None:
    audited.ada.prints("node", "list")
    assert audited.stranger.run("node", "list").returncode != 0
    assert audited.stranger.run("node", "list").returncode != 0
    for _ in range(3):
        audited.bob.run("send", "secret", "x")
    assert audited.bob.run("node", "list").returncode == 4
    records = audited.stop()
    assert told(records, "auth.success") == [
        ("ada", "amqp", "user:ada", "done"),
        ("bob", "amqp", "user:bob", "done"),
        ("bob", "amqp", "user:bob", "done"),
    ]
    assert told(records, "auth.failure")[0] == ("", "amqp", "connection:amqp", "failed")
    first, management, further = [
        record for record in records if record["action"] == "access.denied"
    ]
    assert (first["resource"], first["after"]) == ("queue:secret", {"verb": "send"})
    assert (management["resource"], management["after"]) == ("management:queues", {"verb": "view"})
    assert further["after"] == {"verb": "send", "count": 2, "within_s": 60}
    assert audited.verified()


def test_changes_of_nodes_messages_and_users(audited: Audited) -> None:
    ada = audited.ada
    audited.bob.prints("send", "shop.in", "x", "y")
    ada.prints("node", "create", "declared")
    ada.prints("message", "list", "shop.in")
    ada.prints("message", "move", "shop.in", "declared", "--all")
    ada.prints("node", "purge", "declared")
    ada.prints("node", "delete", "declared")
    copy = audited.folder / "copy.db"
    ada.prints("backup", str(copy))
    ada.prints("user", "add", "eve", "--password-stdin", "--url", ada.url, typed=b"rose\n")
    ada.prints("user", "disable", "eve", "--url", ada.url)
    ada.prints("user", "remove", "eve", "--url", ada.url)
    records = audited.stop()
    changes = [record["action"] for record in records if record["actor"] == "ada"]
    assert changes == [
        *("auth.success", "node.created", "message.browsed", "message.moved", "node.purged"),
        *("node.deleted", "backup.started", "user.added", "user.changed", "user.removed"),
        "auth.success",
    ]
    assert told(records, "node.created") == [
        ("bob", "amqp", "queue:shop.in", "done"),
        ("ada", "amqp", "queue:declared", "done"),
    ]
    assert told(records, "backup.done") == [("", "system", f"backup:{copy}", "done")]
    assert audited.verified()


@pytest.mark.requirement("SEC-12")
def test_reloads_users_and_rules(audited: Audited) -> None:
    ada = audited.ada
    rules = audited.folder / "acl.toml"
    assert ada.prints("reload") == b"no setting has changed\n"
    rules.write_text(STRICTER)
    config = audited.folder / "broker.toml"
    config.write_text(f"{SETTINGS}hold_ms = 3\n".replace("credit = 100", "credit = 200"))
    printed = b"setting\teffect\nacl_file\tapplied\ncredit\tapplied\nhold_ms\tneeds restart\n"
    assert ada.prints("reload", "--dry-run") == printed
    assert ada.prints("reload") == printed
    rules.write_text(WRONG)
    failed = ada.run("reload")
    assert failed.returncode == 1
    assert b"acl.toml" in failed.stderr
    rules.write_text(STRICTER)
    config.write_text(f"{SETTINGS}port = -1\n".replace("credit = 100", "credit = 0"))
    assert ada.run("reload", "--dry-run").returncode == 1
    assert ada.run("reload").returncode == 1
    records = audited.stop()
    reloads = ("config.reloaded", "rules.reloaded", "rules.failed", "config.failed")
    assert [record["action"] for record in records if record["action"] in reloads] == [
        *("config.reloaded", "config.reloaded", "rules.reloaded", "rules.failed"),
        "config.failed",
    ]
    (changed,) = [record for record in records if record["action"] == "rules.reloaded"]
    assert (changed["actor"], changed["request_id"] is None) == ("ada", False)
    assert changed["before"] != changed["after"]


def test_a_broker_that_is_killed_continues_its_chain(audited: Audited) -> None:
    audited.ada.prints("node", "create", "before")
    while not told(audited.records(), "node.created"):
        pass
    os.kill(audited.process.pid, signal.SIGKILL)
    audited.process.wait()
    (file,) = (audited.folder / "store.db.audit").glob("*.jsonl")
    with file.open("ab") as end:
        end.write(b'{"at":"20')
    audited.process = BrokerProcess(audited.folder, settings=SETTINGS)
    records = audited.stop()
    actions = [record["action"] for record in records]
    assert actions.count("broker.started") == 2
    assert "audit.repaired" in actions
    assert "was not written to its end" in audited.process.log.read_text()
    assert audited.verified()


def test_a_broker_serves_without_its_audit(tmp_path: Path) -> None:
    (tmp_path / "store.db.audit").write_text("in the way")
    audited = Audited(tmp_path)
    audited.bob.prints("send", "shop.in", "x")
    assert audited.bob.prints("receive", "shop.in", "--count", "1") == b"x\n"
    assert audited.process.stop() == 0
    assert "audit records cannot be written" in audited.process.log.read_text()


def test_the_level_of_the_log_is_changed_until_a_reload(audited: Audited) -> None:
    ada = audited.ada
    assert ada.prints("log-level") == b"info\n"
    assert ada.prints("log-level", "warning") == b"warning\n"
    assert json.loads(ada.prints("log-level", "--json")) == {"level": "warning"}
    unknown = ada.run("log-level", "loud")
    assert (unknown.returncode, b"there are debug, info" in unknown.stderr) == (1, True)
    assert ada.prints("reload") == b"no setting has changed\n"
    assert ada.prints("log-level") == b"info\n"
    changes = [each for each in audited.stop() if each["action"] == "log.level-changed"]
    assert [each["result"] for each in changes] == ["done", "failed"]
