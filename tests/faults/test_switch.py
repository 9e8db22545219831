"""F17m: another member takes over because an operator says so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.performatives import Close
from storage.sql.schema import HEAD
from tests.conformance.frames import Disposition, Transfer, frame, read_frame
from tests.faults.failover import BUSY_MS, Members, stands_by
from tests.faults.next_version import NEXT, VERSION, next_version
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


class Load:
    """Clients of one leader after another, with what they were told about the messages of "q"."""

    def __init__(self) -> None:
        self.accepted: Final[list[int]] = []
        self.seen: Final[list[int]] = []
        self._first = 0

    async def run(self, members: Members, leader: Server, standby: Server) -> None:
        """Have `leader` accept 100 messages and deliver 40, and then hand over to `standby`."""
        async with SocketClient(leader.port) as client:
            producer = Producer(client, self._first)
            await producer.attach("q")
            await producer.run(100)
            self._first += 1000
            self.accepted.extend(producer.accepted)
            self.seen.extend(await consumed(leader.port, "q", 40))
            switching = asyncio.create_task(switch(members, leader, standby))
            while not isinstance(body := read_frame(await client.frame()).body, Close):
                pass
            began = time.monotonic()
            assert body.error is not None
            assert body.error.condition == "amqp:connection:redirect"
            await standby.ready()
            assert (time.monotonic() - began) * 1000 < SWITCH_MS + BUSY_MS
            await switching

    async def check(self, leader: Server) -> None:
        """Check that each accepted message was delivered, or is there, in order and once."""
        held = await drained(leader.port, "q", len(self.accepted) - len(self.seen))
        found = self.seen + held
        assert set(self.accepted) <= set(found), "an accepted message is lost"
        assert found == sorted(set(found)), "order, and each once"


@pytest.mark.requirement("PRD-03")
async def test_a_member_takes_over_when_an_operator_says_so(members: Members) -> None:
    leader, standby = await members.start()
    load = Load()
    await load.run(members, leader, standby)
    await load.run(members, standby, leader)
    await load.check(leader)
    await members.check_commits()


@pytest.mark.requirement("PRD-03")
async def test_members_are_upgraded_one_after_another(
    members: Members, server: postgres.Server, database: str, tmp_path: Path
) -> None:
    """The standby is first, and leaves the schema as it is until it leads."""
    newer = next_version(tmp_path / "newer")
    load = Load()
    one, two = await members.start()
    two = await members.restart_from(two, newer)
    assert await schema(server, database) == HEAD
    await load.run(members, one, two)
    assert await schema(server, database) == NEXT
    one = await members.restart_from(one, newer)
    await load.run(members, two, one)
    assert await version(one) == VERSION
    await load.check(one)
    await members.check_commits()


async def schema(server: postgres.Server, database: str) -> str:
    """Return the version of the database's schema."""
    [row] = await server.sql("SELECT version_num FROM alembic_version", database=database)
    return str(row["version_num"])


async def version(leader: Server) -> object:
    """Return the version of which a leader says that it is."""
    async with SocketClient(leader.port) as client:
        return (await client.open()).properties["version"]


async def test_a_member_of_an_older_version_that_meets_a_newer_store_ends(
    members: Members, server: postgres.Server, database: str
) -> None:
    leader, standby = await members.start()
    await server.sql("UPDATE alembic_version SET version_num = '9999'", database=database)
    await leader.kill()
    assert await standby.wait() == 1
    assert any("a newer jms-broker made it" in line for line in standby.lines)
