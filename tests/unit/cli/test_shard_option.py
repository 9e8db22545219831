"""The option --shard: the broker, the records or the store of one shard of the settings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner, Result

from broker import Broker
from broker.cli.application import application
from broker.cli.shard_option import has_shards
from tests.support.stored_files import filled

HERE = "amqp://127.0.0.1:1"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name a file with the shards `a`, on a port of no broker, and `b`."""
    for name in [name for name in os.environ if name.startswith("JMS_BROKER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = tmp_path / "broker.toml"
    write(file, port=2)
    monkeypatch.setenv("JMS_BROKER_CONFIG", str(file))
    return file


def write(file: Path, *, port: int) -> None:
    """Write settings with a shard `b` that has that port."""
    store = f"sqlite:///{file.parent}"
    file.write_text(
        f'users_file = "{file.parent}/users"\n'
        f'[[shard]]\nname = "a"\nport = 1\nstore = "{store}/a.db"\n'
        f'[[shard]]\nname = "b"\nport = {port}\nstore = "{store}/b.db"\n'
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(application, list(arguments))


def test_commands_talk_to_the_shard_that_is_named(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("proton")
    with Broker() as broker:
        write(settings, port=urlsplit(broker.url).port or 0)
        assert run("send", "sent", "x", "--shard", "b").exit_code == 0
        assert [each.body for each in broker.messages("sent")] == ["x"]
        monkeypatch.setenv("JMS_BROKER_URL", HERE)
        assert '"name": "sent"' in run("node", "list", "--shard=b", "--json").stdout
        assert os.environ["JMS_BROKER_URL"] == HERE
        assert run("healthcheck", "--shard", "b").exit_code == 0
        monkeypatch.delenv("JMS_BROKER_URL")
        run("context", "add", "elsewhere", HERE)
        assert run("node", "list", "--shard", "b").exit_code == 0


ENDINGS = [
    # the command, its status, a part of its error
    pytest.param(["node", "list"], 2, "name one by --shard: a, b", id="none is named"),
    pytest.param(["send", "q", "x"], 2, "name one by --shard: a, b", id="none to send to"),
    pytest.param(["doctor"], 2, "name one by --shard: a, b", id="none for the doctor"),
    pytest.param(["audit", "show"], 2, "name one by --shard: a, b", id="none with records"),
    pytest.param(["node", "list", "--shard", "c"], 2, "there are a, b", id="there is none"),
    pytest.param(
        ["node", "list", "--shard", "a", "--url", HERE], 2, "give one", id="also a URL is named"
    ),
    pytest.param(["node", "list", "--shard", "a"], 5, "127.0.0.1:1", id="one that is away"),
    pytest.param(["healthcheck"], 1, "127.0.0.1:1", id="not all are healthy"),
    pytest.param(["healthcheck", "--shard", "c"], 1, "there are a, b", id="none to check"),
    pytest.param(["store", "check"], 2, "by --shard", id="no store"),
    pytest.param(["store", "check", "x.db", "--shard", "a"], 2, "by --shard", id="two stores"),
    pytest.param(["store", "check", "--shard", "a"], 3, "a.db", id="a store that is not there"),
    pytest.param(["node", "list", "--url", HERE], 5, "127.0.0.1:1", id="a URL is enough"),
    pytest.param(["user", "show", "ann"], 3, "no user 'ann'", id="all share the users"),
]


@pytest.mark.parametrize(("arguments", "status", "told"), ENDINGS)
def test_what_commands_say(arguments: list[str], status: int, told: str) -> None:
    pytest.importorskip("proton")
    done = run(*arguments)
    assert (done.exit_code, told in done.stderr) == (status, True), done.stderr


def test_without_settings_there_is_no_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JMS_BROKER_CONFIG")
    done = run("node", "list", "--shard", "a")
    assert (done.exit_code, "set JMS_BROKER_CONFIG" in done.stderr) == (2, True), done.stderr


def test_a_file_that_cannot_be_read_has_no_shards(settings: Path) -> None:
    assert has_shards(settings)
    assert not has_shards(settings.with_name("none.toml"))


async def test_the_store_of_a_shard_is_checked(tmp_path: Path) -> None:
    await filled(tmp_path / "b.db", 2)
    done = run("store", "check", "--shard", "b", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["store"] == str(tmp_path / "b.db")
    assert run("store", "migrate", "--shard", "b").exit_code == 0
    assert run("store", "quarantine", "list", "--shard", "b").exit_code == 0


def test_users_of_one_shard_are_asked_for_over_its_url(settings: Path) -> None:
    pytest.importorskip("proton")
    done = run("user", "list", "--shard", "a", "--config", str(settings))
    assert (done.exit_code, "127.0.0.1:1" in done.stderr) == (5, True), done.stderr
