"""Sources of failed logins by management: listed, and forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.security.throttle import FAILURES_PER_MINUTE, TOKEN_MS
from tests.support.access import ADA
from tests.support.api import ApiClient, api_of, problem

pytestmark = pytest.mark.requirement("OPS-02")

NETWORK = "2001:db8::/64"


def fail(api: ApiClient, source: str, count: int) -> None:
    """Let logins of `count` users from `source` fail, a second ago."""
    now_ms = int(api.broker.container.clock.now_ms())
    for number in range(count):
        api.throttle.failed(source, f"user {number}", now_ms - 1000)


async def test_sources_are_listed_and_one_is_forgotten(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        fail(api, "192.0.2.7", FAILURES_PER_MINUTE)
        fail(api, NETWORK, 1)
        wall_ms = int(api.broker.container.clock.wall_ms())
        assert await api.names("/logins?sort=-failures") == ["192.0.2.7", NETWORK]
        often = await api.get("/logins/192.0.2.7")
        assert often["failures"] == FAILURES_PER_MINUTE
        assert often["last_at"] == wall_ms - 1000
        assert often["throttled_ms"] == TOKEN_MS - 1000
        once = await api.get(f"/logins/{NETWORK.replace('/', '%2F')}")
        assert (once["failures"], once["throttled_ms"]) == (1, 0)
        assert (await api.ask("DELETE", "/logins/192.0.2.7")).status == 204
        assert await api.names("/logins") == [NETWORK]
        gone = await api.ask("DELETE", "/logins/192.0.2.7")
        event = next(each for each in api.audit.events if each.action.startswith("login."))
    assert problem(gone)["detail"] == "no login from 192.0.2.7 has failed"
    assert (event.action, event.resource) == ("login.failures-forgotten", "login-source:192.0.2.7")


async def test_they_are_a_part_of_the_users(tmp_path: Path) -> None:
    async with api_of(tmp_path, "view management:users") as api:
        fail(api, "192.0.2.7", 1)
        seen = await api.ask("GET", "/logins", user=ADA)
        kept = await api.ask("DELETE", "/logins/192.0.2.7", user=ADA)
    assert (seen.status, kept.status) == (200, 403)
