"""Shards: processes that one command starts, watches and stops, and that share no message."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from broker.amqp.errors import CONNECTION_REDIRECT
from broker.amqp.frames import AMQP_HEADER
from broker.amqp.performatives import Open
from tests.faults.producer import Producer, drained
from tests.faults.shards import ShardedBroker
from tests.support import postgres
from tests.support.socket_client import SocketClient

pytestmark = [pytest.mark.slow, pytest.mark.requirement("OPS-20")]

BACK_S: Final = 2.0
"""Maximum seconds until a shard that was killed is back."""

BUSY_S: Final = 3.0
"""Seconds by which other programs of the machine may delay that."""

STORES: Final = {"a": "sqlite:///a.db", "b": "sqlite:///b.db"}


class Manager:
    """A service manager, which programs tell their state."""

    def __init__(self, folder: Path) -> None:
        self.path: Final = str(folder / "notify")
        self.socket: Final = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)

    def told(self) -> list[str]:
        """Return what it was told since the last call."""
        found = []
        while True:
            try:
                found.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return found


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    made = Manager(tmp_path_factory.mktemp("manager"))
    with made.socket:
        yield made


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, manager: Manager) -> Iterator[ShardedBroker]:
    folder = tmp_path_factory.mktemp("shards")
    with ShardedBroker(folder, stores=STORES, variables={"NOTIFY_SOCKET": manager.path}) as broker:
        broker.ready()
        yield broker


def test_the_supervisor_alone_tells_the_service_manager(
    both: ShardedBroker, manager: Manager
) -> None:
    assert manager.told() == ["READY=1\nSTATUS=2 shards"]
    assert set(both.pids) == {"a", "b"}


async def test_nothing_of_one_shard_is_seen_in_the_other(both: ShardedBroker) -> None:
    async with SocketClient(both.ports["a"]) as client:
        producer = Producer(client, 0)
        await producer.attach("alone")
        await producer.run(3)
    assert await drained(both.ports["b"], "alone", 0) == []
    assert set(producer.accepted) <= set(await drained(both.ports["a"], "alone", 3))


async def test_a_client_that_asks_for_the_other_shard_is_sent_there(both: ShardedBroker) -> None:
    async with SocketClient(both.ports["a"]) as client:
        client.send_bytes(AMQP_HEADER)
        client.send(Open(container_id="c", hostname="B.example"))
        assert await client.header() == AMQP_HEADER
        assert isinstance(await client.next(), Open)
        error = (await client.closed()).error
    assert error is not None
    assert error.condition == CONNECTION_REDIRECT
    assert str(both.ports["b"]) in str(error.info)


async def test_a_shard_that_is_killed_is_back_soon_and_disturbs_no_other(
    both: ShardedBroker,
) -> None:
    async with SocketClient(both.ports["a"]) as client:
        producer = Producer(client, 0)
        await producer.attach("kept")
        await producer.run(5)
    async with SocketClient(both.ports["b"]) as client:
        other = Producer(client, 0)
        await other.attach("q")
        await other.run(1)
        began_s = time.monotonic()
        os.kill(both.pids["a"], signal.SIGKILL)
        both.until("shard a: ready ")
        assert time.monotonic() - began_s < BACK_S + BUSY_S
        await other.run(2)  # on the connection that it had
    assert set(producer.accepted) <= set(await drained(both.ports["a"], "kept", 5))
    assert "BRK-019" in "".join(both.output)


def test_sighup_reloads_the_settings_of_all_shards(both: ShardedBroker) -> None:
    before = len(both.output)
    both.process.send_signal(signal.SIGHUP)
    reloaded: set[str] = set()
    while reloaded < {"a", "b"}:
        both.until("20")  # a line of the log begins with its year
        reloaded = {
            name
            for line in both.output[before:]
            for name in STORES
            if "CFG-001" in line and f"shard={name}" in line
        }


def test_sigterm_stops_all_shards_in_order(tmp_path: Path) -> None:
    with ShardedBroker(tmp_path, stores=STORES) as broker:
        broker.ready()
        assert broker.status([signal.SIGTERM]) == 0
        assert broker.ended().count("broker stopped") == 2


def test_a_supervisor_that_is_killed_leaves_no_shard_behind(tmp_path: Path) -> None:
    with ShardedBroker(tmp_path, stores=STORES) as broker:
        broker.ready()
        broker.process.kill()
        assert broker.ended().count("broker stopped") == 2


def test_a_shard_whose_store_is_bad_ends_all_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "b.db").write_bytes(b"no database" * 1000)
    with ShardedBroker(tmp_path, stores=STORES) as broker:
        assert broker.status() == 1
        output = broker.ended()
    assert "BRK-020" in output
    assert "\nready" not in output


def test_one_shard_runs_alone(tmp_path: Path) -> None:
    with ShardedBroker(tmp_path, "--shard", "b", stores=STORES) as broker:
        (ready,) = broker.until("ready ")
        assert f":{broker.ports['b']} " in ready
        assert broker.status([signal.SIGTERM]) == 0


async def test_each_shard_is_a_group_of_its_own(tmp_path: Path) -> None:
    """Two machines have shards on two schemas of one database: one stands by, and takes over."""
    server = postgres.server()
    database = server.database()
    stores = {}
    for name in "ab":
        await server.sql(f"CREATE SCHEMA {name}", database=database)
        stores[name] = f"{server.url(database)}?search_path={name}"
    brokers = []
    with ExitStack() as stack:
        for name in ("left", "right"):
            folder = tmp_path / name
            folder.mkdir()
            ha = f'[ha]\nenabled = true\nname = "{name}"\n'
            broker = stack.enter_context(ShardedBroker(folder, stores=stores, settings=ha))
            broker.ready()
            brokers.append(broker)
        left, right = brokers
        assert right.pids == {}, "ready, since its shards stand by"
        assert left.status([signal.SIGTERM]) == 0
        right.until("shard a: ready ", "shard b: ready ")
        assert right.status([signal.SIGTERM]) == 0
