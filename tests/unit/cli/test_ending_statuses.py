"""Exit statuses of the whole command line: 0 done, 1 failed, 2 usage, 3 no such thing, 4, 5."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import typer.main
from typer.testing import CliRunner

pytest.importorskip("proton")

from broker import Broker
from broker.cli.application import application
from broker.cli.named_brokers import URL_VARIABLE
from broker.security.users import Users
from tests.unit.cli.test_commands import paths

pytestmark = pytest.mark.requirement("OPS-15")

NOWHERE: Final = "amqp://127.0.0.1:1"
COMMANDS: Final = typer.main.get_command(application)


@pytest.fixture(autouse=True)
def no_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("JMS_BROKER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield the URL of a broker for an administrator, an application, and a wrong password."""
    users = tmp_path_factory.mktemp("users") / "users.toml"
    Users(users).add("root", "sesame", administrator=True)
    Users(users).add("shop", "tulip")
    with Broker(users_file=users) as broker:
        place = broker.url.partition("://")[2]
        yield {
            "root": f"amqp://root:sesame@{place}",
            "shop": f"amqp://shop:tulip@{place}",
            "wrong": f"amqp://shop:poppy@{place}",
            "nowhere": NOWHERE,
        }


CASES: Final = [
    # arguments, as whom, status
    (["node", "list"], "root", 0),
    (["user", "list"], "root", 0),
    (["send", "here", "x"], "shop", 0),
    (["explain", "here"], "root", 0),
    (["node", "create", "here"], "root", 1),
    (["user", "disable", "root"], "root", 1),
    (["receive", "here", "--count", "2", "--timeout", "0.1"], "shop", 1),
    (["node", "list", "--none"], "root", 2),
    (["node", "show"], "root", 2),
    (["send", "here", "--count", "2"], "shop", 2),
    (["message", "move", "here", "there"], "root", 2),
    (["backup", "relative"], "root", 2),
    (["node", "show", "none"], "root", 3),
    (["node", "delete", "none"], "root", 3),
    (["node", "purge", "none"], "root", 3),
    (["connection", "show", "99"], "root", 3),
    (["connection", "close", "99"], "root", 3),
    (["subscription", "show", "none"], "root", 3),
    (["subscription", "delete", "none"], "root", 3),
    (["lease", "show", "none"], "root", 3),
    (["sink", "show", "none"], "root", 3),
    (["message", "list", "none"], "root", 3),
    (["user", "show", "none"], "root", 3),
    (["user", "disable", "none"], "root", 3),
    (["user", "remove", "none"], "root", 3),
    (["receive", "none"], "shop", 3),
    (["browse", "none"], "shop", 3),
    (["context", "use", "none"], None, 3),
    (["store", "check", "none.db"], None, 3),
    (["node", "list"], "shop", 4),
    (["node", "create", "mine"], "shop", 4),
    (["user", "list"], "shop", 4),
    (["reload"], "shop", 4),
    (["definitions", "export"], "shop", 4),
    (["send", "here", "x"], "wrong", 4),
    (["node", "list"], "wrong", 4),
    (["doctor"], "wrong", 4),
    (["send", "here", "x"], "nowhere", 5),
]


@pytest.mark.parametrize(
    ("arguments", "who", "status"),
    [pytest.param(*each, id=f"{' '.join(each[0])} as {each[1]}") for each in CASES],
)
def test_a_status(urls: dict[str, str], arguments: list[str], who: str | None, status: int) -> None:
    chosen = [] if who is None else ["--url", urls[who]]
    done = CliRunner().invoke(application, [*arguments, *chosen], input="")
    assert done.exit_code == status, done.output + done.stderr
    assert status in (0, 2) or done.stderr.startswith("jms-broker: ")


def command_at(path: tuple[str, ...]) -> Any:
    """Return the command that these words select."""
    found: Any = COMMANDS
    for each in path:
        found = found.commands[each]
    return found


def with_url() -> list[tuple[str, ...]]:
    """Return the paths of all commands that read the URL of a broker."""
    return [
        path
        for path in paths(COMMANDS)
        if any(each.envvar == URL_VARIABLE for each in command_at(path).params)
    ]


ARGUMENTS: Final = {
    ("message", "move"): ["here", "there", "--all"],
    ("message", "copy"): ["here", "there", "--all"],
    ("message", "retry"): ["here", "--all"],
    ("message", "delete"): ["here", "1"],
    ("message", "cancel"): ["here", "1"],
    ("message", "deliver"): ["here", "1"],
    ("backup",): ["/tmp/none/backup"],
    ("acl", "explain"): ["queue:q", "--verb", "send"],
    ("explain", "flow"): ["here"],
    ("sink", "abort"): ["query", "1"],
    ("user", "add"): ["ann", "--password-stdin"],
    ("user", "passwd"): ["ann", "--password-stdin"],
    ("connection", "show"): ["1"],
    ("connection", "close"): ["1"],
}


def test_there_are_such_commands() -> None:
    assert len(with_url()) > 30
    assert set(ARGUMENTS) <= set(with_url())


@pytest.mark.parametrize("path", with_url(), ids=" ".join)
def test_a_broker_that_is_not_reached(tmp_path: Path, path: tuple[str, ...]) -> None:
    arguments = ARGUMENTS.get(path)
    if arguments is None:
        required = [each for each in command_at(path).params if each.required]
        arguments = ["here" for each in required if each.param_type_name == "argument"]
    document = tmp_path / "document.json"
    document.write_text('{"jms_broker_definitions": 1}')
    if path == ("definitions", "import"):
        arguments = [str(document)]
    done = CliRunner().invoke(application, [*path, *arguments, "--url", NOWHERE], input="sesame\n")
    assert done.exit_code == 5, done.output + done.stderr
    assert "127.0.0.1:1" in done.stderr
