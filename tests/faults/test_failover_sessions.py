"""F17c, e and o: the session of a leader is stuck, cut, or loses its lock without its end."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.failover import (
    BUSY_MS,
    ENDED,
    IN_COPY,
    IN_TRANSACTION,
    MEMBER,
    SHORT_MS,
    WITNESS,
    Members,
    everything_is_there,
    is_cut_off,
)
from tests.faults.producer import ENDLESS, Producer, drained, publishing
from tests.support import postgres
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until

LONG_MS = 30_000
"""A silence that lasts longer than a takeover on a busy machine."""


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Members]:
    server = postgres.server()
    database = server.database()
    made = Members(tmp_path, server, database, silence_ms=SHORT_MS, grace_ms=SHORT_MS)
    async with made:
        yield made


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize(
    "stage", [IN_TRANSACTION, IN_COPY], ids=["in a transaction", "inside COPY"]
)
async def test_a_leader_that_is_stopped_at_work_is_replaced(pair: Members, stage: bytes) -> None:
    leader, standby = await pair.start()
    session = pair.sessions[leader]
    async with SocketClient(leader.port, patience_s=40) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        session.hold_behind = stage
        producing = asyncio.create_task(producer.run(ENDLESS))
        await session.held_one.wait()
        leader.signal(signal.SIGSTOP)
        began_s = time.monotonic()
        await standby.ready()
        assert (time.monotonic() - began_s) * 1000 < SHORT_MS + 2000 + BUSY_MS
        session.cut()
        leader.signal(signal.SIGCONT)
        with pytest.raises(ENDED):
            await producing
    await everything_is_there(standby.port, producer)
    await pair.check_commits()


@pytest.mark.requirement("PRD-03")
async def test_a_leader_whose_session_with_the_lock_is_cut_is_replaced(pair: Members) -> None:
    """Its second session goes on, and sees that the first one is silent."""
    leader, standby = await pair.start()
    async with SocketClient(leader.port, patience_s=40) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(300)
        pair.sessions[leader].hold(MEMBER)
        with pytest.raises(ENDED):
            await producer.run(ENDLESS)
    await standby.ready()
    await everything_is_there(standby.port, producer)
    await pair.check_commits()


async def test_a_leader_whose_witness_is_cut_goes_on(pair: Members) -> None:
    leader, standby = await pair.start()
    session = pair.sessions[leader]
    async with SocketClient(leader.port, patience_s=40) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        session.hold(WITNESS)
        producing = asyncio.create_task(producer.run(ENDLESS))
        await session.lost.wait()
        asked = len(producer.accepted)
        lost_s = time.monotonic()
        await until(lambda: time.monotonic() - lost_s > 1.5 * SHORT_MS / 1000)
        assert len(producer.accepted) > asked
        assert not producing.done(), "the client is still connected"
        client.writer.transport.abort()
        with pytest.raises(ENDED):
            await producing
    assert standby.stands_by.is_set()
    await pair.check_commits()


LOSSES = [
    pytest.param("DISCARD ALL", id="DISCARD ALL"),
    pytest.param("SELECT pg_advisory_unlock_all()", id="all locks are released"),
]


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize("loss", LOSSES)
async def test_a_leader_that_loses_the_lock_in_a_session_that_lives_commits_nothing(
    tmp_path: Path, loss: str
) -> None:
    """The standby leads at once. What the former leader was about to commit ends it."""
    server = postgres.server()
    async with Members(tmp_path, server, server.database()) as pair:
        leader, standby = await pair.start()
        session = pair.sessions[leader]
        async with SocketClient(leader.port, patience_s=40) as client:
            producer = Producer(client, 0)
            await producer.attach("q")
            producing = asyncio.create_task(producer.run(ENDLESS))
            await until(lambda: len(producer.accepted) >= 300)
            await until(lambda: session.execute(MEMBER, loss))
            await standby.ready()
            session.go_on()
            await is_cut_off(producing)
        await everything_is_there(standby.port, producer)
        await pair.check_commits()


@pytest.mark.requirement("PRD-03")
async def test_a_leader_whose_session_is_ended_says_nothing_until_it_has_the_lock_again(
    tmp_path: Path,
) -> None:
    """The lock is free at once, and the standby has it: the last proof counts no longer."""
    server = postgres.server()
    async with Members(tmp_path, server, server.database(), silence_ms=LONG_MS) as pair:
        leader, standby = await pair.start()
        async with SocketClient(leader.port, patience_s=40) as client:
            former, running = await publishing(client, "news")
            pair.sessions[leader].held.add(MEMBER)  # so it is late with its next session
            await server.sql(f"SELECT pg_terminate_backend({await pair.lock_process()})")
            await standby.ready()
            assert await drained(standby.port, "news", 0, subscription="reader") == []
            accepted = len(former.accepted)
            await is_cut_off(running)
        assert len(former.accepted) == accepted, "no subscriber gets what was accepted since"
        await pair.check_commits()
