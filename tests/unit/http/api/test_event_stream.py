"""Streams of snapshots: shared, ended by a lost right, limited in number."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from broker.http import open_streams, shared_reading
from broker.http.api import event_stream
from broker.security.access import AccessRules
from broker.security.identity import MONITOR
from tests.support.access import ADA, OWNER, access_of, rule
from tests.support.api import PASSWORD, ApiClient, api_of, problem
from tests.support.http import basic
from tests.support.http import event_stream as opened

pytestmark = pytest.mark.requirement("OPS-01")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let streams look for snapshots all the time, and make a new one for each look.

    Otherwise the one that a busy machine made in 0.2 s would be valid for ten seconds.
    """
    monkeypatch.setattr(open_streams, "EVERY_S", 0.01)
    monkeypatch.setattr(shared_reading, "SHARE", math.inf)


def events(body: bytes) -> list[tuple[int, str, Any]]:
    """Return the id, the topic and the data of each event of a stream."""
    found = []
    for part in body.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in part.splitlines())
        found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def stream(
    api: ApiClient, query: str = "", user: str = OWNER
) -> AbstractAsyncContextManager[asyncio.StreamReader]:
    return opened(f"{api.url}/api/v1/events{query}", basic(user, PASSWORD))


async def test_snapshots_of_the_broker_and_of_its_jobs(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        api.broker.fill("q", 3)
        answer = await api.ask("GET", "/events?limit=3")
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = events(answer.body)
    assert [topic for _, topic, _ in found][:2] == ["broker", "jobs"]
    assert found[0][2]["messages"] == 3
    assert found[1][2] == {"items": [], "next": None}
    ids = [number for number, topic, _ in found if topic == found[2][1]]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("by_header", [False, True], ids=["a parameter", "a header"])
async def test_a_client_that_connects_again_gets_only_what_is_new(
    tmp_path: Path, *, by_header: bool
) -> None:
    async with api_of(tmp_path) as api:
        (first,) = events((await api.ask("GET", "/events?topics=broker&limit=1")).body)
        since = "" if by_header else f"&since={first[0]}"
        headers = {"last-event-id": str(first[0])} if by_header else {}
        answer = await api.ask("GET", f"/events?topics=broker&limit=1{since}", headers=headers)
    (second,) = events(answer.body)
    assert second[0] > first[0]


async def test_a_stream_ends_when_its_client_loses_the_right(tmp_path: Path) -> None:
    async with (
        api_of(tmp_path, "view management:metrics") as api,
        stream(api, "?topics=broker", ADA) as reader,
    ):
        await reader.readuntil(b"event: broker")
        api.broker.container.access = access_of()
        rest = await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), 5)
    assert b"event: jobs" not in rest


@pytest.mark.attack("Z7")
@pytest.mark.parametrize("ends", [False, True], ids=["the role", "the login"])
async def test_a_stream_ends_when_the_user_of_its_client_loses(
    tmp_path: Path, *, ends: bool
) -> None:
    async with api_of(tmp_path) as api:
        users = api.users
        users.roles[ADA] = frozenset({MONITOR})
        async with stream(api, "?topics=broker", ADA) as reader:
            await reader.readuntil(b"event: broker")
            if ends:
                users.ended.add(ADA)
            else:
                users.roles[ADA] = frozenset()
            await asyncio.wait_for(reader.readuntil(b"\r\n0\r\n\r\n"), 5)


async def test_a_stream_goes_on_with_a_right_that_its_user_has_by_another_role(
    tmp_path: Path,
) -> None:
    async with api_of(tmp_path) as api:
        container = api.broker.container
        api.users.roles[ADA] = frozenset({"old"})
        container.access = AccessRules([rule("r", "view management:metrics", who="role:old")])
        async with stream(api, "?topics=broker", ADA) as reader:
            await reader.readuntil(b"event: broker")
            api.users.roles[ADA] = frozenset({"new"})
            container.access = AccessRules([rule("r", "view management:metrics", who="role:new")])
            for _ in range(3):
                await asyncio.wait_for(reader.readuntil(b"event: broker"), 5)


async def test_a_snapshot_that_is_too_large_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "SNAPSHOT_BYTES_MAX", 30)
    async with api_of(tmp_path) as api:
        answer = await api.ask("GET", "/events?limit=2")
    (broker, jobs) = (data for _, _, data in events(answer.body))
    assert broker == {"error": "more than 30 bytes: read the list, page by page"}
    assert jobs == {"items": [], "next": None}


async def test_an_unknown_topic_is_refused(tmp_path: Path) -> None:
    async with api_of(tmp_path) as api:
        refused = await api.ask("GET", "/events?topics=weather")
    assert problem(refused)["detail"] == "no topic weather; there are broker, jobs"
