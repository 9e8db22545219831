"""Findings of a check in sound, damaged and unreadable stores."""

import sqlite3
from pathlib import Path

import pytest

from storage.batch import Batch
from storage.contents import CHUNKS_MAX
from storage.sql.large_rows import BESIDES, INCOMPLETE, LOST
from storage.sql.rows import checksum
from storage.sql.schema import HEAD
from storage.sql.sqlite.store import SqliteStore
from storage.sql.tools.check import COMPLAINTS_MAX, TOLD_MAX, Findings, check, messages_in
from storage.sql.tools.offline import reading
from tests.contract.test_contents import append, large, write
from tests.support.stored import stored_messages
from tests.support.stored_files import change, filled, flip, garble_schema, spoil


def look(database: Path) -> tuple[Findings, int]:
    """Return the findings, and the number of messages that were reported as checked."""
    seen: list[int] = []
    with reading(database) as connection:
        found = check(connection, seen.append)
    return found, sum(seen)


async def test_a_sound_store(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 2500)
    found, seen = look(tmp_path / "store.db")
    assert found.is_sound()
    assert (found.schema, seen, found.damaged, found.quarantined) == (HEAD, 2500, 0, 0)
    assert (found.rows["message"], found.rows["body"], found.rows["queue"]) == (2500, 40, 1)
    assert found.left_over == {"messages": 0, "bodies": 0}


async def test_damage_that_no_broker_has_met_yet_is_counted_and_named(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 100)
    flip(database, *range(61, 100))
    flip(database, 100, record_at=0)
    found, _ = look(database)
    assert not found.is_sound()
    assert (found.damaged, len(found.examples)) == (40, TOLD_MAX)
    assert found.examples[0] == "message 61: its bytes are not those that were stored"
    assert found.complaints == []


async def test_damage_that_is_known_is_not_told_again(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 5)
    flip(database, 5)
    store = SqliteStore(database)
    await store.open()
    await stored_messages(store, "q")
    await store.close()
    found, _ = look(database)
    assert found.is_sound()
    assert found.quarantined == 1


async def test_what_is_nobodys_is_no_damage(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 5)
    change(database, "DELETE FROM queue", "INSERT INTO body (number, encoded) VALUES (7, 'x')")
    found, _ = look(database)
    assert found.is_sound()
    assert found.left_over == {"messages": 5, "bodies": 1}


async def test_a_page_that_cannot_be_read(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 300, size=500)
    spoil(database, b"150 xxx")
    found, _ = look(database)
    assert not found.is_sound()
    assert 0 < len(found.complaints) <= COMPLAINTS_MAX + 1
    assert any("malformed" in complaint for complaint in found.complaints)


async def test_a_schema_that_cannot_be_read(tmp_path: Path) -> None:
    await filled(tmp_path / "store.db", 1)
    garble_schema(tmp_path / "store.db")
    found, _ = look(tmp_path / "store.db")
    assert found.complaints == ["its schema is damaged"]


async def test_chunks_of_large_messages(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 3)
    number = 7 * CHUNKS_MAX + 2
    rows = [(number + place, bytes([place])) for place in range(20)]
    connection = sqlite3.connect(database)
    with connection:
        connection.executemany(
            "INSERT INTO chunk (number, checksum, data) VALUES (?, ?, ?)",
            [(each, checksum(each, data), data) for each, data in rows],
        )
    connection.close()
    assert look(database)[0].is_sound()
    change(database, f"UPDATE chunk SET data = x'FFFF' WHERE number = {number + 18}")
    found, _ = look(database)
    assert (found.is_sound(), found.damaged, found.damaged_chunks) == (False, 0, 1)
    assert found.examples == ["chunk 20 of content 7 is damaged"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        pytest.param(
            f"DELETE FROM chunk WHERE number = {CHUNKS_MAX + 1}", INCOMPLETE, id="a chunk"
        ),
        pytest.param("DELETE FROM chunk", INCOMPLETE, id="all chunks"),
        pytest.param("UPDATE large SET beginning = x'00'", BESIDES, id="its beginning"),
        pytest.param("UPDATE large SET content = -1", BESIDES, id="its content"),
        pytest.param("DELETE FROM large", LOST, id="its row"),
    ],
)
async def test_large_messages_without_their_bodies(tmp_path: Path, damage: str, said: str) -> None:
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    await write(store, 1, 2)
    await append(store, large(1, 1), large(2, 1))
    batch = Batch()
    batch.content_changes().quarantined.append((2, "chunk 0 is damaged"))
    await store.commit(batch)
    await store.close()
    assert look(database)[0].is_sound()
    change(database, damage)
    found, _ = look(database)
    assert (found.is_sound(), found.damaged) == (False, 1)
    assert found.examples == [f"message 1: {said}"]


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"not a database, but somebody's file" * 200)
    (tmp_path / "empty").touch()
    found, _ = look(tmp_path / "text")
    assert found.complaints == ["file is not a database"]
    found, _ = look(tmp_path / "empty")
    assert found.complaints == ["there is no table body, queue, segment"]
    with reading(tmp_path / "empty") as connection:
        assert messages_in(connection) is None
