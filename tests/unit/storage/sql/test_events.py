"""The event log in SQL: over a restart, and the number of rows that one query examines."""

from pathlib import Path

import pytest
from sqlalchemy import text

from storage.batch import Batch
from storage.events import EVENT_COLUMNS, EventQuery, Trim
from storage.sql import events
from storage.sql.schema import bring_up_to_date
from storage.sql.sqlite.sqlite import prepare
from storage.sql.sqlite.store import SqliteStore
from storage.sql.statements import Texts
from storage.sql.tables import EVENT
from tests.contract.test_events import filled, ids, row
from tests.support.migrating import schema
from tests.support.stored_files import connected


def test_the_columns_of_a_row_are_those_of_the_table() -> None:
    assert tuple(column.name for column in EVENT.columns) == EVENT_COLUMNS


async def test_rows_are_there_after_a_restart_and_ids_go_on(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await filled(store, 5)
    batch = Batch()
    batch.trim_events(Trim(before_us=2**60, floor=0, step=100))
    await store.commit(batch)
    await store.close()
    again = SqliteStore(tmp_path / "store.db")
    await again.open()
    assert await ids(again) == [5]
    assert again.first_event == 6, "ids are never given twice, whatever has been removed"
    await again.close()


async def test_one_query_looks_at_a_bounded_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "SCAN_MAX", 3)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await filled(store, 7)
    page = await store.events(EventQuery(address="nowhere"))
    assert (page.rows, page.looked_to, page.is_last) == ([], 3, False)
    assert await ids(store) == [1, 2, 3, 4, 5, 6, 7]
    batch = Batch()
    batch.trim_events(Trim(before_us=0, floor=6, step=100))
    await store.commit(batch)
    page = await store.events(EventQuery())
    assert [each[0] for each in page.rows] == [6, 7], "what was removed is not looked at"
    await store.close()


def test_a_store_without_the_event_log_gets_it_and_keeps_its_rows(tmp_path: Path) -> None:
    with connected(tmp_path / "store.db") as connection:
        prepare(connection)
        schema(connection, "0005")
        connection.execute(text("INSERT INTO node (kind, address) VALUES ('queue', 'a')"))
        bring_up_to_date(connection)
        connection.exec_driver_sql(Texts(connection.dialect).of(events.INSERT), [row(1), row(2)])
        assert events.load(connection, EventQuery(behind=1)).rows == [row(2)]
        assert connection.execute(text("SELECT address FROM node")).scalar() == "a"
