"""`jms-broker user`: adding, listing and removing, as typed."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from broker.cli.application import application
from broker.security.authenticate import Users


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def user(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(application, ["user", *arguments], input=typed)


def in_file() -> Users:
    return Users(Path("jms-broker.users"))


def test_a_password_from_standard_input() -> None:
    done = user("add", "alice", "--password-stdin", typed="sesame\nmore\n")
    assert (done.exit_code, done.stdout) == (0, "added alice\n")
    assert in_file().check("alice", "sesame")


def test_a_password_typed_twice_is_not_shown() -> None:
    done = user("add", "alice", typed="sesame\nsesame\n")
    assert done.exit_code == 0
    assert "sesame" not in done.output
    assert in_file().check("alice", "sesame")


def test_a_password_typed_differently_is_asked_for_again() -> None:
    done = user("add", "alice", typed="one\ntwo\nthree\nthree\n")
    assert done.exit_code == 0
    assert in_file().check("alice", "three")


def test_a_second_time_changes_the_password() -> None:
    user("add", "alice", "--password-stdin", typed="one\n")
    done = user("add", "alice", "--password-stdin", typed="two\n")
    assert done.stdout == "changed the password of alice\n"
    assert in_file().check("alice", "two")


def test_names_are_listed() -> None:
    assert user("list").stdout == ""
    for name in ("bob", "alice"):
        user("add", name, "--password-stdin", typed="x\n")
    assert user("list").stdout == "alice\nbob\n"


def test_a_user_is_removed() -> None:
    user("add", "alice", "--password-stdin", typed="x\n")
    assert user("remove", "alice").stdout == "removed alice\n"
    assert in_file().names() == []


def test_the_configured_file_is_used(folder: Path) -> None:
    config = folder / "broker.toml"
    config.write_text('users_file = "others"\n')
    user("add", "alice", "--password-stdin", "--config", str(config), typed="x\n")
    assert Users(folder / "others").names() == ["alice"]


FAILURES = [
    pytest.param(["remove", "bob"], "", "no user 'bob'", id="nobody of that name"),
    pytest.param(["add", "a:b", "--password-stdin"], "x\n", "no colon", id="a bad name"),
    pytest.param(["add", "alice", "--password-stdin"], "", "not empty", id="no password"),
    pytest.param(["list", "--config", "none.toml"], "", "none.toml: No such file", id="no config"),
]


@pytest.mark.parametrize(("arguments", "typed", "told"), FAILURES)
def test_what_cannot_be_done_is_told(arguments: list[str], typed: str, told: str) -> None:
    done = user(*arguments, typed=typed)
    assert done.exit_code == 1
    assert told in done.stderr
    assert done.stderr.startswith("jms-broker: ")


def test_a_spoilt_file_is_told_by_every_command() -> None:
    Path("jms-broker.users").write_text("nonsense\n")
    for arguments in (["list"], ["remove", "a"], ["add", "a", "--password-stdin"]):
        done = user(*arguments, typed="x\n")
        assert done.exit_code == 1
        assert "line 1" in done.stderr
