"""F17f to i: clients that are cut off, members that start at once, and several that are killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.failover import BUSY_MS, Members, everything_is_there
from tests.faults.producer import Producer, died
from tests.faults.server import Server
from tests.support import postgres
from tests.support.cut_proxy import PortProxy
from tests.support.socket_client import SocketClient


@pytest.fixture
async def group(tmp_path: Path) -> AsyncIterator[Members]:
    server = postgres.server()
    async with Members(tmp_path, server, server.database()) as made:
        yield made


async def accepted_by(leader: Server, *, first: int = 0, count: int = 200) -> Producer:
    """Return a producer that has left, of which a leader has accepted messages from `first` on."""
    async with SocketClient(leader.port) as client:
        producer = Producer(client, first)
        await producer.attach("q")
        await producer.run(count)
    return producer


@pytest.mark.requirement("PRD-03")
async def test_clients_that_are_cut_off_from_a_leader_cost_it_nothing(group: Members) -> None:
    """Nothing of the group is at fault: nobody takes over, and clients find the leader again."""
    leader, standby = await group.start()
    async with PortProxy(leader.port) as door:
        async with SocketClient(door.port, patience_s=40) as client:
            producer = Producer(client, 0)
            await producer.attach("q")
            await producer.run(200)
            door.lose()
            producer.send()
            await door.lost.wait()
            door.cut()
            await died(client)
        again = await accepted_by(leader, first=producer.sent)
    held = Producer(client, 0)
    held.accepted.extend([*producer.accepted, *again.accepted])
    await everything_is_there(leader.port, held)
    assert standby.stands_by.is_set()
    await group.check_commits()


@pytest.mark.requirement("PRD-03")
async def test_of_members_that_start_at_once_one_leads(group: Members) -> None:
    """Both of an empty store, which has no tables yet, and of one with messages."""
    leader, standby = await group.start()
    producer = await accepted_by(leader)
    await asyncio.gather(leader.kill(), standby.kill())
    await asyncio.gather(leader.launch(), standby.launch())
    leads, follows = await group.started()
    assert {leads, follows} == {leader, standby}
    await everything_is_there(leads.port, producer)
    assert not follows.leads
    await group.check_commits()


@pytest.mark.requirement("PRD-03")
async def test_the_last_of_three_members_leads(group: Members) -> None:
    leader, killed, left = await group.start(3)
    producer = await accepted_by(leader)
    await asyncio.gather(leader.kill(), killed.kill())
    await left.ready()
    await everything_is_there(left.port, producer)
    await group.check_commits()


@pytest.mark.requirement("PRD-03")
async def test_a_standby_that_is_killed_while_it_takes_over_is_replaced(group: Members) -> None:
    leader, *standbys = await group.start(3)
    producer = await accepted_by(leader)
    await leader.kill()
    async with asyncio.timeout(BUSY_MS / 1000):
        while not (name := await group.lock_holder()):
            pass
    [heir] = [each for each in standbys if each.place.folder.name == name]
    [left] = [each for each in standbys if each is not heir]
    await heir.kill()
    await left.ready()
    await everything_is_there(left.port, producer)
    await group.check_commits()
