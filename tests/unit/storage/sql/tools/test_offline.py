"""Stores that commands open: their names, and the refusal while a broker uses them."""

import os
from pathlib import Path

import pytest
from sqlalchemy import text

from storage.api import StoreError
from storage.sql.sqlite.store import SqliteStore
from storage.sql.tools.offline import database_of, present, reading, writing
from tests.support.stored_files import change, filled

NAMES = [
    pytest.param("data/store.db", "FOLDER/data/store.db", id="a path"),
    pytest.param("sqlite:///data/store.db", "FOLDER/data/store.db", id="a URL"),
    pytest.param("sqlite:////data/store.db", "/data/store.db", id="from the root"),
    pytest.param("data/../linked.db", "FOLDER/data/store.db", id="a link"),
]


@pytest.mark.parametrize(("given", "expected"), NAMES)
def test_how_a_store_is_named(
    given: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "linked.db").symlink_to("data/store.db")
    assert database_of(given) == Path(expected.replace("FOLDER", str(tmp_path)))


def test_another_kind_of_store_is_refused() -> None:
    with pytest.raises(StoreError, match=r"^postgresql://… is no SQLite store") as refused:
        database_of("postgresql://user:secret@host/broker")
    assert "secret" not in str(refused.value)


def test_a_store_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        present(tmp_path / "store.db")
    with pytest.raises(StoreError, match="there is no store"), reading(tmp_path / "store.db"):
        pass
    assert list(tmp_path.iterdir()) == []


async def test_a_store_in_use_is_left_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    for opened in (reading, writing):
        used = f"in use by process {os.getpid()}"
        with pytest.raises(StoreError, match=used), opened(tmp_path / "store.db"):
            pass
    await store.close()


async def test_reading_changes_nothing(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 3)
    before = database.read_bytes()
    count, delete = text("SELECT count(*) FROM queue"), text("DELETE FROM queue")
    with reading(database) as connection:
        assert connection.execute(count).scalar() == 1
    with pytest.raises(StoreError, match="readonly"), reading(database) as connection:
        connection.execute(delete)
    assert database.read_bytes() == before


async def test_what_another_command_has_done_is_there_for_the_next(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    await filled(database, 3)
    with writing(database) as connection:
        connection.execute(text("DELETE FROM queue"))
    with reading(database) as connection:
        assert connection.execute(text("SELECT count(*) FROM queue")).scalar() == 0


@pytest.mark.parametrize("table", ["customer", "alembic_version", "queue"])
async def test_a_database_of_another_program_is_left_as_it_is(tmp_path: Path, table: str) -> None:
    database = tmp_path / "app.db"
    change(database, f"CREATE TABLE {table} (id INTEGER)")
    before = database.read_bytes()
    with pytest.raises(StoreError, match=r"app\.db is no store"), writing(database):
        pass
    store = SqliteStore(database)
    with pytest.raises(StoreError, match=r"app\.db is no store"):
        await store.open()
    await store.close()
    assert database.read_bytes() == before
