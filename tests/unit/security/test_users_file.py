"""The users file on the disk: read again when it changes, and written in one step."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from broker.security.account import UserAccount, UsersError, Verifiers
from broker.security.users_file import UsersFile

NOW = datetime(2025, 6, 15, 15, 6, 40, tzinfo=UTC)
HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users"


def add(file: Path, name: str) -> UserAccount | None:
    account = UserAccount(name=name, verifiers=Verifiers(password=HASH))
    return UsersFile(file).change(name, lambda _: account, now=NOW)


def names(file: Path) -> list[str]:
    return sorted(UsersFile(file).current().accounts)


def test_nobody_else_can_read_a_new_file(file: Path) -> None:
    add(file, "alice")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_existing_file_keeps_its_mode(file: Path) -> None:
    add(file, "alice")
    file.chmod(0o640)
    add(file, "bob")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_link_to_the_file_stays_a_link(tmp_path: Path, file: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    add(link, "alice")
    assert link.is_symlink()
    assert names(file) == ["alice"]


def test_two_changes_at_once_do_not_lose_one(file: Path) -> None:
    file.with_name("users.new").touch()
    with pytest.raises(UsersError, match="another process is changing the users"):
        add(file, "alice")
    assert not file.exists()


def test_a_failed_change_leaves_nothing_behind(file: Path) -> None:
    file.write_text("nonsense\n")
    with pytest.raises(UsersError, match="line 1"):
        add(file, "alice")
    assert list(file.parent.iterdir()) == [file]
    assert file.read_text() == "nonsense\n"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsersError, match="No such file"):
        add(tmp_path / "none" / "users", "alice")


def test_a_change_is_told_what_it_replaces(file: Path) -> None:
    assert add(file, "alice") is None
    before = add(file, "alice")
    assert before is not None
    assert before.verifiers.password == HASH


def test_a_change_that_fails_leaves_the_file_as_it_was(file: Path) -> None:
    def refuse(_: UserAccount | None) -> UserAccount:
        raise UsersError("not today")

    add(file, "alice")
    text = file.read_text()
    with pytest.raises(UsersError, match="not today"):
        UsersFile(file).change("alice", refuse, now=NOW)
    assert list(file.parent.iterdir()) == [file]
    assert file.read_text() == text


def test_a_form_that_cannot_be_changed_is_told_with_the_file(file: Path) -> None:
    file.write_text('user = [{name = "alice"}]\n')
    with pytest.raises(UsersError, match=f"^{file}, cannot be changed"):
        add(file, "bob")
    assert list(file.parent.iterdir()) == [file]


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(file: Path) -> None:
    add(file, "alice")
    users = UsersFile(file)
    first = users.current()
    assert users.current() is first
    add(file, "bob")
    assert sorted(users.current().accounts) == ["alice", "bob"]
    file.unlink()
    gone = users.current()
    assert not gone.accounts
    assert users.current() is gone, "the users have not changed since"


def test_the_users_of_no_file_do_not_change(file: Path) -> None:
    """Another object would have all connections and links judged again (`UsersWatch`)."""
    users = UsersFile(file)
    assert users.current() is users.current()


def test_the_last_valid_users_stay_while_the_file_is_invalid(file: Path) -> None:
    add(file, "alice")
    users = UsersFile(file)
    assert list(users.last_valid().accounts) == ["alice"]
    file.write_text("nonsense\n")
    assert list(users.last_valid().accounts) == ["alice"]
    with pytest.raises(UsersError, match=f"^{file}, line 1"):
        users.current()


UNREADABLE = [
    pytest.param(b"\xff\xfe:x\n", "not UTF-8", id="not text"),
    pytest.param(b"nonsense\n", "line 1", id="no users"),
    pytest.param(b"[[user]]\n", "user number 1, name: missing", id="a user without a name"),
]


@pytest.mark.parametrize(("content", "told"), UNREADABLE)
def test_a_file_that_cannot_be_read_is_told_by_its_name(
    file: Path, content: bytes, told: str
) -> None:
    file.write_bytes(content)
    with pytest.raises(UsersError, match=f"^{file}[,:] {told}"):
        UsersFile(file).current()


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsersError, match="Is a directory"):
        UsersFile(tmp_path).current()


@pytest.mark.privileged
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_root_leaves_the_owner(file: Path) -> None:
    add(file, "alice")
    os.chown(file, 12345, 12345)
    add(file, "bob")
    status = file.stat()
    assert (status.st_uid, status.st_gid) == (12345, 12345)


def test_the_path_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert UsersFile(Path("users")).path == tmp_path / "users"
