"""Accounts: names, roles and certificates that are allowed, and when a version changes."""

from datetime import UTC, datetime, timedelta

import pytest

from broker.security.account import (
    CERTIFICATE_BYTES_MAX,
    CERTIFICATES_MAX,
    MECHANISMS,
    NAME_BYTES_MAX,
    ROLE_CHARS_MAX,
    ROLES_MAX,
    FormerVerifiers,
    UserAccount,
    Verifiers,
    as_datetime,
    refusal_of_certificates,
    refusal_of_mechanisms,
    refusal_of_name,
    refusal_of_roles,
)

NOW = datetime(2025, 6, 15, 15, 6, 40, 123_000, UTC)

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
    pytest.param("a" * NAME_BYTES_MAX, True, id="as long as may be"),
    pytest.param("a" * (NAME_BYTES_MAX + 1), False, id="too long"),
]


@pytest.mark.parametrize(("name", "fine"), NAMES)
def test_names(name: str, fine: bool) -> None:
    assert (refusal_of_name(name) is None) is fine


ROLES = [
    pytest.param((), True, id="none"),
    pytest.param(("admin", "orders-app", "a.b_c", "7"), True, id="several"),
    pytest.param(("x" * ROLE_CHARS_MAX,), True, id="as long as may be"),
    pytest.param(("x" * (ROLE_CHARS_MAX + 1),), False, id="too long"),
    pytest.param(("",), False, id="empty"),
    pytest.param(("-x",), False, id="a dash at the beginning"),
    pytest.param(("a b",), False, id="a space"),
    pytest.param(("role:x",), False, id="a colon"),
    pytest.param(("ä",), False, id="beyond ASCII"),
    pytest.param(("a\n",), False, id="a line end"),
    pytest.param(tuple(f"r{number}" for number in range(ROLES_MAX)), True, id="ROLES_MAX"),
    pytest.param(tuple(f"r{number}" for number in range(ROLES_MAX + 1)), False, id="too many"),
]


@pytest.mark.parametrize(("roles", "fine"), ROLES)
def test_roles(roles: tuple[str, ...], fine: bool) -> None:
    assert (refusal_of_roles(roles) is None) is fine


CERTIFICATES = [
    pytest.param((), True, id="none"),
    pytest.param(("svc.example", "spiffe://example/orders", "CN of Ada"), True, id="several"),
    pytest.param(("x" * CERTIFICATE_BYTES_MAX,), True, id="as long as may be"),
    pytest.param(("x" * (CERTIFICATE_BYTES_MAX + 1),), False, id="too long"),
    pytest.param(("",), False, id="empty"),
    pytest.param(("a\0.example",), False, id="NUL"),
    pytest.param(("x",) * CERTIFICATES_MAX, True, id="CERTIFICATES_MAX"),
    pytest.param(("x",) * (CERTIFICATES_MAX + 1), False, id="too many"),
]


@pytest.mark.parametrize(("names", "fine"), CERTIFICATES)
def test_certificates(names: tuple[str, ...], fine: bool) -> None:
    assert (refusal_of_certificates(names) is None) is fine


@pytest.mark.parametrize(
    ("mechanisms", "fine"),
    [
        pytest.param(MECHANISMS, True, id="all"),
        pytest.param((), True, id="none: the user cannot log in"),
        pytest.param(("plain",), False, id="small letters"),
        pytest.param(("ANONYMOUS",), False, id="one without a user"),
        pytest.param(("SCRAM-SHA-1",), False, id="one that is not built"),
    ],
)
def test_mechanisms(mechanisms: tuple[str, ...], fine: bool) -> None:
    assert (refusal_of_mechanisms(mechanisms) is None) is fine


MAY_USE = [
    pytest.param(UserAccount(name="a"), True, id="any, unless the file says so"),
    pytest.param(UserAccount(name="a", mechanisms=("PLAIN",)), True, id="the one that is named"),
    pytest.param(UserAccount(name="a", mechanisms=("EXTERNAL",)), False, id="not another"),
    pytest.param(UserAccount(name="a", mechanisms=()), False, id="none of none"),
    pytest.param(UserAccount(name="a", enabled=False), False, id="none if it is disabled"),
]


@pytest.mark.parametrize(("account", "expected"), MAY_USE)
def test_whether_a_user_may_use_plain(account: UserAccount, expected: bool) -> None:
    assert account.may_use("PLAIN") is expected


@pytest.mark.parametrize(
    ("left", "enters"),
    [(timedelta(seconds=1), True), (timedelta(0), False), (timedelta(days=-1), False)],
)
def test_a_former_password_enters_until_its_time(left: timedelta, enters: bool) -> None:
    former = FormerVerifiers(until=NOW + left, verifiers=Verifiers(password="$argon2"))
    account = UserAccount(name="a", previous=former)
    assert (account.former(NOW) is not None) is enters
    assert UserAccount(name="a").former(NOW) is None


VERSIONS = [
    pytest.param(0, 1_750_000_000_123, id="a first change: its time in ms"),
    pytest.param(1_749_999_999_999, 1_750_000_000_123, id="a change of an earlier one"),
    pytest.param(1_750_000_000_123, 1_750_000_000_124, id="two changes in one millisecond"),
    pytest.param(9_000_000_000_000, 9_000_000_000_001, id="a clock that was set back"),
]


@pytest.mark.parametrize(("before", "after"), VERSIONS)
def test_a_version_only_grows(before: int, after: int) -> None:
    changed = UserAccount(name="a", credential_version=before).changed(NOW)
    assert changed.credential_version == after
    assert changed.changed_at == NOW.replace(microsecond=0)


def test_a_time_of_the_clock_is_one_in_utc() -> None:
    assert as_datetime(1_750_000_000_123) == NOW.replace(microsecond=123_000)
