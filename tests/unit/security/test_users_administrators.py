"""Administrators: the users that may manage the broker."""

from pathlib import Path

import pytest

from broker.app import App
from broker.security.identity import ADMIN, NOT_LOGGED_IN
from broker.security.users import Users
from broker.settings import MEMORY, Settings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users"


def test_a_mark_in_the_file_makes_an_administrator(file: Path) -> None:
    users = Users(file)
    users.add("alice", "sesame", administrator=True)
    users.add("bob", "sesame")
    assert users.is_administrator("alice")
    assert not users.is_administrator("bob")
    assert not users.is_administrator("carol")
    assert not users.is_administrator("")
    assert users.check("alice", "sesame")


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        pytest.param(True, None, True, id="a new password alone keeps the right"),
        pytest.param(False, None, False, id="and gives none"),
        pytest.param(True, False, False, id="taken away"),
        pytest.param(False, True, True, id="given"),
    ],
)
def test_a_second_time(file: Path, before: bool, given: bool | None, after: bool) -> None:
    users = Users(file)
    users.add("alice", "one", administrator=before)
    users.add("alice", "two", administrator=given)
    assert users.is_administrator("alice") is after
    assert users.check("alice", "two")


def test_the_first_user_of_the_settings_is_one(file: Path) -> None:
    users = Users(file, first=("root", "sesame"))
    assert users.is_administrator("root")


def test_a_running_broker_sees_the_mark(file: Path) -> None:
    running = Users(file)
    Users(file).add("alice", "sesame")
    assert not running.is_administrator("alice")
    Users(file).add("alice", "sesame", administrator=True)
    assert running.is_administrator("alice")


def test_a_spoilt_file_leaves_rights_as_they_were(file: Path) -> None:
    users = Users(file)
    users.add("alice", "sesame", administrator=True)
    assert users.is_administrator("alice")
    file.write_text("nonsense\n")
    assert users.is_administrator("alice")


EVERYBODY = [
    pytest.param({}, True, id="nobody needs a password, on this machine alone"),
    pytest.param({"allow_anonymous": True, "user": "a", "password": "b"}, True, id="nor here"),
    pytest.param({"user": "a", "password": "b"}, False, id="everybody needs one"),
    pytest.param({"bind": "0.0.0.0", "allow_anonymous": True}, False, id="others reach it, too"),
]


@pytest.mark.parametrize(("given", "expected"), EVERYBODY)
def test_whether_everybody_is_one(file: Path, given: dict[str, object], expected: bool) -> None:
    app = App(Settings(users_file=file, store=MEMORY, **given))  # type: ignore[arg-type]
    authenticator = app.container.authenticator
    current = authenticator.current(NOT_LOGGED_IN)
    assert current is not None
    assert (ADMIN in current.roles) is expected
