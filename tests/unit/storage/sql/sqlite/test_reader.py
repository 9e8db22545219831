"""The read-only connection to a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text

from storage.api import StoreError
from storage.facts import QuarantinedMessage
from storage.sql.schema import HEAD
from storage.sql.sqlite import reader as module
from storage.sql.sqlite.reader import Reader
from storage.sql.sqlite.store import SqliteStore
from tests.support.stored import stored_messages
from tests.support.stored_files import filled, flip


async def test_the_facts_of_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNTED_TOGETHER", 7)
    database = tmp_path / "store.db"
    await filled(database, 20)
    flip(database, 19, 20)
    store = SqliteStore(database)
    await store.open()
    await stored_messages(store, "q")
    facts = await store.facts()
    assert (facts.schema, facts.messages, facts.quarantined) == (HEAD, 20, 2)
    assert facts.file_bytes == database.stat().st_size
    assert facts.log_bytes == (tmp_path / "store.db-wal").stat().st_size
    assert facts.free_bytes > 0
    disk = store.disk_space()
    assert disk is not None
    assert disk.used == facts.file_bytes + facts.log_bytes
    assert 0 < disk.free < disk.total
    found = await store.quarantined_messages(18, 5)
    assert [(each.number, each.queue, each.size) for each in found] == [
        (19, "q", 20),
        (20, "q", 20),
    ]
    assert isinstance(found[0], QuarantinedMessage)
    assert [each.number for each in await store.quarantined_messages(-1, 1)] == [19]
    await store.close()


async def test_counting_is_given_up_where_it_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COUNTING_MAX_S", 0)
    await filled(tmp_path / "store.db", 20)
    reader = Reader(tmp_path / "store.db")
    assert (await reader.facts()).messages is None
    await reader.close()


async def test_nothing_can_be_written_with_it(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 2)
    reader = Reader(tmp_path / "store.db")
    delete = text("DELETE FROM segment")
    with pytest.raises(StoreError, match="readonly"):
        await reader.do(lambda connection: connection.execute(delete))
    assert (await reader.facts()).messages == 2
    pragma = text("PRAGMA wal_autocheckpoint")
    assert await reader.do(lambda connection: connection.execute(pragma).scalar()) == 0
    await reader.close()


async def test_a_reader_that_is_closed_says_so(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 2)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store.facts()
    await store.close()
    with pytest.raises(StoreError, match="is closed"):
        await store.facts()
