"""Calls that both SQL stores refuse, before they are open or at any time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.api import StoreError
from storage.batch import Batch
from storage.sql.postgresql.store import PostgresStore
from storage.sql.sql_store import SqlStore
from storage.sql.sqlite.store import SqliteStore


@pytest.fixture(params=["SQLite", "PostgreSQL"])
async def closed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlStore]:
    """Yield a store that has not been opened."""
    store: SqlStore = PostgresStore("postgresql://nobody@localhost:1/none")
    if request.param == "SQLite":
        store = SqliteStore(tmp_path / "store.db")
    yield store
    await store.close()


async def test_nothing_can_be_read_from_a_store_that_is_not_open(closed: SqlStore) -> None:
    for reading in (closed.nodes(), closed.messages(0), closed.load([1]), closed.read_chunk(1, 0)):
        with pytest.raises(StoreError, match="is not open"):
            await reading


async def test_a_disk_has_to_be_waited_for(closed: SqlStore) -> None:
    assert not closed.commits_at_once
    with pytest.raises(StoreError, match="has to be waited for"):
        closed.commit_now(Batch())
    with pytest.raises(StoreError, match="has to be waited for"):
        closed.load_now([1])
