"""API tokens by management: made, listed, revoked; who may make which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.security import api_tokens
from broker.security.access import AccessRules
from broker.security.api_tokens import LIFE_MAX_S, PREFIX
from tests.support.access import ADA, OWNER
from tests.support.api import ApiClient, api_of, problem

pytestmark = pytest.mark.requirement("OPS-02")

USER = {"password": "a long password", "roles": ["monitor", "sales"]}


async def made(api: ApiClient, user: str = OWNER, **body: object) -> dict[str, object]:
    answer = await api.ask("POST", "/tokens", body, user=user)
    assert answer.status == 201, answer.body
    found = json.loads(answer.body)
    assert isinstance(found, dict)
    return found


async def test_a_token_is_made_listed_and_revoked(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        for name in ("eve", "bob"):
            await api.ask("PUT", f"/users/{name}", USER)
        new = await made(api, owner="eve", description="nightly", roles=["sales"])
        secret, token = new.pop("token"), new["name"]
        assert str(secret).startswith(PREFIX)
        other = await made(api, owner="bob")
        assert other["roles"] is None
        assert await api.get(f"/tokens/{token}") == new
        assert (new["owner"], new["state"], new["roles"]) == ("eve", "valid", ["sales"])
        assert await api.names("/tokens?owner=eve") == [token]
        assert set(await api.names("/tokens?state=valid")) == {token, other["name"]}
        assert str(secret) not in json.dumps(await api.get("/tokens"))
        await api.ask("PUT", "/users/bob", {"password": "another long password"})
        assert await api.names("/tokens?state=ended") == [other["name"]]
        assert (await api.ask("DELETE", f"/tokens/{token}")).status == 204
        gone = await api.ask("DELETE", f"/tokens/{token}")
    assert problem(gone)["status"] == 404


async def test_the_audit_names_token_and_owner_and_not_the_secret(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        await api.ask("PUT", "/users/eve", USER)
        new = await made(api, owner="eve")
        await api.ask("DELETE", f"/tokens/{new['name']}")
        events = [each for each in api.audit.events if each.action.startswith("token.")]
    created, revoked = events
    assert (created.action, revoked.action) == ("token.created", "token.revoked")
    assert created.after is not None
    assert (created.after["owner"], created.after["identity"]) == ("eve", new["name"])
    assert revoked.resource == f"token:{new['name']}"
    assert str(new["token"]) not in repr(events)


REFUSED = [
    pytest.param({"owner": "nobody"}, 409, "no user nobody", id="an unknown owner"),
    pytest.param({"owner": "eve", "roles": ["admin"]}, 409, "role admin", id="a role of others"),
    pytest.param({"owner": "eve", "expires_in_s": 59}, 422, "", id="too short"),
    pytest.param({"owner": "eve", "expires_in_s": LIFE_MAX_S + 1}, 422, "", id="too long"),
    pytest.param({"owner": "eve", "description": "x" * 201}, 422, "", id="a long description"),
    pytest.param({"owner": "eve", "description": "a\u202eb"}, 400, "control", id="of control"),
    pytest.param({"owner": "eve", "roles": ["x"] * 65}, 422, "", id="too many roles"),
]


@pytest.mark.parametrize(("body", "status", "reason"), REFUSED)
async def test_what_is_refused(
    tmp_path: Path, body: dict[str, object], status: int, reason: str
) -> None:
    async with api_of(tmp_path) as api:
        await api.ask("PUT", "/users/eve", USER)
        answer = await api.ask("POST", "/tokens", body)
        assert (answer.status, await api.names("/tokens")) == (status, [])
    assert reason in str(problem(answer)["detail"])


async def test_a_token_for_another_user_needs_the_right_to_edit_users(tmp_path: Path) -> None:
    rights = "view,edit management:tokens"
    async with api_of(tmp_path, rights) as api:
        for name in ("eve", ADA):
            await api.ask("PUT", f"/users/{name}", USER)
        foreign = await api.ask("POST", "/tokens", {"owner": "eve"}, user=ADA)
        own = await made(api, ADA)
    assert (foreign.status, own["owner"]) == (403, ADA)
    async with api_of(tmp_path, rights, "edit management:users") as api:
        assert (await made(api, ADA, owner="eve"))["owner"] == "eve"


async def test_a_token_may_name_a_role_of_the_rules_file(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        await api.ask("PUT", "/users/eve", USER)
        api.broker.container.access = AccessRules(roles={"ops": ["eve"]})
        new = await made(api, owner="eve", roles=["sales", "ops"])
    assert new["roles"] == ["sales", "ops"]


async def test_the_limit_for_one_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_tokens, "TOKENS_OF_OWNER_MAX", 2)
    async with api_of(tmp_path) as api:
        await api.ask("PUT", "/users/eve", USER)
        old = [(await made(api, owner="eve"))["name"] for _ in range(2)]
        full = await api.ask("POST", "/tokens", {"owner": "eve"})
        assert "jms-broker token revoke" in str(problem(full)["detail"])
        await api.ask("PUT", "/users/eve", {"password": "another long password"})
        new = await made(api, owner="eve")
        assert await api.names("/tokens") == [new["name"]]
    assert new["name"] not in old
