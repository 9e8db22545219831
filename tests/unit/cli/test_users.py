"""`jms-broker user`: adding, listing and removing users from the command line."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from broker.app import App
from broker.cli.application import application
from broker.security.account import utc_text
from broker.security.users import Users
from broker.settings import MEMORY, Settings, given_settings

pytestmark = pytest.mark.requirement("SEC-12")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def user(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(application, ["user", *arguments], input=typed)


ROLE = "role application: may not manage the broker; --role gives others\n"
"""The second line for a new user whose roles were not given."""


def in_file() -> Users:
    return Users(Path("jms-broker.users"))


def test_a_password_from_standard_input() -> None:
    done = user("add", "alice", "--password-stdin", typed="sesame\nmore\n")
    file = Path("jms-broker.users").absolute()
    assert (done.exit_code, done.stdout) == (0, f"added alice to {file}\n{ROLE}")
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
    file = Path("jms-broker.users").absolute()
    assert done.stdout == f"changed the password of alice in {file}\n"
    assert in_file().check("alice", "two")


def test_users_are_listed_by_name() -> None:
    header = "name\troles\tadministrator\tenabled\tsource\n"
    assert user("list").stdout == header
    for name, role in (("bob", "audit"), ("alice", "admin")):
        user("add", name, "--password-stdin", "--role", role, typed="x\n")
    listed = 'alice\t["admin"]\tyes\tyes\tfile\nbob\t["audit"]\tno\tyes\tfile\n'
    assert user("list").stdout == header + listed
    assert [json.loads(each)["name"] for each in user("list", "--json").stdout.splitlines()] == [
        "alice",
        "bob",
    ]


def test_a_user_is_removed() -> None:
    user("add", "alice", "--password-stdin", typed="x\n")
    file = Path("jms-broker.users").absolute()
    assert user("remove", "alice").stdout == f"removed alice from {file}\n"
    assert in_file().names() == []


def test_the_configured_file_is_used(folder: Path) -> None:
    config = folder / "broker.toml"
    config.write_text('users_file = "others"\n')
    done = user("add", "alice", "--password-stdin", "--config", str(config), typed="x\n")
    assert done.stdout == f"added alice to {folder / 'others'}\n{ROLE}"
    assert Users(folder / "others").names() == ["alice"]


def test_the_file_of_the_environment_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JMS_BROKER_USERS_FILE", str(folder / "others"))
    done = user("add", "alice", "--password-stdin", typed="x\n")
    assert done.stdout == f"added alice to {folder / 'others'}\n{ROLE}"


def test_a_file_that_is_typed_wins_over_a_broker_in_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JMS_BROKER_URL", "amqp://127.0.0.1:1")
    config = folder / "broker.toml"
    config.write_text("")
    done = user("add", "alice", "--password-stdin", "--config", str(config), typed="x\n")
    assert done.exit_code == 0
    done = user("list")
    assert done.exit_code == 5
    assert done.stderr.startswith("jms-broker: amqp://127.0.0.1:1: ")


ROLES = [
    pytest.param([], ["application"], id="none"),
    pytest.param(["--role", "orders", "--role", "audit"], ["orders", "audit"], id="two"),
    pytest.param(["--role", "admin"], ["admin"], id="an administrator"),
    pytest.param(["--administrator"], ["admin"], id="the same, in another word"),
    pytest.param(["--administrator", "--role", "orders"], ["orders", "admin"], id="both"),
    pytest.param(["--no-administrator"], ["application"], id="no administrator"),
]


@pytest.mark.parametrize(("options", "roles"), ROLES)
def test_a_new_user_has_the_roles_that_are_given(options: list[str], roles: list[str]) -> None:
    done = user("add", "alice", "--password-stdin", *options, typed="x\n")
    assert (ROLE in done.stdout) is (options == []), "the command says what it has chosen"
    assert in_file().roles_of("alice") == set(roles)


AGAIN = [
    pytest.param([], {"orders", "admin"}, id="a new password alone"),
    pytest.param(["--no-administrator"], {"orders"}, id="no administrator any more"),
    pytest.param(["--role", "audit"], {"audit"}, id="other roles"),
]


@pytest.mark.parametrize(("options", "roles"), AGAIN)
def test_an_existing_user_keeps_its_roles_unless_others_are_given(
    options: list[str], roles: set[str]
) -> None:
    given = ("--role", "orders", "--role", "admin")
    user("add", "alice", "--password-stdin", *given, typed="x\n")
    done = user("add", "alice", "--password-stdin", *options, typed="y\n")
    assert done.stdout.count("\n") == 1
    assert in_file().roles_of("alice") == roles


@pytest.mark.parametrize("command", ["add", "passwd"])
@pytest.mark.parametrize(("options", "lacking"), [([], []), (["--no-scram"], ["alice"])])
def test_scram_is_left_out_if_the_operator_says_so(
    command: str, options: list[str], lacking: list[str]
) -> None:
    user("add", "alice", "--password-stdin", typed="x\n")
    user(command, "alice", "--password-stdin", *options, typed="y\n")
    assert in_file().without_scram() == lacking


def test_a_password_is_changed() -> None:
    user("add", "alice", "--password-stdin", "--role", "orders", typed="one\n")
    done = user("passwd", "alice", "--password-stdin", typed="two\n")
    file = Path("jms-broker.users").absolute()
    assert done.stdout == f"changed the password of alice in {file}\n"
    assert in_file().check("alice", "two")
    assert not in_file().check("alice", "one")
    assert in_file().roles_of("alice") == {"orders"}


def test_the_old_password_may_enter_for_a_while() -> None:
    user("add", "alice", "--password-stdin", typed="one\n")
    done = user("passwd", "alice", "--password-stdin", "--keep-old", "1h", typed="two\n")
    account = in_file().account("alice")
    assert account is not None
    assert account.previous is not None
    until = utc_text(account.previous.until)
    assert done.stdout.splitlines()[1] == f"the old password enters until {until}, too"
    assert in_file().check("alice", "one")
    assert in_file().check("alice", "two")


def test_an_old_password_is_kept_for_a_week_at_most() -> None:
    user("add", "alice", "--password-stdin", typed="one\n")
    done = user("passwd", "alice", "--password-stdin", "--keep-old", "8d", typed="two\n")
    assert (done.exit_code, "at most 604800 seconds" in done.stderr) == (1, True)
    assert in_file().check("alice", "one")


def test_a_user_is_shown_without_its_hashes() -> None:
    names = ("--certificate", "a.example", "--certificate", "b.example")
    user("add", "alice", "--password-stdin", "--role", "orders", *names, typed="one\n")
    user("passwd", "alice", "--password-stdin", "--keep-old", "1h", typed="two\n")
    shown = json.loads(user("show", "alice", "--json").stdout)
    assert shown == {
        "name": "alice",
        "administrator": False,
        "roles": ["orders"],
        "enabled": True,
        "password": True,
        "scram": ["SCRAM-SHA-512", "SCRAM-SHA-256"],
        "mechanisms": None,
        "certificates": ["a.example", "b.example"],
        "credential_version": shown["credential_version"],
        "changed_at": shown["changed_at"],
        "old_password_until": shown["old_password_until"],
        "source": "file",
    }
    lines = user("show", "alice").stdout
    assert "old password until  20" in lines
    assert "$" not in lines


def test_a_user_is_disabled_and_enabled() -> None:
    user("add", "alice", "--password-stdin", "--administrator", typed="x\n")
    file = Path("jms-broker.users").absolute()
    assert user("disable", "alice").stdout == f"disabled alice in {file}\n"
    assert user("disable", "alice").stdout == f"already disabled: alice in {file}\n"
    assert user("list").stdout.splitlines()[1:] == ['alice\t["admin"]\tyes\tno\tfile']
    assert not in_file().check("alice", "x")
    assert user("enable", "alice").stdout == f"enabled alice in {file}\n"
    assert user("enable", "alice").stdout == f"already enabled: alice in {file}\n"
    assert in_file().check("alice", "x")


def test_a_user_gets_other_roles() -> None:
    user("add", "alice", "--password-stdin", typed="x\n")
    file = Path("jms-broker.users").absolute()
    for done in ("changed", "unchanged:"):
        assert user("roles", "alice", "orders", "audit").stdout == (
            f"{done} the roles of alice in {file}\n"
        )
    assert in_file().roles_of("alice") == {"orders", "audit"}
    assert in_file().check("alice", "x")


USAGE = [
    pytest.param(["list", "--config", "a", "--url", "amqp://h"], "give one", id="two places"),
    pytest.param(["list", "--user", "eve"], "are for --url", id="an administrator for a file"),
    pytest.param(["passwd", "a", "--keep-old", "soon"], "such as 1h", id="a bad duration"),
]


@pytest.mark.parametrize(("arguments", "told"), USAGE)
def test_wrong_usage(arguments: list[str], told: str) -> None:
    done = user(*arguments)
    assert done.exit_code == 2
    assert told in done.stderr


def test_the_first_user_of_the_settings_is_not_written_to_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JMS_BROKER_USER", "ada")
    monkeypatch.setenv("JMS_BROKER_PASSWORD", "engine")
    for arguments in (["add", "--password-stdin"], ["passwd", "--password-stdin"], ["disable"]):
        done = user(arguments[0], "ada", *arguments[1:], typed="other\n")
        assert done.exit_code == 1
        assert "user 'ada' is in the broker's settings, which win over the file" in done.stderr
    assert not Path("jms-broker.users").exists()


async def warned_of(settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the warning that adding a user prints while a broker with `settings` runs."""
    app = App(settings)
    await app.start()
    monkeypatch.setenv("JMS_BROKER_PORT", str(app.port))
    monkeypatch.setenv("JMS_BROKER_USERS_FILE", str(folder / "users"))
    if settings.allow_anonymous is not None:
        monkeypatch.setenv("JMS_BROKER_ALLOW_ANONYMOUS", str(settings.allow_anonymous))
    arguments = ("add", "alice", "--password-stdin")
    try:
        done = await asyncio.to_thread(user, *arguments, typed="sesame\n")
    finally:
        await app.stop()
    assert done.exit_code == 0
    return done.stderr.replace(app.url(), "URL")


