"""API tokens: when they log in, with which roles, and how many there may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.security import api_tokens
from broker.security.api_tokens import (
    ENDED,
    EXPIRED,
    PREFIX,
    VALID,
    ApiTokenError,
    ApiTokens,
    NewToken,
    digest_of,
    new_token,
)
from broker.security.users import Users

pytestmark = pytest.mark.requirement("OPS-02")

NOW_MS = 1_750_000_000_000


@pytest.fixture
def users(tmp_path: Path) -> Users:
    known = Users(tmp_path / "users", first=("first", "a first password"))
    known.add("ada", "a long password", roles=["monitor", "sales"])
    return known


def made(users: Users, owner: str = "ada", **given: object) -> NewToken:
    roles = given.get("roles")
    assert roles is None or isinstance(roles, list)
    life_s = given.get("life_s", 60)
    assert isinstance(life_s, int)
    file_roles = given.get("file_roles", [])
    assert isinstance(file_roles, list)
    return new_token(
        owner,
        users,
        roles=roles,
        file_roles=file_roles,
        description="",
        expires_in_s=life_s,
        wall_ms=NOW_MS,
    )


def test_a_token_is_random_and_only_its_digest_is_kept(users: Users) -> None:
    one, other = made(users), made(users)
    assert one.secret.startswith(PREFIX)
    assert len(one.secret) == len(PREFIX) + 43
    assert one.secret != other.secret
    assert one.token.id != other.token.id
    assert one.token.digest == digest_of(one.secret)
    assert one.secret not in repr(one.token)


def test_it_logs_in_until_it_expires(users: Users) -> None:
    tokens, new = ApiTokens(), made(users)
    assert tokens.log_in(new.secret, users, NOW_MS) is None
    tokens.add(new.token)
    assert tokens.used_at_ms(new.token) is None
    assert tokens.log_in(new.secret, users, NOW_MS + 59_999) == new.token
    assert tokens.used_at_ms(new.token) == NOW_MS + 59_999
    assert new.token.state(users, NOW_MS + 60_000) == EXPIRED
    assert tokens.log_in(new.secret, users, NOW_MS + 60_000) is None
    assert tokens.log_in(new.secret + "x", users, NOW_MS) is None
    assert tokens.log_in(f"{PREFIX}\ud800", users, NOW_MS) is None


def test_it_ends_when_it_is_revoked(users: Users) -> None:
    tokens, new = ApiTokens(), made(users)
    tokens.add(new.token)
    tokens.remove(new.token)
    tokens.remove(new.token)
    assert tokens.log_in(new.secret, users, NOW_MS) is None
    assert (tokens.get(new.token.id), tokens.all()) == (None, [])


@pytest.mark.parametrize("change", ["another password", "disabled", "removed", "added again"])
def test_it_ends_with_the_password_of_its_owner(users: Users, change: str) -> None:
    token = made(users).token
    assert token.state(users, NOW_MS) == VALID
    if change == "another password":
        users.passwd("ada", "another long password")
    elif change == "disabled":
        users.set_enabled("ada", enabled=False)
    else:
        users.remove("ada")
        if change == "added again":
            users.add("ada", "a long password")
    assert token.state(users, NOW_MS) == ENDED


def test_that_of_the_first_user_outlasts_the_process(users: Users, tmp_path: Path) -> None:
    token = made(users, "first").token
    later = Users(tmp_path / "users", first=("first", "another password"))
    assert token.state(later, NOW_MS) == VALID
    without = Users(tmp_path / "users")
    assert token.state(without, NOW_MS) == ENDED


def test_it_has_the_roles_of_its_owner_or_some_of_them(users: Users) -> None:
    assert made(users).token.limit() is None
    assert made(users, roles=["sales"]).token.limit() == frozenset({"sales"})
    assert made(users, roles=[]).token.limit() == frozenset()


def test_it_may_have_roles_that_the_rules_file_gives_to_its_owner(users: Users) -> None:
    token = made(users, roles=["ops", "sales"], file_roles=["ops"]).token
    assert token.roles == ("ops", "sales")
    with pytest.raises(ApiTokenError, match="not have the role ops"):
        made(users, roles=["ops", "sales"])


@pytest.mark.parametrize(
    ("owner", "roles", "reason"),
    [
        pytest.param("eve", None, "no user eve", id="no such user"),
        pytest.param("ada", ["admin"], "not have the role admin", id="a role of others"),
    ],
)
def test_a_token_gives_no_right_that_its_owner_lacks(
    users: Users, owner: str, roles: list[str] | None, reason: str
) -> None:
    with pytest.raises(ApiTokenError, match=reason):
        made(users, owner, roles=roles)


def test_a_user_has_so_many(users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_tokens, "TOKENS_OF_OWNER_MAX", 2)
    tokens, first, second = ApiTokens(), made(users), made(users, life_s=120)
    for each in (first, second):
        assert tokens.room_for("ada", users, NOW_MS) == []
        tokens.add(each.token)
    with pytest.raises(ApiTokenError, match="jms-broker token revoke"):
        tokens.room_for("ada", users, NOW_MS)
    assert tokens.room_for("first", users, NOW_MS) == []
    assert tokens.room_for("ada", users, NOW_MS + 60_000) == [first.token]


def test_a_broker_has_so_many(users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_tokens, "TOKENS_MAX", 1)
    tokens = ApiTokens()
    tokens.add(made(users).token)
    with pytest.raises(ApiTokenError, match="the broker has 1 API tokens"):
        tokens.room_for("first", users, NOW_MS)
