"""F17: a broker takes over from one that is killed, stopped, frozen or cut off."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from broker.amqp.errors import CONNECTION_FORCED, CONNECTION_REDIRECT
from broker.amqp.outcomes import Error
from broker.amqp.types import Map, UInt
from tests.faults.failover import (
    BUSY_MS,
    ENDED,
    LONG_HOLD_MS,
    SHORT_MS,
    SILENCE_MS,
    Members,
    everything_is_there,
    is_cut_off,
)
from tests.faults.producer import Producer, died, drained, publishing
from tests.faults.prompt import PromptClient
from tests.support import postgres
from tests.support.http import ask
from tests.support.postgres import Server
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until


@pytest.fixture
def server() -> Server:
    return postgres.server()


@pytest.fixture
def database(server: Server) -> str:
    return server.database()


@pytest.fixture
async def pair(tmp_path: Path, server: Server, database: str) -> AsyncIterator[Members]:
    async with Members(tmp_path, server, database) as made:
        yield made


@pytest.fixture
async def quick(tmp_path: Path, server: Server, database: str) -> AsyncIterator[Members]:
    """Return a pair that waits as briefly as it may."""
    made = Members(tmp_path, server, database, silence_ms=SHORT_MS, grace_ms=SHORT_MS)
    async with made:
        yield made


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
async def test_a_standby_takes_over_from_a_leader_that_ends(
    pair: Members, number: signal.Signals
) -> None:
    leader, standby = await pair.start()
    async with SocketClient(leader.port) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(300)
        producer.send()
        began = time.monotonic()
        leader.signal(number)
        await died(client)
    await standby.ready()
    assert (time.monotonic() - began) * 1000 < 2000 + BUSY_MS
    await everything_is_there(standby.port, producer)
    await pair.check_commits()


SERVERS = "failover-server-list"


def address(told: object) -> tuple[object, int]:
    """Return the host and port in a map of a redirect, or of the list of servers."""
    assert isinstance(told, dict | Map)
    pairs = told.items() if isinstance(told, dict) else told.pairs
    found = {str(key): value for key, value in pairs}
    port = found["port"]
    assert isinstance(port, UInt)
    return found["network-host"], int(port.value)


async def servers(port: int) -> list[tuple[object, int]]:
    """Return the addresses that a broker tells its clients, none if it is no leader."""
    async with SocketClient(port, patience_s=20) as client:
        told = (await client.open()).properties.get(SERVERS, [])
        assert isinstance(told, list)
        return [address(each) for each in told]


async def accepts(port: int) -> None:
    """Wait until a broker accepts connections there."""
    async with asyncio.timeout(10):
        while True:
            with suppress(ConnectionRefusedError):
                async with SocketClient(port):
                    return
            await asyncio.sleep(0)


async def sent_away(port: int) -> Error:
    """Return the error with which a standby closes a client's connection."""
    async with SocketClient(port) as client:
        await client.open()
        error = (await client.closed()).error
        assert error is not None
        return error


async def test_a_standby_sends_clients_to_the_leader(pair: Members) -> None:
    """Also if it has seen the leader before that one wrote its address: both start at once."""
    leader, standby = await pair.start()
    await accepts(standby.port)
    async with asyncio.timeout(10):
        while (error := await sent_away(standby.port)).condition != CONNECTION_REDIRECT:
            assert error.condition == CONNECTION_FORCED
    assert address(error.info) == ("127.0.0.1", leader.port)


STATUSES = [
    # path, the leader's status, the standby's
    ("/livez", 200, 200),
    ("/startupz", 200, 200),
    ("/readyz", 200, 503),
    ("/leaderz", 200, 503),
    ("/events/bounds", 200, 503),
]


@pytest.mark.requirement("OPS-03")
async def test_a_standby_answers_only_probes_over_http(pair: Members) -> None:
    leader, standby = await pair.start()
    await accepts(standby.port)
    for path, of_leader, of_standby in STATUSES:
        assert (await ask(f"{pair.http[leader]}{path}")).status == of_leader, path
        assert (await ask(f"{pair.http[standby]}{path}")).status == of_standby, path
    assert (await ask(f"{pair.http[standby]}/readyz")).body == b"standby\n"
    refused = await ask(f"{pair.http[standby]}/events/bounds")
    assert refused.error() == f"this broker stands by: {leader.place.folder.name} leads"


