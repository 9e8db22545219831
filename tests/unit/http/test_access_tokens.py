"""Tokens of OAuth over HTTP: `Authorization: Bearer`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.app import App
from broker.settings import MEMORY, given_settings
from tests.support.http import ask
from tests.support.tokens import TokenIssuer, oauth, unsigned

pytestmark = pytest.mark.requirement("SEC-07", "SEC-09")

ISSUER = TokenIssuer()
STRANGER = TokenIssuer()
PATH = "/events/bounds"


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """Return the URL of a broker that takes tokens."""
    table = oauth(tmp_path, ISSUER, leeway_s=0)
    users_file = tmp_path / "users"
    running = App(
        given_settings(
            port=0,
            users_file=users_file,
            store=MEMORY,
            allow_anonymous=False,
            oauth=table,
            http={"port": 0},
        )
    )
    await running.start()
    assert running.http is not None
    yield running.http.url()
    await running.stop()


async def status(url: str, token: str) -> int:
    return (await ask(url + PATH, {"Authorization": f"Bearer {token}"})).status


async def test_a_token_logs_in_with_its_roles(url: str) -> None:
    assert await status(url, ISSUER.token(roles=["admin"])) == 200
    answer = await ask(
        url + PATH, {"Authorization": f"Bearer {ISSUER.token(roles=['application'])}"}
    )
    assert answer.status == 403
    assert "not allowed to view management:events" in answer.error()


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(ISSUER.token(roles=["admin"], exp=1), id="an old one"),
        pytest.param(ISSUER.token(roles=["admin"], aud="others"), id="one for others"),
        pytest.param(STRANGER.token(roles=["admin"]), id="one of another issuer's key"),
        pytest.param(unsigned(ISSUER.claims(), {"alg": "none"}), id="one that nobody signed"),
        pytest.param("x", id="no token at all"),
    ],
)
async def test_a_wrong_token_is_refused(url: str, token: str) -> None:
    assert await status(url, token) == 401


async def test_a_token_that_has_failed_is_not_checked_again_at_once(url: str) -> None:
    token = ISSUER.token(aud="others")
    told = [await status(url, token) for _ in range(3)]
    assert told[0] == 401
    assert told[-1] == 503, "the delay behind the second failure"
    assert await status(url, ISSUER.token(roles=["admin"])) == 200
