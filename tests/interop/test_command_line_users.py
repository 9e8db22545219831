"""`jms-broker user --url` as typed: a running broker changes its own users file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interop.broker_process import BrokerProcess
from tests.interop.typed import Client

pytestmark = pytest.mark.requirement("SEC-12")

FIRST = {"JMS_BROKER_USER": "first", "JMS_BROKER_PASSWORD": "one"}


def at(broker: BrokerProcess, login: str) -> Client:
    return Client(broker.url.replace("amqp://", f"amqp://{login}@"))


def test_users_come_and_go_by_management(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, variables=FIRST)
    place = broker.url.replace("amqp://", "amqp://first:***@")
    file = tmp_path / "jms-broker.users"
    first = at(broker, "first:one")
    added = first.prints("user", "add", "bob", "--password-stdin", typed=b"secret\n")
    assert added.decode() == (
        f"added bob to {file} of the broker at {place}\n"
        "role application: may not manage the broker; --role gives others\n"
    )
    assert at(broker, "bob:secret").prints("send", "q", "x") == b"sent 1\n"
    assert first.lists_users() == [
        'bob ["application"] no yes file',
        'first ["admin"] yes yes settings',
    ]
    refused = at(broker, "bob:secret").run("user", "add", "eve", "--password-stdin", typed=b"x\n")
    assert refused.returncode == 4
    raised = ("user", "add", "bob", "--password-stdin", "--administrator")
    changed = first.prints(*raised, typed=b"other\n")
    assert changed.decode() == f"changed the password of bob in {file} of the broker at {place}\n"
    lowered = ("user", "add", "bob", "--password-stdin", "--no-administrator")
    first.prints(*lowered, typed=b"other\n")
    assert first.lists_users() == [
        'bob ["application"] no yes file',
        'first ["admin"] yes yes settings',
    ]
    assert at(broker, "bob:secret").run("send", "q", "x").returncode == 4
    rotated = first.prints(
        "user", "passwd", "bob", "--password-stdin", "--keep-old", "1h", typed=b"third\n"
    )
    assert b"\nthe old password enters until " in rotated
    for password in ("other", "third"):
        assert at(broker, f"bob:{password}").prints("send", "q", "x") == b"sent 1\n"
    assert first.prints("user", "roles", "bob", "orders").startswith(b"changed the roles of bob")
    assert b"orders" in first.prints("user", "show", "bob")
    assert first.prints("user", "disable", "bob").startswith(b"disabled bob in ")
    assert first.lists_users() == ['bob ["orders"] no no file', 'first ["admin"] yes yes settings']
    assert at(broker, "bob:third").run("send", "q", "x").returncode == 4
    assert b"enabled             no\n" in first.prints("user", "show", "bob")
    assert first.prints("user", "enable", "bob").startswith(b"enabled bob in ")
    assert first.prints("user", "remove", "bob").startswith(b"removed bob from ")
    assert first.run("user", "remove", "bob").returncode == 3
    assert broker.stop() == 0
    log = broker.log.read_text()
    assert "added user bob" in log
    assert "removed user bob" in log
    assert "secret" not in log


def test_users_of_a_broker_without_a_file_are_in_its_store(tmp_path: Path) -> None:
    variables = FIRST | {"JMS_BROKER_USERS_FILE": str(tmp_path / "no" / "users")}
    settings = f'store = "sqlite:///{tmp_path / "data" / "store.db"}"'
    broker = BrokerProcess(tmp_path, settings=settings, variables=variables)
    place = f"the store of the broker at {broker.url.replace('amqp://', 'amqp://first:***@')}"
    first = at(broker, "first:one")
    added = first.prints("user", "add", "bob", "--password-stdin", typed=b"secret\n")
    assert added.decode().startswith(f"added bob to {place}\n")
    assert first.lists_users() == [
        'bob ["application"] no yes store',
        'first ["admin"] yes yes settings',
    ]
    assert b"source              store\n" in first.prints("user", "show", "bob")
    assert broker.stop() == 0
    broker = BrokerProcess(tmp_path, settings=settings, variables=variables)
    assert at(broker, "bob:secret").prints("send", "q", "x") == b"sent 1\n"
    removed = at(broker, "first:one").prints("user", "remove", "bob")
    assert removed.startswith(b"removed bob from the store of the broker at ")
    assert broker.stop() == 0


def test_where_failed_logins_came_from(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path, variables=FIRST)
    first = at(broker, "first:one")
    assert first.prints("login", "list", "--json") == b""
    for _ in range(2):
        assert at(broker, "bob:wrong").run("node", "list").returncode == 4
    (listed,) = first.prints("login", "list", "--json").splitlines()
    found = json.loads(listed)
    assert (found["name"], found["failures"]) == ("127.0.0.1", 2)
    assert json.loads(first.prints("login", "show", "127.0.0.1", "--json"))["failures"] == 2
    forgotten = first.prints("login", "forget", "127.0.0.1")
    assert forgotten == b"forgot the failed logins of 127.0.0.1\n"
    assert first.run("login", "forget", "127.0.0.1").returncode == 3
    assert broker.stop() == 0


def test_a_broker_that_stays_open_is_told(own_broker: BrokerProcess) -> None:
    client = Client(own_broker.url)
    done = client.run("user", "add", "bob", "--password-stdin", typed=b"secret\n")
    assert done.returncode == 0
    assert done.stderr.startswith(b"jms-broker: warning: the broker at amqp://127.0.0.1:")
    assert b"lets clients in without a password until it is restarted" in done.stderr


@pytest.mark.parametrize("option", ["--user", "--password"])
def test_no_password_of_an_administrator_is_asked_for_a_file(tmp_path: Path, option: str) -> None:
    client = Client("")
    config = tmp_path / "broker.toml"
    config.write_text("")
    done = client.run("user", "list", "--config", str(config), option, "x")
    assert done.returncode == 2
    assert b"are for --url" in done.stderr