OPEN = "jms-broker: warning: the broker at URL lets clients in without a password"


@pytest.mark.parametrize(
    ("allow_anonymous", "users", "expected"),
    [
        pytest.param(
            None,
            [],
            f"{OPEN} until it is restarted, or reloads (SIGHUP)\n",
            id="started without users",
        ),
        pytest.param(None, ["bob"], "", id="started with users"),
        pytest.param(True, ["bob"], f"{OPEN}: allow_anonymous = true\n", id="open on purpose"),
        pytest.param(False, ["bob"], "", id="closed on purpose"),
    ],
)
async def test_a_broker_that_stays_open_is_told(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    allow_anonymous: bool | None,
    users: list[str],
    expected: str,
) -> None:
    for name in users:
        Users(folder / "users").add(name, "x")
    settings = given_settings(
        port=0, store=MEMORY, users_file=folder / "users", allow_anonymous=allow_anonymous
    )
    assert await warned_of(settings, folder, monkeypatch) == expected


def test_without_a_broker_nothing_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("JMS_BROKER_PORT", str(server.getsockname()[1]))
    assert user("add", "alice", "--password-stdin", typed="x\n").stderr == ""


FAILURES = [
    pytest.param(["add", "a:b", "--password-stdin"], "x\n", "no colon", id="a bad name"),
    pytest.param(["add", "alice", "--password-stdin"], "", "not empty", id="no password"),
    pytest.param(["add", "a", "--role", "b c"], "x\n", "'b c' is no role", id="a bad role"),
    pytest.param(
        ["add", "alice", "--certificate", "", "--password-stdin"],
        "x\n",
        "the name in a certificate has 1 to 1024 bytes",
        id="a bad certificate",
    ),
    pytest.param(
        ["add", "alice", "--password-stdin"],
        "\N{PILE OF POO}\n",
        "leave SCRAM out with --no-scram",
        id="a password that SCRAM cannot carry",
    ),
    pytest.param(["list", "--config", "none.toml"], "", "none.toml: No such file", id="no config"),
]


