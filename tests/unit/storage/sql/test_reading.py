"""Reading in parts, and the effect of a damaged message on it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from storage.batch import Batch
from storage.sql import reading
from storage.sql.segments.segment import COPIES_MAX
from storage.sql.sqlite.store import SqliteStore
from tests.unit.storage.test_batch import stored


async def filled(folder: Path, count: int) -> SqliteStore:
    store = SqliteStore(folder / "store.db")
    await store.open()
    batch = Batch()
    for number in range(1, count + 1):
        batch.append(stored(number))
    await store.commit(batch)
    return store


async def test_places_come_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SEGMENTS_AT_ONCE", 2)
    store = await filled(tmp_path, 600)
    first = await store.places(0)
    second = await store.places(first.numbers[-1])
    assert first.numbers == list(range(1, 2 * COPIES_MAX + 1))
    assert second.numbers == list(range(2 * COPIES_MAX + 1, 601))
    assert (await store.places(599)).numbers == [600]
    assert (await store.places(600)).numbers == []
    await store.close()


async def test_a_damaged_message_has_its_place_and_is_not_loaded(tmp_path: Path) -> None:
    store = await filled(tmp_path, 2)
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
        database.execute("UPDATE body SET encoded = x'00'")
    again = SqliteStore(tmp_path / "store.db")
    await again.open()
    assert (await again.places(0)).numbers == [1, 2]
    assert [int(message.number) for message in await again.load([2])] == []
    assert (await again.places(0)).numbers == [1], "it has been quarantined"
    await again.close()
