"""Remembered passwords: how long, for which credential, and how many."""

import pytest

from broker.security.successes import (
    PASSWORDS_MAX,
    SUCCESS_MS,
    USERS_REMEMBERED_MAX,
    Successes,
)

NOW = 1_000_000

RECALLS = [
    # user, password, credential, ms later, expected
    pytest.param("ada", "engine", "1", 0, True, id="at once"),
    pytest.param("ada", "engine", "1", SUCCESS_MS - 1, True, id="just before the end"),
    pytest.param("ada", "engine", "1", SUCCESS_MS, False, id="at the end"),
    pytest.param("ada", "Engine", "1", 0, False, id="another password"),
    pytest.param("ada", "", "1", 0, False, id="no password"),
    pytest.param("ada", "\udc80", "1", 0, False, id="half a character"),
    pytest.param("bob", "engine", "1", 0, False, id="another user"),
    pytest.param("ada", "engine", "2", 0, False, id="a credential that has changed"),
]


@pytest.mark.parametrize(("user", "password", "credential", "later_ms", "expected"), RECALLS)
def test_a_password_is_recalled(
    user: str, password: str, credential: str, later_ms: int, expected: bool
) -> None:
    successes = Successes()
    successes.remember("ada", "engine", credential="1", until_ms=NOW + SUCCESS_MS)
    now_ms = NOW + later_ms
    assert successes.recall(user, password, credential=credential, now_ms=now_ms) is expected


def test_a_changed_credential_is_forgotten_for_ever() -> None:
    successes = Successes()
    successes.remember("ada", "engine", credential="1", until_ms=NOW + 1)
    assert not successes.recall("ada", "engine", credential="2", now_ms=NOW)
    assert not successes.recall("ada", "engine", credential="1", now_ms=NOW)
    assert len(successes) == 0


def test_using_it_does_not_make_it_last() -> None:
    successes = Successes()
    successes.remember("ada", "engine", credential="1", until_ms=NOW + 2)
    assert successes.recall("ada", "engine", credential="1", now_ms=NOW + 1)
    assert not successes.recall("ada", "engine", credential="1", now_ms=NOW + 2)


def recalled(successes: Successes, passwords: list[str]) -> list[str]:
    return [each for each in passwords if successes.recall("ada", each, credential="1", now_ms=NOW)]


def test_passwords_max_passwords_of_a_user_are_remembered() -> None:
    successes = Successes()
    passwords = [f"password {number}" for number in range(PASSWORDS_MAX + 1)]
    for each in [*passwords, passwords[-1]]:
        successes.remember("ada", each, credential="1", until_ms=NOW + 1)
    assert recalled(successes, passwords) == passwords[1:]


def test_users_remembered_max_users_are_and_the_idle_one_is_dropped() -> None:
    successes = Successes()
    for user in ["ada", "idle", *(str(each) for each in range(USERS_REMEMBERED_MAX - 2))]:
        successes.remember(user, "x", credential="1", until_ms=NOW + 1)
    assert recalled(successes, ["x"]) == ["x"], "ada is used"
    successes.remember("one more", "x", credential="1", until_ms=NOW + 1)
    assert len(successes) == USERS_REMEMBERED_MAX
    assert recalled(successes, ["x"]) == ["x"]
    assert not successes.recall("idle", "x", credential="1", now_ms=NOW)


def test_no_password_is_kept() -> None:
    successes = Successes()
    successes.remember("ada", "engine", credential="1", until_ms=NOW + 1)
    assert "engine" not in repr(vars(successes))
