"""Stages in SQL: over a restart, and in a store from before they existed."""

from pathlib import Path

import pytest
from sqlalchemy import text

from storage.batch import Batch
from storage.sql import stages
from storage.sql.schema import bring_up_to_date
from storage.sql.sqlite.sqlite import prepare
from storage.sql.sqlite.store import SqliteStore
from storage.stages import STAGED, StoredSink
from tests.contract.test_stages import stage
from tests.contract.test_store import stored
from tests.support.migrating import schema_0001
from tests.support.stored import stored_messages
from tests.support.stored_files import connected


@pytest.mark.requirement("PIP-12")
async def test_stages_are_there_after_a_restart(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    batch = Batch()
    batch.stage_changes().add(stage(3))
    batch.stage_changes().keep(StoredSink(query="q", batch=4, at_ms=5))
    batch.append(stored(1, queue=STAGED))
    await store.commit(batch)
    await store.close()
    again = SqliteStore(tmp_path / "store.db")
    await again.open()
    assert [int(each.number) for each in await again.stages()] == [3]
    assert [(each.query, int(each.batch)) for each in await again.sinks()] == [("q", 4)]
    assert len(await stored_messages(again, STAGED)) == 1
    await again.close()


def test_a_store_of_the_first_schema_gets_the_tables(tmp_path: Path) -> None:
    with connected(tmp_path / "store.db") as connection:
        prepare(connection)
        schema_0001(connection)
        bring_up_to_date(connection)
        connection.execute(
            text("INSERT INTO stage VALUES (1, 'q', 2, 3, 4, 'queue', 'a', 'me', 5)")
        )
        (kept,) = stages.stages(connection)
        assert (kept.number, kept.query, kept.batch, kept.partition) == (1, "q", 2, 3)
        assert (kept.attempt, kept.kind, kept.address) == (4, "queue", "a")
        assert (kept.publisher, kept.owner) == ("me", None)
        assert stages.sinks(connection) == []
