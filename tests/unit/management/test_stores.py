"""The store as an operator sees it: answers that have to wait for it."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path

import pytest

from broker.management.later import LATER_MAX
from broker.management.management import Management
from storage.api import Store
from storage.memory import MemoryStore
from storage.sql.schema import HEAD
from storage.sql.sqlite.store import SqliteStore
from tests.support.broker import Broker
from tests.support.frames import Transfer
from tests.support.management import Manager, Reply, read_reply, request
from tests.support.stored import stored_messages
from tests.support.stored_files import filled, flip


class Setting:
    """A broker whose management uses the given store; work for it waits until `settle`."""

    def __init__(self, store: Store) -> None:
        self.broker = Broker()
        self.beside: list[Coroutine[None, None, None]] = []
        self.broker.container.service = Management(self.broker.container, store, self.beside.append)
        self.manager = Manager(self.broker)

    async def settle(self) -> None:
        while self.beside:
            await self.beside.pop(0)

    async def ask(self, operation: str, kind: str, name: str, **body: object) -> Reply:
        """Send a request that has to wait for the store; return the response."""
        self.manager.send(request(operation, kind, name, body=body))
        return await self.reply()

    async def query(self, kind: str, **body: object) -> Reply:
        payload = request(
            "QUERY", "org.amqp.management", properties={"entityType": kind}, body=body
        )
        self.manager.send(payload)
        return await self.reply()

    async def reply(self) -> Reply:
        await self.settle()
        bodies = self.manager.client.bodies()
        (found,) = [body for body in bodies if isinstance(body, Transfer)]
        return read_reply(found.payload)


@pytest.fixture
async def store(tmp_path: Path) -> SqliteStore:
    """Return a store with five messages, of which 4 and 5 are quarantined."""
    await filled(tmp_path / "store.db", 5)
    flip(tmp_path / "store.db", 4, 5)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await stored_messages(store, "q")
    return store


async def test_the_store(store: SqliteStore) -> None:
    setting = Setting(store)
    told = (await setting.ask("READ", "store", "store")).map
    assert (told["schema"], told["messages"], told["quarantined"]) == (HEAD, 5, 2)
    (row,) = (await setting.query("store", attributeNames=["name", "file_bytes"])).rows
    assert row == {"name": told["name"], "file_bytes": told["file_bytes"]}
    await store.close()
    gone = await setting.ask("READ", "store", "store")
    assert gone.status == 500
    assert "is closed" in gone.description


async def test_the_ballast_of_the_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", ballast_bytes=2**20)
    await store.open()
    told = (await Setting(store).ask("READ", "store", "store")).map
    assert (told["ballast_bytes"], told["ballast_missing_bytes"]) == (2**20, 0)
    assert (told["ballast_releases"], told["checkpoints_postponed"]) == (0, 0)
    await store.close()


async def test_damaged_messages(store: SqliteStore) -> None:
    setting = Setting(store)
    found = (await setting.query("quarantined-message")).rows
    assert [(row["name"], row["queue"]) for row in found] == [("4", "q"), ("5", "q")]
    assert [row["name"] for row in (await setting.query("quarantined-message", after=4)).rows] == [
        "5"
    ]
    await store.close()


async def test_a_store_in_memory_has_nothing_to_tell() -> None:
    setting = Setting(MemoryStore())
    told = (await setting.ask("READ", "store", "store")).map
    assert (told["name"], told["file_bytes"], told["free_bytes"]) == ("memory", 0, -1)
    assert (await setting.query("quarantined-message")).rows == []


async def test_who_has_gone_gets_no_answer() -> None:
    setting = Setting(MemoryStore())
    setting.manager.send(request("READ", "store", "store"))
    setting.manager.client.hang_up()
    await setting.settle()
    assert setting.broker.watcher.errors == []


async def test_so_many_may_wait() -> None:
    setting = Setting(MemoryStore())
    managers = [Manager(setting.broker, f"manager {number}") for number in range(9)]
    for number in range(LATER_MAX):
        managers[number // 8].send(request("READ", "store", "store"))
    managers[8].client.frames()
    assert managers[8].ask("READ", "store", "store").status == 503
    await setting.settle()
    managers[8].send(request("READ", "store", "store"))
    assert len(setting.beside) == 1
    await setting.settle()
