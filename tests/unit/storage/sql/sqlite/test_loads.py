"""Loads of messages over a connection of their own, beside the commit under way."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from threading import enumerate as running

import pytest
from sqlalchemy import Connection, text

from storage.api import StoreError
from storage.batch import Batch
from storage.records import StoredMessage
from storage.sql.sqlite.loads import LoadConnection
from storage.sql.sqlite.sqlite import checkpoint, connect, log_of, log_size
from storage.sql.sqlite.store import SqliteStore
from tests.support.stored_files import connected, filled, flip
from tests.unit.storage.test_batch import stored


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Let no commit begin: another program writes."""
    with closing(sqlite3.connect(database)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def batch(*numbers: int) -> Batch:
    found = Batch()
    for number in numbers:
        found.append(stored(number))
    return found


def numbers(messages: list[StoredMessage]) -> list[int]:
    return [int(message.number) for message in messages]


def threads() -> set[str]:
    return {thread.name for thread in running()}


async def opened(database: Path) -> SqliteStore:
    store = SqliteStore(database)
    await store.open()
    return store


async def test_a_load_does_not_wait_for_a_commit(database: Path) -> None:
    store = await opened(database)
    await store.commit(batch(1, 2))
    removing = Batch()
    removing.remove(1)
    with locked(database):
        commit = asyncio.create_task(store.commit(removing))
        await asyncio.sleep(0)
        assert numbers(await store.load([1, 2])) == [1, 2], "removed in no commit that has ended"
        assert not commit.done()
    await commit
    assert numbers(await store.load([1, 2])) == [2]
    await store.close()


async def test_a_message_of_the_commit_under_way_is_waited_for(database: Path) -> None:
    store = await opened(database)
    await store.commit(batch(1))
    with locked(database):
        commit = asyncio.create_task(store.commit(batch(2)))
        await asyncio.sleep(0)
        load = asyncio.create_task(store.load([1, 2]))
        assert numbers(await store.load([1])) == [1]
        assert not load.done()
    assert numbers(await load) == [1, 2]
    await commit
    await store.close()


async def test_a_queue_of_a_later_commit_is_known(database: Path) -> None:
    store = await opened(database)
    await store.commit(batch(1))
    assert numbers(await store.load([1])) == [1]
    other = Batch()
    other.append(stored(2, "another queue"))
    await store.commit(other)
    assert [message.queue for message in await store.load([1, 2])] == ["q", "another queue"]
    await store.close()


async def test_a_message_that_two_loads_find_damaged_is_quarantined_once(database: Path) -> None:
    await filled(database, 6)
    flip(database, 4)
    store = await opened(database)
    found = await asyncio.gather(store.load([4, 5]), store.load([4, 6]))
    assert [numbers(each) for each in found] == [[5], [6]]
    assert store.quarantined == 1
    assert numbers(await store.load([4, 5])) == [5]
    await store.close()


async def test_a_load_that_fails_is_the_end_of_all_commits(database: Path) -> None:
    store = await opened(database)
    await store.commit(batch(1))
    with closing(connect(str(database))) as other:
        other.execute("DROP TABLE body")
    with pytest.raises(StoreError, match="no such table"):
        await store.load([1])
    with pytest.raises(StoreError, match="no such table"):
        await store.commit(batch(2))
    await store.close()


async def test_a_close_ends_the_connection_before_the_one_that_writes(database: Path) -> None:
    store = await opened(database)
    await store.commit(batch(1))
    load = asyncio.create_task(store.load([1]))
    await asyncio.sleep(0)
    await store.close()
    assert numbers(await load) == [1]
    assert not log_of(database).exists(), "the last connection removes the log"
    with pytest.raises(StoreError, match="is not open"):
        await store.load([1])


async def test_a_store_that_loads_nothing_has_no_thread_for_it(database: Path) -> None:
    store = await opened(database)
    await store.commit(batch(1))
    assert "store-loads" not in threads()
    await store.load([1])
    assert "store-loads" in threads()
    await store.close()
    assert "store-loads" not in threads()


async def test_all_statements_of_a_load_see_one_state(database: Path) -> None:
    await filled(database, 3)
    loads = LoadConnection(database)
    count = text("SELECT count(*) FROM segment")

    def look(connection: Connection) -> list[object]:
        before = connection.execute(count).scalar()
        with connected(database) as other:
            other.exec_driver_sql("DELETE FROM segment")
            other.commit()
        return [before, connection.execute(count).scalar()]

    assert await loads.do(look) == [1, 1]
    assert await loads.do(lambda connection: connection.execute(count).scalar()) == 0
    await loads.close()


async def test_nothing_can_be_written_over_it(database: Path) -> None:
    await filled(database, 3)
    loads = LoadConnection(database)
    with pytest.raises(Exception, match="readonly"):
        await loads.do(lambda connection: connection.exec_driver_sql("DELETE FROM segment"))
    await loads.close()


async def test_a_checkpoint_moves_the_whole_log_once_the_load_has_ended(database: Path) -> None:
    await filled(database, 3)
    loads = LoadConnection(database)
    begun, may_end = Event(), Event()

    def look(connection: Connection) -> None:
        connection.execute(text("SELECT count(*) FROM segment")).scalar()
        begun.set()
        may_end.wait()

    with connected(database) as writing:
        writing.exec_driver_sql("PRAGMA wal_autocheckpoint=0")
        load = asyncio.create_task(loads.do(look))
        await asyncio.to_thread(begun.wait)
        writing.exec_driver_sql("UPDATE segment SET size = size + 1")
        writing.commit()
        logged, moved = checkpoint(writing)
        assert moved < logged, "an older load reads the log"
        waiting = asyncio.create_task(asyncio.to_thread(loads.wait))
        may_end.set()
        await waiting
        await load
        logged, moved = checkpoint(writing)
        assert moved == logged
    await loads.close()


async def test_a_pause_lets_no_load_begin(database: Path) -> None:
    await filled(database, 3)
    loads = LoadConnection(database)
    loads.pause()
    loads.pause()
    load = asyncio.create_task(loads.do(lambda _: 7))
    done, _ = await asyncio.wait([load], timeout=0.05)
    assert not done
    loads.resume()
    assert await load == 7
    loads.resume()
    await loads.close()


async def test_loads_do_not_let_the_log_grow(database: Path) -> None:
    """Each checkpoint waits for the load under way, and the next commit begins the log anew."""
    store = await opened(database)
    first, size = 1, 0
    for _ in range(12):
        some = Batch()
        for number in range(first, first + 64):
            some.append(stored(number).with_bytes(bytes(16_384)))
        first += 64
        loads = [asyncio.create_task(store.load([1])) for _ in range(4)] if size else []
        await store.commit(some)
        await asyncio.gather(*loads)
        size = max(size, log_size(database))
    assert size < 12 * 64 * 16_384
    await store.close()
