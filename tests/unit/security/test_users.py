"""Users: whose password is right, and changes of users."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from broker.security.account import UsersError
from broker.security.passwords import hash_of
from broker.security.scram import ScramChallenge, ScramExchange
from broker.security.scram_verifier import ITERATIONS, ScramHash, make_verifier
from broker.security.successes import SUCCESS_MS
from broker.security.users import KEEP_OLD_S_MAX, Users
from tests.support.clock import SimulatedClock
from tests.support.scram_client import FormulaClient


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


def test_a_file_spoilt_while_the_broker_runs_locks_nobody_out(file: Path) -> None:
    users = Users(file)
    users.add("alice", "sesame")
    assert users.check("alice", "sesame")
    file.write_text("nonsense\n")
    assert users.check("alice", "sesame")
    assert not users.check("bob", "sesame")


def test_a_bad_name_or_password_is_not_written(file: Path) -> None:
    for name, password in (("a:b", "x"), ("alice", "")):
        with pytest.raises(UsersError):
            Users(file).add(name, password)
    assert not file.exists()


# ---- remembered passwords -------------------------------------------------------------------


def test_a_right_password_is_recalled_for_five_minutes(file: Path) -> None:
    clock = SimulatedClock()
    users = Users(file, clock=clock)
    users.add("alice", "sesame")
    assert not users.recall("alice", "sesame"), "it has not been checked"
    assert users.check("alice", "sesame")
    clock.advance(SUCCESS_MS - 1)
    assert users.recall("alice", "sesame")
    assert not users.recall("alice", "Sesame")
    clock.advance(1)
    assert not users.recall("alice", "sesame")


def write_another_hash(file: Path) -> None:
    """Replace the password in the file, and leave the version, as an operator may."""
    text = file.read_text()
    old = next(line for line in text.splitlines() if line.startswith("password"))
    file.write_text(text.replace(old, f'password = "{hash_of("other")}"'))


CHANGES: list[object] = [
    pytest.param(lambda file: Users(file).passwd("alice", "other"), id="a new password"),
    pytest.param(lambda file: Users(file).passwd("alice", "sesame"), id="the same one, again"),
    pytest.param(lambda file: Users(file).set_enabled("alice", enabled=False), id="disabled"),
    pytest.param(lambda file: Users(file).remove("alice"), id="removed"),
    pytest.param(write_another_hash, id="another hash in the file"),
    pytest.param(Path.unlink, id="no file any more"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_ends_what_is_remembered(file: Path, change: Callable[[Path], object]) -> None:
    running = Users(file)
    running.add("alice", "sesame")
    assert running.check("alice", "sesame")
    change(file)
    assert not running.recall("alice", "sesame")


def test_a_user_who_is_removed_and_added_again_is_another(file: Path) -> None:
    running = Users(file)
    running.add("alice", "sesame")
    assert running.check("alice", "sesame")
    version = running.version_of("alice")
    Users(file).remove("alice")
    Users(file).add("alice", "tulip")
    assert not running.recall("alice", "sesame")
    assert running.version_of("alice") != version


def test_the_first_user_is_recalled_too(file: Path) -> None:
    users = Users(file, first=("root", "sesame"))
    assert users.check("root", "sesame")
    assert users.recall("root", "sesame")
    assert not users.recall("root", "other")


# ---- a former password ----------------------------------------------------------------------


def enters_with_scram(users: Users, name: str, password: str, hash_: ScramHash) -> bool:
    """Return whether a client logs in; it computes what the formulas of RFC 5802 say."""
    server = ScramExchange(hash_, users.scram_verifiers, salt_secret=users.salt_secret())
    client = FormulaClient(hash_, name, password)
    step = server.start(client.first())
    assert isinstance(step, ScramChallenge)
    step = server.answer(client.final(step.data))
    return isinstance(step, ScramChallenge) and client.knows(step.data)


def enters(users: Users, name: str, password: str) -> set[str]:
    """Return the mechanisms by which a client logs in."""
    found = {each.value for each in ScramHash if enters_with_scram(users, name, password, each)}
    return found | ({"PLAIN"} if users.check(name, password) else set())


ALL = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}


def test_both_passwords_enter_until_the_old_one_ends(file: Path) -> None:
    clock = SimulatedClock()
    users = Users(file, clock=clock)
    users.add("alice", "one")
    until = users.passwd("alice", "two", keep_old_s=60)
    assert until is not None
    assert int(until.timestamp()) == clock.wall_ms() // 1000 + 60
    assert enters(users, "alice", "one") == enters(users, "alice", "two") == ALL
    assert users.recall("alice", "one")
    assert users.recall("alice", "two")
    assert users.everyone_has_scram()
    clock.advance(60_000)
    assert enters(users, "alice", "one") == set()
    assert not users.recall("alice", "one"), "it was remembered no longer than it was valid"
    assert enters(users, "alice", "two") == ALL


def test_a_second_change_ends_the_first_password(file: Path) -> None:
    users = Users(file)
    users.add("alice", "one")
    users.passwd("alice", "two", keep_old_s=3600)
    users.passwd("alice", "three", keep_old_s=3600)
    assert enters(users, "alice", "one") == set()
    assert enters(users, "alice", "two") == enters(users, "alice", "three") == ALL
    users.passwd("alice", "four")
    assert enters(users, "alice", "three") == set()


def test_an_old_password_without_scram_keeps_scram_from_being_offered(file: Path) -> None:
    """A client that prefers SCRAM could not enter with the old password otherwise."""
    clock = SimulatedClock()
    users = Users(file, clock=clock)
    users.add("alice", "one", scram=False)
    users.passwd("alice", "two", keep_old_s=60)
    assert users.without_scram() == ["alice"]
    clock.advance(60_000)
    assert users.without_scram() == []


def test_verifiers_of_other_programs_keep_their_iterations_meanwhile(file: Path) -> None:
    users = Users(file)
    users.add("alice", "one")
    text = file.read_text()
    for hash_ in ScramHash:
        verifier = users.scram_verifier("alice", hash_)
        assert verifier is not None
        fewer = make_verifier(hash_, "one", salt=verifier.salt, iterations=4096)
        text = text.replace(verifier.text, fewer.text)
    file.write_text(text)
    users.passwd("alice", "two", keep_old_s=60)
    assert enters(users, "alice", "one") == enters(users, "alice", "two") == ALL
    users.passwd("alice", "three")
    changed = users.scram_verifier("alice", ScramHash.SHA_256)
    assert changed is not None
    assert changed.iterations == ITERATIONS


@pytest.mark.parametrize("seconds", [-1, KEEP_OLD_S_MAX + 1])
def test_an_old_password_is_kept_for_keep_old_s_max(file: Path, seconds: int) -> None:
    users = Users(file)
    users.add("alice", "one")
    with pytest.raises(UsersError, match="at most 604800 seconds"):
        users.passwd("alice", "two", keep_old_s=seconds)
    assert users.passwd("alice", "two", keep_old_s=KEEP_OLD_S_MAX) is not None


def test_the_password_of_nobody_cannot_be_changed(file: Path) -> None:
    with pytest.raises(UsersError, match="no user 'alice'"):
        Users(file).passwd("alice", "x")
    assert not file.exists()


# ---- SCRAM ----------------------------------------------------------------------------------

LISTED = [
    # users as (name, scram); the first user's password; who lacks SCRAM; whether it is listed
    pytest.param([], None, [], False, id="no users"),
    pytest.param([("a", True), ("b", True)], None, [], True, id="all have verifiers"),
    pytest.param([("a", True), ("b", False)], None, ["b"], False, id="one has none"),
    pytest.param([], "sesame", [], True, id="the first user of the settings"),
    pytest.param([("a", False)], "sesame", ["a"], False, id="that user, and one without"),
    pytest.param([], "p\N{PILE OF POO}", ["root"], False, id="a password SCRAM cannot carry"),
]


@pytest.mark.parametrize(("given", "first", "lacking", "listed"), LISTED)
def test_scram_is_listed_if_everyone_can_use_it(
    file: Path,
    given: list[tuple[str, bool]],
    first: str | None,
    lacking: list[str],
    listed: bool,
) -> None:
    users = Users(file, first=None if first is None else ("root", first))
    for name, scram in given:
        users.add(name, "x", scram=scram)
    assert users.without_scram() == lacking
    assert users.everyone_has_scram() is listed


def test_users_that_never_use_scram_do_not_count(file: Path) -> None:
    users = Users(file)
    for name in ("disabled", "plain", "certificate"):
        users.add(name, "x", scram=False)
    users.set_enabled("disabled", enabled=False)
    text = file.read_text().replace('name = "plain"', 'name = "plain"\nmechanisms = ["PLAIN"]')
    head, _, tail = text.partition('name = "certificate"')
    tail = "\n".join(line for line in tail.splitlines() if not line.startswith("password"))
    file.write_text(f'{head}name = "certificate"{tail}\n')
    assert users.without_scram() == []


def test_lines_of_earlier_versions_have_no_scram(file: Path) -> None:
    file.write_text(f"alice:{hash_of('sesame')}\nbob:{hash_of('tulip')}:administrator\n")
    users = Users(file)
    assert users.without_scram() == ["alice", "bob"]
    version = users.version_of("alice")
    assert users.complete_scram("alice", "sesame")
    assert not users.complete_scram("alice", "sesame")
    assert enters(users, "alice", "sesame") == ALL
    assert users.version_of("alice") == version, "the password is the same"
    assert users.without_scram() == ["bob"]
    assert users.check("bob", "tulip")
    assert users.is_administrator("bob")


def test_a_password_scram_cannot_carry_is_told_with_what_to_do(file: Path) -> None:
    users = Users(file)
    for name, password in (("alice", "p\N{PILE OF POO}"), ("\N{ROMAN NUMERAL NINE}", "x")):
        with pytest.raises(UsersError, match="leave SCRAM out with --no-scram"):
            users.add(name, password)
        assert users.add(name, password, scram=False)
        assert users.check(name, password)
        with pytest.raises(UsersError, match="SASLprep"):
            users.complete_scram(name, password)


def test_nothing_is_completed_for_users_that_are_not_in_the_file(file: Path) -> None:
    users = Users(file, first=("root", "x"))
    assert not users.complete_scram("root", "x")
    assert not users.complete_scram("alice", "x")


@pytest.mark.parametrize("hash_", ScramHash)
def test_who_has_no_verifier(file: Path, hash_: ScramHash) -> None:
    users = Users(file)
    users.add("alice", "x")
    users.add("bob", "x", scram=False)
    assert users.scram_verifier("alice", hash_) is not None
    assert users.scram_verifier("bob", hash_) is None
    assert users.scram_verifier("carol", hash_) is None
    users.set_enabled("alice", enabled=False)
    assert users.scram_verifier("alice", hash_) is None


def test_the_salts_of_unknown_users_survive_a_restart(file: Path) -> None:
    assert Users(file).salt_secret() == Users(file).salt_secret()
    Users(file).add("alice", "x")
    secret = Users(file).salt_secret()
    Users(file).add("bob", "x")
    assert Users(file).salt_secret() == secret


# ---- who may do what ------------------------------------------------------------------------


def test_a_disabled_user_does_not_enter_and_comes_back_with_another_version(file: Path) -> None:
    users = Users(file)
    users.add("alice", "sesame", administrator=True)
    version = users.version_of("alice")
    assert users.is_enabled("alice")
    assert users.set_enabled("alice", enabled=False)
    assert not users.set_enabled("alice", enabled=False)
    assert enters(users, "alice", "sesame") == set()
    assert (users.is_enabled("alice"), users.version_of("alice")) == (False, None)
    assert not users.is_administrator("alice")
    assert not users.is_empty(), "anonymous clients must not enter for it"
    users.set_enabled("alice", enabled=True)
    assert enters(users, "alice", "sesame") == ALL
    assert users.version_of("alice") not in (None, version)


def test_roles(file: Path) -> None:
    users = Users(file, first=("root", "x"))
    users.add("alice", "x", roles=["orders", "admin", "orders"])
    users.add("bob", "x")
    assert users.roles_of("alice") == {"orders", "admin"}
    assert users.roles_of("bob") == {"application"}
    assert users.roles_of("root") == {"admin"}
    assert users.roles_of("carol") == frozenset()
    assert users.is_administrator("alice")
    users.add("alice", "y", roles=["orders"])
    assert not users.is_administrator("alice")
    users.passwd("alice", "z")
    assert users.roles_of("alice") == {"orders"}


def test_other_roles_leave_the_password_and_the_sessions(file: Path) -> None:
    users = Users(file)
    users.add("alice", "sesame", roles=["orders"])
    version = users.version_of("alice")
    assert users.set_roles("alice", ["audit", "orders", "audit"])
    assert not users.set_roles("alice", ["audit", "orders"])
    assert users.roles_of("alice") == {"audit", "orders"}
    assert users.version_of("alice") == version
    assert enters(users, "alice", "sesame") == ALL
    with pytest.raises(UsersError, match="is no role"):
        users.set_roles("alice", ["a b"])
    with pytest.raises(UsersError, match="no user"):
        users.set_roles("carol", ["orders"])


REFUSED_ADDS = [
    pytest.param({"roles": ["a b"]}, "is no role", id="a role"),
    pytest.param({"certificates": [""]}, "the name in a certificate", id="a certificate"),
]


@pytest.mark.parametrize(("given", "told"), REFUSED_ADDS)
def test_what_is_not_allowed_is_not_written(
    file: Path, given: dict[str, list[str]], told: str
) -> None:
    with pytest.raises(UsersError, match=told):
        Users(file).add("alice", "x", **given)  # type: ignore[arg-type]
    assert not file.exists()


def test_certificates_name_users(file: Path) -> None:
    users = Users(file)
    users.add("alice", "x", certificates=["a.example", "shared.example"])
    users.add("bob", "x", certificates=["shared.example"])
    assert users.named_by_certificate("a.example") == ["alice"]
    assert users.named_by_certificate("A.example") == []
    assert users.named_by_certificate("shared.example") == ["alice", "bob"]
    users.set_enabled("alice", enabled=False)
    assert users.named_by_certificate("shared.example") == ["bob"]
    users.add("bob", "y")
    assert users.named_by_certificate("shared.example") == ["bob"], "a new password keeps them"


def test_mechanisms_restrict_a_user(file: Path) -> None:
    users = Users(file, first=("root", "x"))
    users.add("alice", "sesame")
    mechanisms = 'mechanisms = ["SCRAM-SHA-512"]'
    file.write_text(file.read_text().replace("enabled = true", f"enabled = true\n{mechanisms}"))
    assert enters(users, "alice", "sesame") == {"SCRAM-SHA-512"}
    assert users.may_use("alice", "SCRAM-SHA-512")
    assert not users.may_use("alice", "PLAIN")
    assert not users.may_use("carol", "PLAIN")
    assert users.may_use("root", "PLAIN")


def test_the_version_of_the_first_user_is_that_of_its_password(file: Path) -> None:
    versions = [
        Users(file, first=("root", password)).version_of("root") for password in ("x", "x", "y")
    ]
    assert versions[0] == versions[1] != versions[2]
    assert Users(file).version_of("root") is None


def test_the_first_user_is_changed_by_no_command(file: Path) -> None:
    users = Users(file, first=("root", "x"))
    for change in (
        lambda: users.add("root", "y"),
        lambda: users.passwd("root", "y"),
        lambda: users.set_enabled("root", enabled=False),
    ):
        with pytest.raises(UsersError, match="in the broker's settings, which win"):
            change()
