"""F15, F1 and F8 on PostgreSQL: sessions that end, servers that crash, brokers that are killed.

No accepted message is lost, and no client loses its connection if the database is back in time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.producer import Producer, died, drained
from tests.faults.test_kill import port_of, send_until_killed
from tests.interop.broker_process import BrokerProcess
from tests.support import postgres
from tests.support.postgres import PASSWORD, Server
from tests.support.socket_client import SocketClient

ENDED = 8
"""Number of sessions that are ended, one after another."""

CRASHES = 2
KILLS = 3


@pytest.fixture
def server() -> Iterator[Server]:
    started = postgres.server("crashes")
    yield started
    started.see_to_it_that_it_runs()


@pytest.fixture
def database(server: Server) -> str:
    return server.database()


def settings_of(server: Server, database: str, *, grace_ms: int = 30_000) -> str:
    return f'store = "{server.url(database)}"\nstore_loss_grace_ms = {grace_ms}\n'


async def everything_is_there(broker: BrokerProcess, producer: Producer) -> None:
    """Check that each message is there once, in order.

    Also check that the broker stops with status 0 and has logged no password.
    """
    held = await drained(port_of(broker), "q", len(producer.accepted))
    assert held == list(range(producer.sent))
    assert broker.stop() == 0
    assert PASSWORD not in broker.log.read_text()


@pytest.mark.requirement("PRD-03")
async def test_sessions_that_are_ended_cost_nobody_anything(
    server: Server, database: str, tmp_path: Path
) -> None:
    seeded = random.Random(15)
    broker = BrokerProcess(tmp_path, settings=settings_of(server, database))
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        for _ in range(ENDED):
            await producer.run(len(producer.accepted) + seeded.randint(1, 300))
            producer.send()
            await server.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
                database,
            )
        await producer.run(producer.sent)
    await everything_is_there(broker, producer)


@pytest.mark.requirement("PRD-03")
async def test_a_server_that_crashes_costs_nobody_anything(
    server: Server, database: str, tmp_path: Path
) -> None:
    broker = BrokerProcess(tmp_path, settings=settings_of(server, database))
    async with SocketClient(port_of(broker), patience_s=40) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        for _ in range(CRASHES):
            producing = asyncio.create_task(producer.run(len(producer.accepted) + 1000))
            await asyncio.to_thread(server.stop, "immediate")
            await asyncio.to_thread(server.start)
            await producing
        await producer.run(producer.sent)
    await everything_is_there(broker, producer)


@pytest.mark.requirement("PRD-03")
async def test_a_server_that_stays_away_ends_the_broker(
    server: Server, database: str, tmp_path: Path
) -> None:
    broker = BrokerProcess(tmp_path, settings=settings_of(server, database, grace_ms=500))
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(100)
        await asyncio.to_thread(server.stop, "immediate")
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await producer.run(100_000)
    assert broker.wait() == 1
    assert "jms-broker: the store postgresql://" in broker.log.read_text()
    await asyncio.to_thread(server.start)
    again = BrokerProcess(tmp_path, settings=settings_of(server, database))
    held = await drained(port_of(again), "q", len(producer.accepted))
    assert set(producer.accepted) <= set(held)
    assert held == sorted(set(held))
    assert again.stop() == 0


async def test_a_stop_does_not_wait_for_a_server_that_is_away(
    server: Server, database: str, tmp_path: Path
) -> None:
    broker = BrokerProcess(tmp_path, settings=settings_of(server, database))
    async with SocketClient(port_of(broker)) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(100)
        await asyncio.to_thread(server.stop, "immediate")
        producer.send()
        await client.writer.drain()
        broker.terminate()
        await died(client)
    assert broker.wait() == 1
    assert "in doubt" in broker.log.read_text()


@pytest.mark.requirement("PRD-03")
async def test_what_was_accepted_outlives_kills(
    server: Server, database: str, tmp_path: Path
) -> None:
    seeded = random.Random(1)
    accepted: list[int] = []
    for _ in range(KILLS):
        broker = BrokerProcess(tmp_path, settings=settings_of(server, database))
        held = await drained(port_of(broker), "q", len(accepted))
        assert set(accepted) <= set(held), "an accepted message is lost"
        assert held == sorted(set(held)), "order, and each once"
        first = max(held, default=-1) + 1
        accepted += await send_until_killed(broker, first, seeded.randint(1, 400))
    assert accepted


async def test_a_second_broker_is_refused(server: Server, database: str, tmp_path: Path) -> None:
    first = BrokerProcess(tmp_path, settings=settings_of(server, database))
    (tmp_path / "second").mkdir()
    with pytest.raises(RuntimeError, match="in use by jms-broker"):
        BrokerProcess(tmp_path / "second", settings=settings_of(server, database))
    async with SocketClient(port_of(first)) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(10)
    await everything_is_there(first, producer)
