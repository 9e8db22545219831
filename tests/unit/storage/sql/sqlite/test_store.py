"""A store in SQLite over restarts, and with a damaged file or a failing disk."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.api import StoreError
from storage.batch import Batch
from storage.contents import CHUNK_SIZE
from storage.records import StoredNode
from storage.sql.index import NUMBERS_AT_ONCE
from storage.sql.sqlite.sqlite import log_size
from storage.sql.sqlite.store import SqliteStore
from tests.support.stored import stored_messages
from tests.support.stored_files import filled, garble_schema
from tests.unit.storage.test_batch import stored


async def opened(folder: Path) -> SqliteStore:
    store = SqliteStore(folder / "data" / "store.db")
    await store.open()
    return store


def connect(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(folder / "data" / "store.db")


@pytest.mark.requirement("PRD-03")
async def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    batch = Batch()
    batch.add_node(StoredNode(address="q", kind="queue"))
    batch.append(stored(1))
    batch.append(stored(2, "r"))
    await store.commit(batch)
    await store.close()
    again = await opened(tmp_path)
    assert [node.address for node in await again.nodes()] == ["q"]
    assert [int(message.number) for message in await stored_messages(again, "q")] == [1]
    assert [int(message.number) for message in await stored_messages(again, "r")] == [2]
    await again.close()


async def test_who_loads_waits_for_no_writer(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    batch = Batch()
    batch.append(stored(1))
    await store.commit(batch)
    with closing(connect(tmp_path)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert [int(message.number) for message in await store.load([1])] == [1]
    await store.close()


async def test_a_store_that_is_closed_twice_is_closed(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    await asyncio.gather(store.close(), store.close())
    await store.close()
    with pytest.raises(StoreError, match="is not open"):
        await store.nodes()
    again = await opened(tmp_path)
    await again.close()


async def test_numbers_are_never_given_again(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    assert store.first_number == 1
    batch = Batch()
    batch.append(stored(1))
    await store.commit(batch)
    batch = Batch()
    batch.remove(1)
    await store.commit(batch)
    await store.close()
    again = await opened(tmp_path)
    assert again.first_number == 1 + NUMBERS_AT_ONCE + 1
    await again.close()


async def test_a_queue_that_was_made_anew_does_not_get_old_messages(tmp_path: Path) -> None:
    node = StoredNode(address="q", kind="queue")
    store = await opened(tmp_path)
    batch = Batch()
    batch.add_node(node)
    batch.append(stored(1))
    await store.commit(batch)
    batch = Batch()
    batch.remove_node(node)
    batch.add_node(node)
    batch.append(stored(2))
    await store.commit(batch)
    await store.close()
    again = await opened(tmp_path)
    assert [int(message.number) for message in await stored_messages(again, "q")] == [2]
    await again.close()
    with closing(connect(tmp_path)) as connection:
        assert connection.execute("SELECT number FROM segment").fetchall() == [(2,)]


async def test_a_second_process_is_told_who_has_the_store(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    with pytest.raises(StoreError, match="in use by process"):
        await opened(tmp_path)
    await store.close()


async def test_a_file_that_is_no_database_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "data" / "store.db"
    path.parent.mkdir()
    path.write_bytes(b"not a database, but somebody's file" * 100)
    with pytest.raises(StoreError, match="cannot be read"):
        await opened(tmp_path)
    assert path.read_bytes().startswith(b"not a database")


@pytest.mark.requirement("PRD-03")
async def test_a_damaged_schema_is_said_in_words(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 1)
    garble_schema(tmp_path / "store.db")
    store = SqliteStore(tmp_path / "store.db")
    with pytest.raises(StoreError, match=r"its schema is damaged.*store salvage"):
        await store.open()
    await store.close()


async def test_after_an_error_nothing_more_is_committed(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    batch = Batch()
    batch.append(stored(1))
    await store.commit(batch)
    with pytest.raises(StoreError, match="UNIQUE"):
        await store.commit(batch)
    later = Batch()
    later.append(stored(2))
    with pytest.raises(StoreError, match="UNIQUE"):
        await store.commit(later)
    await store.close()
    again = await opened(tmp_path)
    assert [int(message.number) for message in await stored_messages(again, "q")] == [1]
    await again.close()


async def test_the_log_does_not_grow_with_what_is_written(tmp_path: Path) -> None:
    store = await opened(tmp_path)
    batch = Batch()
    batch.content_changes().held.append(1)
    sizes = []
    for index in range(40):  # 10 MiB, two and a half times 1,000 pages
        batch.content_changes().write(1, index, bytes(CHUNK_SIZE))
        await store.commit(batch)
        batch = Batch()
        sizes.append(log_size(tmp_path / "data" / "store.db"))
    assert max(sizes) < 6 * 1024 * 1024
    await store.close()
