"""Qpid JMS and a group of brokers: it connects to a standby, and works on the leader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from tests.faults.failover import Members, stands_by
from tests.interop.junit import JUnit
from tests.support import postgres
from tests.support.tls_listening import until

pytestmark = pytest.mark.slow

JVM_START_S = 60.0
"""Maximum seconds until the client's process has connected, on a machine that is busy."""

PHASE = "TakeoverPhase#sendsUntilItsConnectionIsRestored"


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


async def test_a_client_that_connected_before_the_standby_was_there_finds_it(
    junit: JUnit, pair: Members, tmp_path: Path
) -> None:
    """Qpid JMS replaces its list of brokers by the leader's, which has to know of the standby."""
    leader, standby = await pair.add("one"), await pair.add("two")
    await leader.start()
    url = f"failover:(amqp://127.0.0.1:{leader.port},amqp://127.0.0.1:{standby.port})"
    phase = partial(junit.phase, PHASE, tmp_path, url=f"{url}?failover.maxReconnectDelay=250")
    working = asyncio.create_task(asyncio.to_thread(phase))
    await until(lambda: any("connection opened" in line for line in leader.lines), JVM_START_S)
    await standby.launch()
    await stands_by(standby)
    await leader.kill()
    await working
