"""Logins over HTTP by API tokens: with the roles of the token, until it is revoked (issue 21)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.app import App
from broker.security.access import AccessRules
from broker.security.users import Users
from broker.settings import given_settings
from tests.support.http import Answer, ask, basic

pytestmark = pytest.mark.requirement("OPS-02")

ROOT, PASSWORD = "root", "a long password"


@asynccontextmanager
async def broker(folder: Path, rules: str = "") -> AsyncIterator[App]:
    """Run a broker with an SQLite store and the user ROOT, an administrator and a monitor."""
    file = folder / "users"
    if not file.exists():
        Users(file).add(ROOT, PASSWORD, roles=["admin", "monitor"])
    store = f"sqlite:///{folder / 'store.db'}"
    settings = {"port": 0, "users_file": file, "store": store, "http": {"port": 0}}
    if rules:
        (folder / "acl.toml").write_text(rules)
        settings["acl_file"] = folder / "acl.toml"
    app = App(given_settings(**settings))
    await app.start()
    try:
        yield app
    finally:
        await app.stop()


async def request(
    app: App, method: str, path: str, login: Mapping[str, str], body: object = None
) -> Answer:
    assert app.http is not None
    data = None if body is None else json.dumps(body).encode()
    headers = {**login, **({} if body is None else {"content-type": "application/json"})}
    return await ask(f"{app.http.url()}/api/v1{path}", headers, method, body=data)


def bearer(token: object) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def made(app: App, **body: object) -> dict[str, object]:
    answer = await request(app, "POST", "/tokens", basic(ROOT, PASSWORD), body)
    assert answer.status == 201, answer.body
    found = json.loads(answer.body)
    assert isinstance(found, dict)
    return found


async def statuses(app: App, token: object) -> list[int]:
    """Return the statuses of a request that a monitor may send, and of one of administrators."""
    asked: tuple[tuple[str, str, object], ...] = (
        ("GET", "/queues", None),
        ("PUT", "/queues/made", {}),
    )
    return [
        (await request(app, method, path, bearer(token), body)).status
        for method, path, body in asked
    ]


async def test_a_token_logs_in_with_its_roles_also_after_a_restart(tmp_path: Path) -> None:
    async with broker(tmp_path) as app:
        whole, part = await made(app), await made(app, roles=["monitor"])
        assert await statuses(app, part["token"]) == [200, 403]
        assert await statuses(app, whole["token"]) == [200, 201]
        shown = await request(app, "GET", f"/tokens/{part['name']}", basic(ROOT, PASSWORD))
        assert json.loads(shown.body)["used_at"] is not None
    async with broker(tmp_path) as app:
        assert await statuses(app, part["token"]) == [200, 403]
        path = f"/tokens/{part['name']}"
        assert (await request(app, "DELETE", path, basic(ROOT, PASSWORD))).status == 204
        assert await statuses(app, part["token"]) == [401, 401]
    async with broker(tmp_path) as app:
        assert await statuses(app, part["token"]) == [401, 401]
        assert await statuses(app, whole["token"]) == [200, 200]


RULES = f"""
[roles]
ops = ["{ROOT}"]

[[rule]]
id = "operators"
who = ["role:ops", "user:{ROOT}"]
can = ["view", "edit", "create"]
on = ["management:*", "queue:#"]
"""


async def test_a_token_has_roles_of_the_rules_file_only_if_it_names_them(tmp_path: Path) -> None:
    async with broker(tmp_path, RULES) as app:
        whole, part, ops = [
            (await made(app, **given))["token"]
            for given in ({}, {"roles": ["monitor"]}, {"roles": ["ops"]})
        ]
        assert await statuses(app, part) == [200, 403]
        evil = {"password": PASSWORD, "roles": ["admin"]}
        assert (await request(app, "PUT", "/users/evil", bearer(part), evil)).status == 403
        assert await statuses(app, ops) == [200, 201]
        assert await statuses(app, whole) == [200, 200]
        app.container.adopt_access(AccessRules())
        assert await statuses(app, ops) == [403, 403], "the owner has lost the role"


async def test_a_token_makes_no_token(tmp_path: Path) -> None:
    async with broker(tmp_path) as app:
        token = (await made(app))["token"]
        answer = await request(app, "POST", "/tokens", bearer(token), {})
    assert answer.status == 403
    assert b"log in with a password" in answer.body


async def test_a_token_ends_with_the_password(tmp_path: Path) -> None:
    async with broker(tmp_path) as app:
        token = (await made(app))["token"]
        assert app.login is not None
        app.login.users.passwd(ROOT, "another long password")
        assert await statuses(app, token) == [401, 401]


async def test_the_mechanisms_of_the_owner_must_allow_tokens(tmp_path: Path) -> None:
    async with broker(tmp_path) as app:
        token = (await made(app))["token"]
        file = tmp_path / "users"
        text = file.read_text()
        for mechanisms, expected in (('["PLAIN", "OAUTHBEARER"]', 200), ('["PLAIN"]', 401)):
            name = f'name = "{ROOT}"\n'
            assert name in text
            file.write_text(text.replace(name, f"{name}mechanisms = {mechanisms}\n"))
            assert (await statuses(app, token))[0] == expected


async def test_a_wrong_token_does_not_delay_others(tmp_path: Path) -> None:
    async with broker(tmp_path) as app:
        token = (await made(app))["token"]
        wrong = [(await request(app, "GET", "/queues", bearer("jmsb_x"))).status for _ in range(3)]
        assert wrong == [401, 401, 503]
        assert (await request(app, "GET", "/queues", bearer(token))).status == 200
