"""F17j to l, p, and F9 of a group: the database's own standby server is promoted, or stops."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.failover import (
    ENDED,
    LONG_HOLD_MS,
    PATIENCE_S,
    SHORT_MS,
    SILENCE_MS,
    Members,
    everything_is_there,
)
from tests.faults.producer import ENDLESS, Producer
from tests.faults.prompt import PromptClient
from tests.faults.server import NotReady, strace, why_no_strace
from tests.support import postgres
from tests.support.ports import free_port
from tests.support.postgres import Server
from tests.support.postgres_proxy import Proxy
from tests.support.postgres_replica import (
    ANY,
    LogReceiver,
    Replica,
    is_followed,
    set_followers,
    url_of_both,
)
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until

AWAY_S = 1.5
"""Seconds for which the database does not answer: more than a leader may be silent."""

LONG_SYNC_S = 1.5 * SILENCE_MS / 1000
"""Seconds that one sync takes. The usual silence, since a busy machine may keep a leader from its
database for the shortest one."""

HANGS = """
SELECT FROM pg_stat_activity WHERE application_name LIKE 'jms-broker/%' AND wait_event = 'SyncRep'
"""
"""Sessions of members that wait for a standby server."""

IN_PLACE = "was promoted in place of"
"""A part of the notice that another server takes changes, too."""

WAITS = f"{HANGS} AND clock_timestamp() - state_change > interval '{AWAY_S} s'"


async def says(server: Server, query: str) -> None:
    """Wait until a query has rows."""
    async with asyncio.timeout(PATIENCE_S):
        while not await server.sql(query):
            pass


@pytest.fixture
async def primary() -> AsyncIterator[Server]:
    """Return a server whose commits wait for no other; it may be stopped and replaced."""
    server = postgres.server("replicated")
    yield server
    server.see_to_it_that_it_runs()
    await set_followers(server, "")


@pytest.mark.requirement("PRD-03")
async def test_a_standby_database_that_stops_for_a_while_costs_nobody_anything(
    primary: Server, tmp_path: Path
) -> None:
    """Commits wait, and the leader freezes. No standby takes over, and no client is dropped."""
    database = primary.database()
    receiver = LogReceiver(primary)
    await set_followers(primary, ANY)
    await is_followed(primary)
    pair = Members(tmp_path, primary, database, silence_ms=SHORT_MS, grace_ms=30_000)
    try:
        async with pair:
            leader, standby = await pair.start()
            async with SocketClient(leader.port, patience_s=40) as client:
                producer = Producer(client, 0)
                await producer.attach("q")
                await producer.run(200)
                session = await pair.lock_process()
                receiver.pause()
                producing = asyncio.create_task(producer.run(400))
                await says(primary, WAITS)
                assert not producing.done()
                receiver.go_on()
                await producing
            assert standby.stands_by.is_set()
            assert await pair.lock_process() == session, "the leader's session was ended"
            await everything_is_there(leader.port, producer)
            await pair.check_commits()
    finally:
        receiver.close()


async def test_a_sync_of_the_database_that_takes_long_freezes_no_leader(
    primary: Server, tmp_path: Path
) -> None:
    """Its second session sees the first one at work."""
    reason = why_no_strace()
    if reason:
        pytest.skip(reason)
    pair = Members(tmp_path, primary, primary.database(), grace_ms=30_000)
    async with pair:
        leader, standby = await pair.start()
        async with SocketClient(leader.port, patience_s=40) as client:
            producer = Producer(client, 0)
            await producer.attach("q")
            await producer.run(200)
            slow = strace(f"fdatasync:delay_enter={int(LONG_SYNC_S * 1_000_000)}:when=1")
            tracer = await asyncio.create_subprocess_exec(
                *slow, "-p", str(await pair.lock_process()), stderr=asyncio.subprocess.DEVNULL
            )
            lasted_s = 0.0
            async with asyncio.timeout(PATIENCE_S):
                while lasted_s < LONG_SYNC_S:
                    began_s = time.monotonic()
                    await producer.run(len(producer.accepted) + 50)
                    lasted_s = time.monotonic() - began_s
            tracer.terminate()
            await tracer.wait()
        assert standby.stands_by.is_set()
        assert not any("clients get no answers" in line for line in leader.lines)
        await everything_is_there(leader.port, producer)
        await pair.check_commits()


@pytest.mark.requirement("PRD-03")
async def test_a_standby_database_that_is_promoted_has_everything(
    primary: Server, tmp_path: Path
) -> None:
    database = primary.database()
    replica = Replica(primary, followers=ANY)
    await set_followers(primary, ANY)
    await is_followed(primary)
    both = url_of_both(replica, primary, database)  # the first one takes no changes at first
    pair = Members(tmp_path, primary, database, silence_ms=SHORT_MS, grace_ms=30_000)
    async with pair:
        leader, _ = await pair.start(urls=[both, both])
        async with SocketClient(leader.port, patience_s=40) as client:
            producer = Producer(client, 0)
            await producer.attach("q")
            producing = asyncio.create_task(producer.run(ENDLESS))
            await until(lambda: len(producer.accepted) > 500)
            await asyncio.to_thread(primary.stop, "immediate")
            await asyncio.to_thread(replica.promote)
            receiver = LogReceiver(replica)
            async with asyncio.timeout(PATIENCE_S):
                while not (leads := await pair.accepting()):
                    pass
            client.writer.transport.abort()
            with pytest.raises(ENDED):
                await producing
        await everything_is_there(leads.port, producer)
        await pair.check_commits(replica)
        receiver.close()
    replica.remove()


class Split(NamedTuple):
    """Two servers that both take changes: a promoted one, and the one that it has replaced."""

    old: Server
    promoted: Server
    database: str


@pytest.fixture(scope="module")
def split() -> Iterator[Split]:
    old = postgres.server("replicated")
    old.see_to_it_that_it_runs()
    database = old.database()
    promoted = Replica(old)
    promoted.promote()
    yield Split(old, promoted, database)
    promoted.remove()


@pytest.mark.requirement("PRD-03")
@pytest.mark.usefixtures("primary")
async def test_an_old_primary_that_comes_back_gets_no_leader(split: Split, tmp_path: Path) -> None:
    """It waits for a standby server, as it must: a broker that finds only that one never leads."""
    await set_followers(split.old, ANY)
    place, _, name = split.old.url(split.database).rpartition("/")
    async with Members(tmp_path, split.promoted, split.database) as pair:
        leader = await pair.add("one", split.promoted.url(split.database))
        other = await pair.add("two", f"{place},127.0.0.1:{free_port()}/{name}")
        await leader.launch()
        await other.launch()
        await leader.ready()
        await says(split.old, HANGS)
        assert not other.leads
        assert await pair.accepting() is leader


@pytest.mark.requirement("PRD-03")
@pytest.mark.usefixtures("primary")
async def test_of_two_databases_that_take_changes_the_promoted_one_is_used(
    split: Split, tmp_path: Path
) -> None:
    await set_followers(split.old, ANY)
    await set_followers(split.promoted, ANY)
    both = url_of_both(split.old, split.promoted, split.database)
    with closing(LogReceiver(split.promoted)):
        await is_followed(split.promoted)
        async with Members(tmp_path, split.promoted, split.database) as pair:
            leader, _ = await pair.start(urls=(split.promoted.url(split.database), both))
            assert await pair.accepting() is leader
            assert any(IN_PLACE in line for line in pair.members[1].lines)
    await set_followers(split.promoted, "")


@pytest.mark.requirement("PRD-03")
async def test_two_databases_without_replication_are_refused(split: Split, tmp_path: Path) -> None:
    """Otherwise one broker would lead on each of them: both take changes."""
    async with Members(tmp_path, split.promoted, split.database) as pair:
        leader = await pair.add("one", split.promoted.url(split.database))
        other = await pair.add("two", url_of_both(split.old, split.promoted, split.database))
        await leader.launch()
        with pytest.raises(NotReady, match="set synchronous_standby_names"):
            await other.start()
        await leader.ready()
        assert await pair.accepting() is leader


@pytest.mark.requirement("PRD-03")
async def test_a_leader_that_is_cut_off_together_with_the_old_primary_says_nothing_more(
    primary: Server, tmp_path: Path
) -> None:
    """Another one leads on the database that was promoted; no lock is in its way."""
    database = primary.database()
    async with Proxy(primary) as following:
        replica = await asyncio.to_thread(Replica, primary, port=following.port)
        await set_followers(primary, ANY)
        await is_followed(primary)
        async with Members(tmp_path, primary, database, hold_ms=LONG_HOLD_MS) as pair:
            leader = await pair.add("one")
            other = await pair.add("two", replica.url(database))
            await leader.launch()
            await other.launch()
            await leader.ready()
            async with SocketClient(leader.port, patience_s=40) as client:
                prompt = PromptClient(client)
                await prompt.attach("prompt")
                working = asyncio.create_task(prompt.run_until_silent())
                await until(lambda: prompt.rounds >= 20)
                following.lose()
                cut_s = time.monotonic()
                await asyncio.to_thread(replica.promote)
                await other.ready()
                await working
            assert prompt.heard_s - cut_s < SILENCE_MS / 1000
            assert await pair.accepting(out=[leader]) is other
        replica.remove()
