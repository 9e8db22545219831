"""Users: the contents of the file, who may log in, and when anonymous clients may."""

import stat
import threading
from pathlib import Path

import pytest
from argon2 import PasswordHasher, extract_parameters

from broker.security.authenticate import (
    NOBODY,
    Users,
    UsersError,
    anonymous_allowed,
    is_loopback,
    open_users,
    refusal_of_name,
    refusal_of_password,
)
from broker.settings import Settings, SettingsError

ELSEWHERE = "0.0.0.0"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users"


def test_a_user_gets_in_with_the_password_and_no_other(file: Path) -> None:
    users = Users(file)
    assert users.add("alice", "sesame")
    assert users.check("alice", "sesame")
    assert not users.check("alice", "Sesame")
    assert not users.check("bob", "sesame")


def test_an_empty_password_never_matches(file: Path) -> None:
    empty = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("")
    file.write_text(f"alice:{empty}\n")
    assert not Users(file).check("alice", "")
    assert not Users(file, first=("bob", "")).check("bob", "")


def test_a_user_that_does_not_exist_costs_the_same_hash(file: Path) -> None:
    Users(file).add("alice", "sesame")
    known = file.read_text().strip().removeprefix("alice:")
    assert extract_parameters(NOBODY) == extract_parameters(known)


def test_nobody_knows_the_password_of_nobody(file: Path) -> None:
    assert not Users(file).check("", "x")


def test_the_first_user_needs_no_file(file: Path) -> None:
    users = Users(file, first=("alice", "sesame"))
    assert not users.is_empty()
    assert users.check("alice", "sesame")
    assert not users.check("alice", "other")
    assert not users.check("bob", "sesame")


def test_the_first_user_wins_over_the_file(file: Path) -> None:
    Users(file).add("alice", "old")
    users = Users(file, first=("alice", "new"))
    assert users.check("alice", "new")
    assert not users.check("alice", "old")


def test_a_new_password_replaces_the_old(file: Path) -> None:
    users = Users(file)
    assert users.add("alice", "one")
    assert not users.add("alice", "two")
    assert users.check("alice", "two")
    assert not users.check("alice", "one")
    assert users.names() == ["alice"]


def test_a_running_broker_sees_changes(file: Path) -> None:
    running = Users(file)
    assert running.is_empty()
    Users(file).add("alice", "sesame")
    assert running.check("alice", "sesame")
    Users(file).remove("alice")
    assert not running.check("alice", "sesame")
    file.unlink()
    assert running.is_empty()


def test_names_are_sorted(file: Path) -> None:
    for name in ("carol", "alice", "bob"):
        Users(file).add(name, "x")
    assert Users(file).names() == ["alice", "bob", "carol"]


def test_removing_somebody_unknown_is_an_error_and_changes_nothing(file: Path) -> None:
    Users(file).add("alice", "x")
    before = file.read_text()
    with pytest.raises(UsersError, match="no user 'bob'"):
        Users(file).remove("bob")
    assert file.read_text() == before


def test_comments_and_other_users_stay(file: Path) -> None:
    Users(file).add("alice", "x")
    file.write_text(f"# ours\n\n{file.read_text()}")
    before = file.read_text()
    Users(file).add("bob", "y")
    Users(file).remove("bob")
    assert file.read_text() == before


