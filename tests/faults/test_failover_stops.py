"""A member of a group that is told to stop ends, whatever happens at the same time."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.failover import Members
from tests.support import postgres
from tests.support.postgres import Server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Return a server that may be stopped."""
    server = postgres.server("replicated")
    server.see_to_it_that_it_runs()
    yield server
    server.see_to_it_that_it_runs()


@pytest.fixture
async def members(tmp_path: Path, server: Server) -> AsyncIterator[Members]:
    async with Members(tmp_path, server, server.database(), grace_ms=30_000) as made:
        yield made


async def test_a_leader_without_its_database_ends_when_it_is_told_to_stop(
    members: Members, server: Server
) -> None:
    """It does not stand by in place of that."""
    [leader] = await members.start(size=1)
    await asyncio.to_thread(server.stop, "immediate")
    leader.signal(signal.SIGTERM)
    assert await leader.wait() == 0


async def test_a_leader_that_hands_over_ends_when_it_is_told_to_stop(members: Members) -> None:
    leader, standby = await members.start()
    assert await members.hand_over(leader) == f"{standby.place.folder.name} takes over\n"
    leader.signal(signal.SIGTERM)
    assert await leader.wait() == 0
    await standby.ready()
