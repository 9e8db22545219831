"""A copy of a store in use: one state of it, whatever is written meanwhile."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import Event

import pytest

from broker.routing.entries.record_mapping import HELD_PLACES
from storage.api import StoreError
from storage.batch import Batch
from storage.records import StoredNode
from storage.sql.sqlite import backup
from storage.sql.sqlite.backup import back_up
from storage.sql.sqlite.store import SqliteStore
from tests.support.stored import stored_messages
from tests.support.stored_files import filled, garble_schema, rows
from tests.unit.storage.test_batch import stored


def files(folder: Path) -> list[Path]:
    """Return the files of the copy."""
    return [path for path in folder.iterdir() if path.name.startswith("copy")]


def ignored(done: int, total: int) -> None:
    """Ignore the progress."""


async def test_what_was_committed_before_is_in_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy has nothing of later commits, though it takes many steps."""
    monkeypatch.setattr(backup, "STEP_PAGES", 1)
    database, target = tmp_path / "store.db", tmp_path / "copy.db"
    await filled(database, 200, size=3000)
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.mark_delivered("q", 100)
    await store.commit(batch)
    writer = sqlite3.connect(database)
    told: list[tuple[int, int]] = []

    def write(done: int, total: int) -> None:
        told.append((done, total))
        with writer:
            writer.execute("DELETE FROM segment WHERE number = ?", (len(told) * 64 + 1,))

    back_up(database, target, told=write, ending=Event())
    writer.close()
    assert len(told) > 100
    assert told[-1][0] == told[-1][1] == target.stat().st_size
    assert rows(target, "SELECT sum(length(facts)) / 76 FROM segment") == [(200,)]
    assert not (tmp_path / "copy.db.part").exists()
    assert target.stat().st_mode & 0o777 == 0o600
    await store.close()
    copy = SqliteStore(target)
    await copy.open()
    assert await copy.delivered() == {"q": 2004}, "what it has may have been delivered since"
    assert len(await stored_messages(copy, "q")) == 200
    batch = Batch()
    batch.append(stored(int(copy.first_number)))
    await copy.commit(batch)
    await copy.close()
    again = SqliteStore(target)
    await again.open()
    assert await again.delivered() == {"q": 2004}, "what came to the copy has not been delivered"
    await again.close()


async def test_positions_of_a_copy_are_those_of_its_messages(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    batch = Batch()
    batch.append(stored(1, "q", position=44))
    batch.append(stored(2, "r", position=HELD_PLACES + 54))
    batch.append(stored(3, "q", position=39))
    batch.add_node(StoredNode(address="s", kind="queue"))
    batch.mark_delivered("s", 99)
    batch.mark_delivered("q", 29)
    await store.commit(batch)
    await store.back_up(str(tmp_path / "copy.db"), ignored)
    await store.close()
    copy = SqliteStore(tmp_path / "copy.db")
    await copy.open()
    assert await copy.delivered() == {"q": 44, "r": 54, "s": 99}
    await copy.close()


async def test_a_store_makes_one_copy_at_a_time_and_goes_on(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 5)
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store.back_up(str(tmp_path / "copy.db"), ignored)
    batch = Batch()
    batch.append(stored(int(store.first_number)))
    await store.commit(batch)
    with pytest.raises(StoreError, match="is there already"):
        await store.back_up(str(tmp_path / "copy.db"), ignored)
    await store.close()
    with pytest.raises(StoreError, match="one backup at a time"):
        await store.back_up(str(tmp_path / "late.db"), ignored)


async def test_a_stop_ends_it_and_leaves_nothing(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 5)
    ending = Event()
    ending.set()
    with pytest.raises(StoreError, match="the broker stops"):
        back_up(tmp_path / "store.db", tmp_path / "copy.db", told=ignored, ending=ending)
    assert [path.name for path in files(tmp_path)] == []


async def test_what_is_there_is_not_touched(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 5)
    (tmp_path / "copy.db.part").write_bytes(b"mine")
    with pytest.raises(StoreError, match=r"copy\.db\.part cannot be made: File exists"):
        back_up(tmp_path / "store.db", tmp_path / "copy.db", told=ignored, ending=Event())
    assert (tmp_path / "copy.db.part").read_bytes() == b"mine"
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(StoreError, match="is there already"):
        back_up(tmp_path / "store.db", tmp_path / "full", told=ignored, ending=Event())
    with pytest.raises(StoreError, match="cannot be made: No such file"):
        back_up(tmp_path / "store.db", tmp_path / "none" / "copy.db", told=ignored, ending=Event())


async def test_a_damaged_schema_is_said_in_words_and_leaves_nothing(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 1)
    garble_schema(tmp_path / "store.db")
    with pytest.raises(StoreError, match="its schema is damaged"):
        back_up(tmp_path / "store.db", tmp_path / "copy.db", told=ignored, ending=Event())
    assert files(tmp_path) == []