def test_nobody_else_can_read_a_new_file(file: Path) -> None:
    Users(file).add("alice", "x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_existing_file_keeps_its_mode(file: Path) -> None:
    Users(file).add("alice", "x")
    file.chmod(0o640)
    Users(file).add("bob", "x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_link_to_the_file_stays_a_link(tmp_path: Path, file: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    Users(link).add("alice", "x")
    assert link.is_symlink()
    assert Users(file).names() == ["alice"]


def test_two_changes_at_once_do_not_lose_one(file: Path) -> None:
    file.with_name("users.new").touch()
    with pytest.raises(UsersError, match="somebody else changes the users"):
        Users(file).add("alice", "x")
    assert not file.exists()


def test_a_failed_change_leaves_nothing_behind(file: Path) -> None:
    file.write_text("nonsense\n")
    with pytest.raises(UsersError, match="line 1"):
        Users(file).add("alice", "x")
    assert list(file.parent.iterdir()) == [file]
    assert file.read_text() == "nonsense\n"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsersError, match="No such file"):
        Users(tmp_path / "none" / "users").add("alice", "x")


def test_threads_may_check_at_the_same_time(file: Path) -> None:
    users = Users(file, first=("alice", "sesame"))
    answers: list[bool] = []
    threads = [
        threading.Thread(target=lambda: answers.append(users.check("alice", "sesame")))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [True] * 4


BAD_FILES = [
    pytest.param(b"alice\n", "line 1", id="no hash"),
    pytest.param(b"# fine\nalice:secret\n", "line 2", id="a password in the clear"),
    pytest.param(b":$argon2id$\n", "line 1", id="no name"),
    pytest.param(b"\xff\xfe:x\n", "not UTF-8", id="not text"),
]


@pytest.mark.parametrize(("content", "told"), BAD_FILES)
def test_a_bad_file_stops_the_start(file: Path, content: bytes, told: str) -> None:
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=told):
        open_users(Settings(users_file=file))


def test_a_file_spoilt_while_the_broker_runs_locks_nobody_out(file: Path) -> None:
    users = Users(file)
    users.add("alice", "sesame")
    assert users.check("alice", "sesame")
    file.write_text("nonsense\n")
    assert users.check("alice", "sesame")
    assert not users.check("bob", "sesame")


def test_a_hash_that_argon2_cannot_read_lets_nobody_in(file: Path) -> None:
    file.write_text("alice:$argon2id$broken\n")
    assert not Users(file).check("alice", "broken")


NAMES = [
    pytest.param("alice", True, id="a word"),
    pytest.param("alice b", True, id="a space inside"),
    pytest.param("älice@example", True, id="more than ASCII"),
    pytest.param("", False, id="empty"),
    pytest.param(" alice", False, id="a space before"),
    pytest.param("#alice", False, id="a comment"),
    pytest.param("a:b", False, id="a colon"),
    pytest.param("a\nb", False, id="two lines"),
    pytest.param("a\0b", False, id="NUL"),
    pytest.param("a\udc80", False, id="half a character"),
    pytest.param("a" * 256, False, id="too long"),
]


@pytest.mark.parametrize(("name", "fine"), NAMES)
def test_names(name: str, fine: bool) -> None:
    assert (refusal_of_name(name) is None) is fine


PASSWORDS = [
    pytest.param("x", True, id="short"),
    pytest.param("a: b#", True, id="signs"),
    pytest.param("", False, id="empty"),
    pytest.param("a\0b", False, id="NUL"),
    pytest.param("a\udc80", False, id="half a character"),
]


@pytest.mark.parametrize(("password", "fine"), PASSWORDS)
def test_passwords(password: str, fine: bool) -> None:
    assert (refusal_of_password(password) is None) is fine


def test_a_bad_name_or_password_is_not_written(file: Path) -> None:
    for name, password in (("a:b", "x"), ("alice", "")):
        with pytest.raises(UsersError):
            Users(file).add(name, password)
    assert not file.exists()


# ---- the first user, and anonymous clients --------------------------------------------------


def test_the_first_user_may_have_the_password_in_a_file(tmp_path: Path, file: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sesame\r\n")
    settings = Settings(users_file=file, user="alice", password_file=secret)
    users, anonymous = open_users(settings)
    assert users.check("alice", "sesame")
    assert not anonymous


FIRST_USERS = [
    pytest.param({"user": "a:b", "password": "x"}, "no colon", id="a bad name"),
    pytest.param({"user": "a", "password": ""}, "not empty", id="an empty password"),
    pytest.param({"user": "a", "password_file": "none"}, "No such file", id="no file"),
]


@pytest.mark.parametrize(("given", "told"), FIRST_USERS)
def test_a_wrong_first_user_stops_the_start(file: Path, given: dict[str, str], told: str) -> None:
    settings = Settings.model_validate({"users_file": file, **given})
    with pytest.raises(SettingsError, match=told):
        open_users(settings)


BINDS = [
    pytest.param("127.0.0.1", True, id="loopback"),
    pytest.param("127.9.9.9", True, id="all of 127"),
    pytest.param("::1", True, id="loopback of IPv6"),
    pytest.param("localhost", True, id="localhost"),
    pytest.param("0.0.0.0", False, id="every address"),
    pytest.param("::", False, id="every address of IPv6"),
    pytest.param("192.168.0.1", False, id="a network"),
    pytest.param("localhost.example", False, id="a name that looks like it"),
    pytest.param("", False, id="nothing"),
]


@pytest.mark.parametrize(("bind", "own"), BINDS)
def test_what_only_this_machine_reaches(bind: str, own: bool) -> None:
    assert is_loopback(bind) is own


REFUSED = "refused to start"

STRANGERS = [
    # bind, allow_anonymous, users exist, whether anonymous clients may enter
    pytest.param("127.0.0.1", None, False, True, id="here, nobody known: yes"),
    pytest.param("127.0.0.1", None, True, False, id="here, users known: no"),
    pytest.param("127.0.0.1", True, True, True, id="here, users known, opened knowingly: yes"),
    pytest.param("127.0.0.1", False, True, False, id="here, closed: no"),
    pytest.param("127.0.0.1", False, False, REFUSED, id="here, closed, nobody could enter"),
    pytest.param(ELSEWHERE, None, False, REFUSED, id="elsewhere, open by oversight"),
    pytest.param(ELSEWHERE, None, True, False, id="elsewhere, users known: no"),
    pytest.param(ELSEWHERE, True, False, True, id="elsewhere, opened knowingly: yes"),
    pytest.param(ELSEWHERE, False, False, REFUSED, id="elsewhere, closed, nobody could enter"),
]


@pytest.mark.parametrize(("bind", "chosen", "users_exist", "expected"), STRANGERS)
def test_strangers(bind: str, chosen: bool | None, users_exist: bool, expected: object) -> None:
    settings = Settings(bind=bind, allow_anonymous=chosen)
    try:
        answer: object = anonymous_allowed(settings, users_exist=users_exist)
    except SettingsError:
        answer = REFUSED
    assert answer == expected


def test_a_broker_open_by_oversight_is_told_what_to_do(file: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        open_users(Settings(bind=ELSEWHERE, users_file=file))
    told = str(caught.value)
    for remedy in ("user add", "JMS_BROKER_USER", "JMS_BROKER_ALLOW_ANONYMOUS=true", ELSEWHERE):
        assert remedy in told
