"""F17m: another member takes over because an operator says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.amqp.performatives import Close
from tests.conformance.frames import Disposition, Transfer, frame, read_frame
from tests.faults.failover import BUSY_MS, Members, stands_by
from tests.faults.producer import Producer, drained
from tests.faults.server import Server
from tests.support import postgres
from tests.support.frames import attach_receiver, body_of, flow, header_of
from tests.support.socket_client import SocketClient

SWITCH_MS = 1000

CREDIT = 2**20


@pytest.fixture
def server() -> postgres.Server:
    return postgres.server()


@pytest.fixture
def database(server: postgres.Server) -> str:
    return server.database()


@pytest.fixture
async def members(tmp_path: Path, server: postgres.Server, database: str) -> AsyncIterator[Members]:
    async with Members(tmp_path, server, database) as made:
        yield made


async def switch(members: Members, leader: Server, standby: Server) -> None:
    """Have `standby` lead."""
    printed = await members.hand_over(leader)
    assert printed == f"{standby.place.folder.name} takes over\n"
    await standby.ready()
    await stands_by(leader)


async def consumed(port: int, address: str, count: int) -> list[int]:
    """Consume `count` messages, none of which may have been delivered before."""
    found: list[int] = []
    async with SocketClient(port) as client:
        await client.open("consumer")
        await client.begin()
        client.send(
            attach_receiver(name="consumer", address=address),
            flow(handle=0, credit=count, delivery_count=0, incoming_window=CREDIT),
        )
        while len(found) < count:
            body = read_frame(await client.frame()).body
            if isinstance(body, Transfer):
                header = header_of(body.payload)
                assert (header[3], header[4]) == (True, None), "it is marked as delivered before"
                found.append(int(body_of(body.payload)))
                assert body.delivery_id is not None
                client.send_bytes(frame(Disposition(first=body.delivery_id)))
    return found


@pytest.mark.requirement("PRD-03")
async def test_a_member_takes_over_when_an_operator_says_so(members: Members) -> None:
    leader, standby = await members.start()
    accepted: list[int] = []
    seen: list[int] = []
    for first in (0, 1000):
        async with SocketClient(leader.port) as client:
            producer = Producer(client, first)
            await producer.attach("q")
            await producer.run(100)
            accepted += producer.accepted
            seen += await consumed(leader.port, "q", 40)
            switching = asyncio.create_task(switch(members, leader, standby))
            while not isinstance(body := read_frame(await client.frame()).body, Close):
                pass
            began = time.monotonic()
            assert body.error is not None
            assert body.error.condition == "amqp:connection:redirect"
            await standby.ready()
            assert (time.monotonic() - began) * 1000 < SWITCH_MS + BUSY_MS
            await switching
        leader, standby = standby, leader
    seen += await drained(leader.port, "q", len(accepted) - len(seen))
    assert set(accepted) <= set(seen), "an accepted message is lost"
    assert seen == sorted(set(seen)), "order, and each once"
    await members.check_commits()


async def test_a_member_of_an_older_version_that_meets_a_newer_store_ends(
    members: Members, server: postgres.Server, database: str
) -> None:
    leader, standby = await members.start()
    await server.sql("UPDATE alembic_version SET version_num = '9999'", database=database)
    await leader.kill()
    assert await standby.wait() == 1
    assert any("a newer jms-broker made it" in line for line in standby.lines)
