"""Qpid JMS and a group of brokers: it connects to a standby, and works on the leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.failover import Members
from tests.interop.junit import JUnit
from tests.support import postgres

pytestmark = pytest.mark.slow


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Members]:
    server = postgres.server()
    async with Members(tmp_path, server, server.database()) as made:
        yield made


async def test_a_client_of_a_standby_works_on_the_leader(
    junit: JUnit, pair: Members, tmp_path: Path
) -> None:
    """Its only URL is the standby's, which may not listen yet: it tries again."""
    leader, standby = await pair.start()
    url = f"failover:(amqp://127.0.0.1:{standby.port})"
    await asyncio.to_thread(junit.phase, "SendReceiveTest#manyInOrder", tmp_path, url=url)
    said = f"this broker stands by, {leader.place.folder.name} leads"
    assert any(said in line for line in standby.lines)