@pytest.mark.parametrize(("arguments", "typed", "told"), FAILURES)
def test_what_cannot_be_done_is_told(arguments: list[str], typed: str, told: str) -> None:
    done = user(*arguments, typed=typed)
    assert done.exit_code == 1
    assert told in done.stderr
    assert done.stderr.startswith("jms-broker: ")


@pytest.mark.parametrize("command", ["remove", "show", "disable", "enable", "passwd", "roles"])
def test_there_is_no_user_of_that_name(command: str) -> None:
    more = {"passwd": ["--password-stdin"], "roles": ["orders"]}.get(command, [])
    done = user(command, "bob", *more, typed="x\n")
    assert done.exit_code == 3
    file = Path("jms-broker.users").absolute()
    assert done.stderr == f"jms-broker: no user 'bob' in {file}\n"


def test_a_spoilt_file_is_told_by_every_command() -> None:
    Path("jms-broker.users").write_text("nonsense\n")
    for arguments in (
        *(["list"], ["remove", "a"], ["show", "a"], ["disable", "a"], ["enable", "a"]),
        *(["add", "a", "--password-stdin"], ["passwd", "a", "--password-stdin"]),
    ):
        done = user(*arguments, typed="x\n")
        assert done.exit_code == 1
        assert "line 1" in done.stderr
