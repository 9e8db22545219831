"""Changes of users: in the users file, or in the table beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.security.account import UsersError
from broker.security.account_table import AddedVerifiers
from broker.security.scram_verifier import ScramHash
from broker.security.user_sources import IN_FILE, IN_STORE, PATIENCE_S
from broker.security.users import Users
from tests.support.account_table import RecordingTable, unwritable_file

pytestmark = pytest.mark.requirement("SEC-02")


def known(users: Users) -> dict[str, str]:
    """Return the source of each user, by name."""
    return {name: users.source_of(name) for name in users.names()}


def test_a_new_user_is_added_to_a_file_that_can_be_written(tmp_path: Path) -> None:
    table = RecordingTable()
    users = Users(tmp_path / "users", table=table)
    users.add("ada", "engine")
    assert known(users) == {"ada": IN_FILE}
    assert users.place == f"{tmp_path / 'users'} or in the store"
    assert not table.rows.rows


def test_a_new_user_is_added_to_a_table_that_other_brokers_share(tmp_path: Path) -> None:
    """A user of the file is changed there, since the file wins."""
    table = RecordingTable()
    table.is_shared = True
    Users(tmp_path / "users").add("root", "secret")
    users = Users(tmp_path / "users", table=table)
    users.add("ada", "engine")
    users.passwd("root", "other")
    assert known(users) == {"ada": IN_STORE, "root": IN_FILE}
    assert set(table.rows.rows) == {"ada"}
    users.remove("ada")
    assert known(users) == {"root": IN_FILE}


def test_a_shared_table_that_keeps_nothing_leaves_users_to_the_file(tmp_path: Path) -> None:
    table = RecordingTable("the store keeps no users")
    table.is_shared = True
    users = Users(tmp_path / "users", table=table)
    users.add("ada", "engine")
    assert known(users) == {"ada": IN_FILE}


@pytest.mark.parametrize("missing", [True, False], ids=["no folder", "no change possible"])
def test_else_a_user_is_added_changed_and_removed_in_the_table(
    tmp_path: Path, missing: bool
) -> None:
    file = tmp_path / "no" / "users" if missing else unwritable_file(tmp_path, ("root", "x"))
    users = Users(file, table=RecordingTable())
    others = set(users.names())
    assert users.add("ada", "engine", roles=["monitor"])
    assert known(users)["ada"] == IN_STORE
    assert users.check("ada", "engine")
    assert users.roles_of("ada") == {"monitor"}
    assert users.scram_verifier("ada", ScramHash.SHA_256) is not None
    before = users.snapshot()
    assert not users.add("ada", "other")
    assert users.snapshot() is not before
    assert users.roles_of("ada") == {"monitor"}
    assert users.passwd("ada", "third", keep_old_s=60) is not None
    assert users.check("ada", "other")
    assert users.check("ada", "third")
    assert users.set_enabled("ada", enabled=False)
    assert users.version_of("ada") is None
    users.remove("ada")
    assert set(users.names()) == others
    with pytest.raises(UsersError, match=r"no user 'ada' in .* or in the store"):
        users.remove("ada")


def test_a_user_of_the_table_stays_there_once_the_file_can_be_written(tmp_path: Path) -> None:
    table = RecordingTable()
    Users(tmp_path / "no" / "users", table=table).add("ada", "engine")
    users = Users(tmp_path / "users", table=table)
    users.add("ada", "other")
    users.add("bob", "tulip")
    assert known(users) == {"ada": IN_STORE, "bob": IN_FILE}


def test_a_user_of_an_unwritable_file_is_not_changed(tmp_path: Path) -> None:
    """A row would have no effect: the file wins."""
    users = Users(unwritable_file(tmp_path, ("ada", "engine")), table=RecordingTable())
    for change in (
        lambda: users.add("ada", "other"),
        lambda: users.passwd("ada", "other"),
        lambda: users.set_enabled("ada", enabled=False),
        lambda: users.remove("ada"),
    ):
        with pytest.raises(UsersError, match="'ada' is in that file, which wins over the store"):
            change()
    assert users.check("ada", "engine")


def test_a_change_in_the_file_removes_the_row_that_it_hides(tmp_path: Path) -> None:
    """Else an old password would enter again once the file's user is removed."""
    table = RecordingTable()
    Users(tmp_path / "no" / "users", table=table).add("ada", "old")
    Users(tmp_path / "users").add("ada", "new")
    users = Users(tmp_path / "users", table=table)
    assert known(users) == {"ada": IN_FILE}
    assert not users.check("ada", "old")
    users.remove("ada")
    assert users.names() == []
    assert not table.rows.rows


def test_what_a_table_cannot_keep_is_told(tmp_path: Path) -> None:
    users = Users(tmp_path / "no" / "users", table=RecordingTable("the store keeps no users"))
    with pytest.raises(UsersError, match=r"No such file or directory; the store keeps no users$"):
        users.add("ada", "engine")
    assert users.place == str(tmp_path / "no" / "users")
    file = unwritable_file(tmp_path, ("bob", "tulip"))
    for table in (None, RecordingTable("the store keeps no users")):
        with pytest.raises(UsersError, match="File name too long"):
            Users(file, table=table).complete_scram("bob", "tulip")


# ---- verifiers ------------------------------------------------------------------------------


def test_verifiers_for_an_unwritable_file_are_added_to_the_table(tmp_path: Path) -> None:
    file, table = unwritable_file(tmp_path, ("ada", "engine")), RecordingTable()
    users = Users(file, table=table)
    version = users.version_of("ada")
    assert users.without_scram() == ["ada"]
    assert users.complete_scram("ada", "engine")
    assert not users.complete_scram("ada", "engine")
    assert users.everyone_has_scram()
    assert (users.version_of("ada"), known(users)) == (version, {"ada": IN_FILE})
    assert table.patience == [PATIENCE_S]
    assert Users(file, table=table).everyone_has_scram(), "a restart finds them"
    Users(tmp_path / "other").add("ada", "changed", scram=False)
    (tmp_path / "other").replace(file)
    assert Users(file, table=table).without_scram() == ["ada"]


def test_verifiers_replace_a_row_that_the_file_hides(tmp_path: Path) -> None:
    file, table = unwritable_file(tmp_path, ("ada", "engine")), RecordingTable()
    Users(tmp_path / "no" / "users", table=table).add("ada", "old")
    assert Users(file, table=table).complete_scram("ada", "engine")
    assert isinstance(table.rows.rows["ada"], AddedVerifiers)


def test_a_user_of_the_table_gets_verifiers(tmp_path: Path) -> None:
    users = Users(tmp_path / "no" / "users", table=RecordingTable())
    users.add("ada", "engine", scram=False)
    version = users.version_of("ada")
    assert users.complete_scram("ada", "engine")
    assert users.everyone_has_scram()
    assert users.version_of("ada") == version


def test_a_former_password_gives_no_verifiers(tmp_path: Path) -> None:
    """They would let it in for ever."""
    users = Users(tmp_path / "users")
    users.add("ada", "old", scram=False)
    users.passwd("ada", "new", keep_old_s=60, scram=False)
    assert users.check("ada", "old")
    assert not users.complete_scram("ada", "old")
    assert users.scram_verifier("ada", ScramHash.SHA_256) is None
    assert users.complete_scram("ada", "new")
