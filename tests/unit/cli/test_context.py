"""`jms-broker context`: named brokers, and which commands they count for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from typer.testing import CliRunner, Result

from broker import Broker
from broker.cli.application import application

pytestmark = pytest.mark.requirement("OPS-15")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("JMS_BROKER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config"


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(application, list(arguments), input=typed)


def listed() -> dict[str, dict[str, object]]:
    lines = run("context", "list", "--json").stdout.splitlines()
    return {each["name"]: each for each in map(json.loads, lines)}


def test_the_first_one_is_in_use_and_the_file_is_private(home: Path) -> None:
    assert (
        run("context", "add", "prod", "amqps://h", "--user", "ann", "--ca", "ca.pem").exit_code == 0
    )
    assert run("context", "add", "test", "amqp://u:secret@h2").exit_code == 0
    found = listed()
    assert (found["prod"]["in_use"], found["test"]["in_use"]) == (True, False)
    assert found["prod"]["ca"] == str(Path("ca.pem").absolute())
    assert found["test"]["url"] == "amqp://u:***@h2"
    (file,) = home.rglob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_back_to_the_one_before() -> None:
    for name in "ab":
        run("context", "add", name, f"amqp://{name}")
    assert run("context", "use", "b").stdout == "using context b: amqp://b\n"
    assert run("context", "-").stdout == "using context a: amqp://a\n"
    assert run("context", "-").stdout == "using context b: amqp://b\n"
    assert run("context", "remove", "b").exit_code == 0
    assert list(listed()) == ["a"]
    assert not listed()["a"]["in_use"]


ERRORS = [
    pytest.param(["add", "x", "tcp://h"], 2, "tcp:// is not AMQP", id="a URL"),
    pytest.param(["add", "-x", "amqp://h"], 2, "", id="a name"),
    pytest.param(["add", "a/b", "amqp://h"], 2, "no name of a context", id="a name with a slash"),
    pytest.param(["add", "x", "amqp://h", "--ca", "f"], 2, "are for TLS", id="TLS"),
    pytest.param(["add", "x", "amqps://h", "--key", "f"], 2, "needs --cert", id="a key"),
    pytest.param(["use", "x"], 3, "no context x", id="use"),
    pytest.param(["-"], 3, "no other context", id="back"),
    pytest.param(["remove", "x"], 3, "no context x", id="remove"),
]


@pytest.mark.parametrize(("arguments", "status", "text"), ERRORS)
def test_errors(arguments: list[str], status: int, text: str) -> None:
    done = run("context", *arguments)
    assert (done.exit_code, text in done.stderr) == (status, True), done.stderr


def test_a_damaged_file(home: Path) -> None:
    run("context", "add", "a", "amqp://h")
    (file,) = home.rglob("*.json")
    file.write_text("{}")
    done = run("node", "list")
    assert (done.exit_code, "mend or remove it" in done.stderr) == (1, True)


def test_commands_talk_to_the_one_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("proton")
    with Broker() as broker, Broker() as other:
        run("context", "add", "one", broker.url)
        assert run("node", "create", "here").exit_code == 0
        assert run("send", "sent", "x").exit_code == 0
        assert run("node", "list", "--url", other.url).stdout.splitlines()[1:] == []
        found = run("node", "list").stdout.splitlines()[1:]
        assert [each.split("\t")[0] for each in found] == ["here", "sent"]
        assert "JMS_BROKER_URL" not in os.environ
        monkeypatch.setenv("JMS_BROKER_URL", other.url)
        assert run("node", "list").stdout.splitlines()[1:] == []


def test_the_password_of_its_user_is_asked_for() -> None:
    pytest.importorskip("proton")
    with Broker(users={"ann": "sesame"}) as broker:
        run("context", "add", "one", broker.url, "--user", "ann")
        done = run("send", "sent", "x", typed="sesame\n")
        assert done.exit_code == 0, done.stderr
        assert [each.body for each in broker.messages("sent")] == ["x"]
        assert "Password" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["user", "list"], id="users of a file"),
        pytest.param(["doctor", "--json"], id="the doctor"),
    ],
)
def test_settings_that_are_named_win(tmp_path: Path, arguments: list[str]) -> None:
    config = tmp_path / "broker.toml"
    config.write_text(f'users_file = "{tmp_path}/users"\nstore = "sqlite:///{tmp_path}/store.db"\n')
    run("context", "add", "one", "amqp://127.0.0.1:1")
    assert run(*arguments).exit_code != 0
    done = run(*arguments, "--config", str(config))
    assert "127.0.0.1:1" not in done.stderr


def test_contexts_that_are_added_at_the_same_time_are_all_there() -> None:
    names = [f"broker-{number}" for number in range(6)]
    command = [sys.executable, "-m", "jms_broker", "context", "add"]
    added = [subprocess.Popen([*command, name, "amqp://h"], stdout=PIPE) for name in names]
    assert [each.wait(timeout=60) for each in added] == [0] * len(names)
    for each in added:
        each.communicate()
    assert sorted(listed()) == names
