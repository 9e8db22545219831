"""Users over HTTP: added, changed, disabled, removed; never shown with a password."""

from pathlib import Path

import pytest

from broker.http.api.problems import SLUGS
from tests.support.access import ADA
from tests.support.api import api_of, problem

pytestmark = pytest.mark.requirement("OPS-01")

NEW = {"password": "a long password", "roles": ["monitor"]}


async def test_a_user_comes_and_goes(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        made = await api.ask("PUT", "/users/eve", NEW)
        assert (made.status, b"a long password" in made.body) == (201, False)
        assert (await api.get("/users/eve"))["roles"] == ["monitor"]
        off = await api.ask("PUT", "/users/eve", {"enabled": False})
        assert (off.status, await api.names("/users?enabled=false")) == (200, ["eve"])
        assert (await api.ask("DELETE", "/users/eve")).status == 204
        assert await api.names("/users") == []


async def test_a_user_is_changed_only_as_it_was_read(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        made = await api.ask("PUT", "/users/eve", NEW, headers={"if-none-match": "*"})
        tag = {"if-match": made.headers["etag"]}
        again = await api.ask("PUT", "/users/eve", NEW, headers={"if-none-match": "*"})
        first = await api.ask("PUT", "/users/eve", {"enabled": False}, headers=tag)
        second = await api.ask("PUT", "/users/eve", {"enabled": True}, headers=tag)
    assert [each.status for each in (made, again, first, second)] == [201, 412, 200, 412]
    assert first.headers["etag"] != made.headers["etag"]
    assert str(problem(second)["type"]).endswith(SLUGS[412])


async def test_an_old_password_enters_for_a_while(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        await api.ask("PUT", "/users/eve", NEW)
        body = {"password": "another long one", "keep_old_s": 60}
        changed = await api.ask("PUT", "/users/eve", body)
        assert changed.status == 200
        assert (await api.get("/users/eve"))["old_password_until"] is not None
        missing = await api.ask("PUT", "/users/bob", body)
    assert missing.status == 404


async def test_a_user_does_not_disable_or_remove_itself(tmp_path: Path) -> None:
    async with api_of(tmp_path, "view,edit management:users") as api:
        await api.ask("PUT", f"/users/{ADA}", NEW)
        off = await api.ask("PUT", f"/users/{ADA}", {"enabled": False}, user=ADA)
        gone = await api.ask("DELETE", f"/users/{ADA}", user=ADA)
    assert (off.status, gone.status) == (409, 409)


@pytest.mark.parametrize(
    ("rights", "enabled", "status"),
    [
        pytest.param("view,edit management:users", False, 409, id="it would disable itself"),
        pytest.param("edit management:users", True, 403, id="it may not see the response"),
    ],
)
async def test_a_request_that_is_refused_in_part_changes_nothing(
    rights: str, enabled: bool, status: int, tmp_path: Path
) -> None:
    async with api_of(tmp_path, rights) as api:
        await api.ask("PUT", f"/users/{ADA}", NEW)
        before = await api.get(f"/users/{ADA}")
        body = {"password": "another long one", "enabled": enabled}
        refused = await api.ask("PUT", f"/users/{ADA}", body, user=ADA)
        assert (refused.status, await api.get(f"/users/{ADA}")) == (status, before)


async def test_to_create_what_is_there_needs_the_right_to_edit(tmp_path: Path) -> None:
    async with api_of(tmp_path, "view management:queues") as api:
        await api.ask("PUT", "/queues/q")
        assert (await api.ask("PUT", "/queues/q", user=ADA)).status == 403