async def test_clients_of_the_leader_are_told_all_members(pair: Members) -> None:
    leader, standby = await pair.start()
    both = [("127.0.0.1", leader.port), ("127.0.0.1", standby.port)]
    async with asyncio.timeout(10):
        while await servers(leader.port) != both:
            pass


async def test_a_client_that_comes_during_a_takeover_is_served_by_the_next_leader(
    quick: Members,
) -> None:
    """The standby holds it before the open, and answers once it leads."""
    leader, standby = await quick.start()
    await accepts(standby.port)
    os.kill(leader.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(20):
            while not await servers(standby.port):  # it redirects until the leader is silent
                assert standby.stands_by.is_set()
        await standby.ready()
    finally:
        os.kill(leader.pid, signal.SIGCONT)


async def test_a_standby_that_is_told_to_stop_harms_nobody(pair: Members) -> None:
    leader, standby = await pair.start()
    assert await standby.stop() == 0
    async with SocketClient(leader.port) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(100)
    assert await leader.stop() == 0


@pytest.mark.requirement("PRD-03")
async def test_a_leader_that_was_stopped_answers_nothing_when_it_goes_on(quick: Members) -> None:
    leader, standby = await quick.start()
    async with SocketClient(leader.port, patience_s=40) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(300)
        began = time.monotonic()
        os.kill(leader.pid, signal.SIGSTOP)
        producer.send()
        await standby.ready()
        assert (time.monotonic() - began) * 1000 < SHORT_MS + 2000 + BUSY_MS
        os.kill(leader.pid, signal.SIGCONT)
        with pytest.raises(ENDED):
            await producer.run(100_000)
    async with asyncio.timeout(30):
        await leader.stands_by.wait()
    await everything_is_there(standby.port, producer)
    await quick.check_commits()
    await standby.kill()
    await leader.ready()
    await everything_is_there(leader.port, producer)


@pytest.mark.requirement("PRD-03")
async def test_a_leader_that_is_cut_off_from_the_database_freezes(quick: Members) -> None:
    leader, standby = await quick.start()
    proxy = quick.sessions[leader]
    async with SocketClient(leader.port, patience_s=40) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(300)
        proxy.lose()
        began = time.monotonic()
        await standby.ready()
        assert (time.monotonic() - began) * 1000 < SHORT_MS + 2000 + BUSY_MS
        with pytest.raises(ENDED):
            await producer.run(100_000)
        assert (time.monotonic() - began) * 1000 < 2 * SHORT_MS + BUSY_MS
    await everything_is_there(standby.port, producer)
    await quick.check_commits()


@pytest.mark.requirement("PRD-03")
async def test_a_subscriber_of_the_next_leader_misses_nothing_that_the_former_one_has_accepted(
    quick: Members,
) -> None:
    """A topic without subscribers needs no commits: a leader without a tenure would accept on."""
    leader, standby = await quick.start()
    async with SocketClient(leader.port, patience_s=40) as client:
        former, running = await publishing(client, "news")
        quick.sessions[leader].lose()
        cut_at = len(former.accepted)
        await standby.ready()
        assert await drained(standby.port, "news", 0, subscription="reader") == []
        accepted = len(former.accepted)
        await is_cut_off(running)
    assert len(former.accepted) == accepted > cut_at
    async with SocketClient(standby.port) as client:
        publisher = Producer(client, former.sent)
        await publisher.attach("news", kind="topic")
        await publisher.run(100)
    held = await drained(standby.port, "news", 100, subscription="reader")
    assert held[: len(publisher.accepted)] == publisher.accepted


async def test_a_leader_that_is_cut_off_neither_delivers_nor_answers_though_it_need_not_commit(
    tmp_path: Path, server: Server, database: str
) -> None:
    """Messages that are consumed before they are written need no commit: the store fences none."""
    async with Members(tmp_path, server, database, hold_ms=LONG_HOLD_MS) as pair:
        leader, standby = await pair.start()
        async with SocketClient(leader.port, patience_s=40) as client:
            prompt = PromptClient(client)
            await prompt.attach("q")
            working = asyncio.create_task(prompt.run_until_silent())
            await until(lambda: prompt.rounds >= 20)
            pair.sessions[leader].lose()
            cut_s = time.monotonic()
            await working
        assert prompt.heard_s > cut_s, "it needs no commits"
        assert prompt.heard_s - cut_s < SILENCE_MS / 1000
        await standby.ready()
        assert time.monotonic() > prompt.heard_s
