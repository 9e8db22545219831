"""F17d and f on a real network, whose cables are pulled: twins of tests that use proxies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.faults.failover import (
    LONG_HOLD_MS,
    SILENCE_MS,
    Members,
    everything_is_there,
    stands_by,
)
from tests.faults.producer import Producer
from tests.faults.prompt import PromptClient
from tests.faults.server import Server
from tests.support import postgres
from tests.support.cut_proxy import PortProxy
from tests.support.network import CABLES, HERE, THERE, Network, network, why_no_network
from tests.support.postgres_proxy import Proxy
from tests.support.socket_client import SocketClient
from tests.support.tls_listening import until

pytestmark = pytest.mark.privileged

TO_DATABASE, TO_CLIENTS = range(2)
"""Numbers of the cables."""

OF_LEADER = f"{CABLES[TO_CLIENTS]}.{THERE}"


@pytest.fixture
def net() -> Iterator[Network]:
    reason = why_no_network()
    if reason:
        pytest.skip(reason)
    with network() as made:
        yield made


class Apart:
    """A leader in a network of its own, and a standby beside the database."""

    def __init__(self, pair: Members, leader: Server, standby: Server, door: PortProxy) -> None:
        self.pair = pair
        self.leader = leader
        self.standby = standby
        self.door = door


@pytest.fixture
async def apart(net: Network, tmp_path: Path) -> AsyncIterator[Apart]:
    server = postgres.server()
    database = server.database()
    here = f"{CABLES[TO_DATABASE]}.{HERE}"
    pair = Members(tmp_path, server, database, hold_ms=LONG_HOLD_MS)
    async with Proxy(server) as to_database, pair:
        to_database.refuse()
        await to_database.listen(0, host=here)
        leader = await pair.add("one", to_database.url(database, host=here), bind="0.0.0.0")
        standby = await pair.add("two")
        await leader.start(within=net.within)
        await pair.note_commits()
        await standby.launch()
        await stands_by(standby)
        async with PortProxy(leader.port, host=OF_LEADER) as door:
            yield Apart(pair, leader, standby, door)


async def test_a_leader_without_its_cable_to_the_database_says_nothing_more(
    net: Network, apart: Apart
) -> None:
    async with SocketClient(apart.door.port, patience_s=40) as client:
        prompt = PromptClient(client)
        await prompt.attach("prompt")
        working = asyncio.create_task(prompt.run_until_silent())
        await until(lambda: prompt.rounds >= 20)
        net.pull(TO_DATABASE)
        cut_s = time.monotonic()
        await apart.standby.ready()
        await working
    assert prompt.heard_s - cut_s < SILENCE_MS / 1000
    assert await apart.pair.accepting(out=[apart.leader]) is apart.standby
    await apart.pair.check_commits()


async def test_a_leader_without_its_cable_to_the_clients_stays_the_leader(
    net: Network, apart: Apart
) -> None:
    """Its clients cannot reach it. It leads on, and has all that it has accepted."""
    async with SocketClient(apart.door.port) as client:
        producer = Producer(client, 0)
        await producer.attach("q")
        await producer.run(200)
        net.pull(TO_CLIENTS)
        producer.send()
    pulled_s = time.monotonic()
    while time.monotonic() - pulled_s < SILENCE_MS / 1000:
        assert await apart.pair.lock_holder() == "one"
    assert apart.standby.stands_by.is_set()
    await apart.leader.kill()
    await apart.standby.ready()
    await everything_is_there(apart.standby.port, producer)
    await apart.pair.check_commits()
