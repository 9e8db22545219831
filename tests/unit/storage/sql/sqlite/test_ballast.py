"""The ballast: a file that reserves room for a full disk, and the retry with that room."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from storage.batch import Batch
from storage.sql.sqlite.ballast import SMALL_PART, STAT_BLOCK, Ballast, _fill, with_room
from storage.sql.sqlite.sqlite import engine_of, log_of, log_size, prepare, write
from storage.sql.sqlite.store import SqliteStore
from storage.sql.statements import Texts
from tests.support.stored import stored_messages
from tests.support.stored_files import connected
from tests.unit.storage.test_batch import stored

MEBIBYTE = 1024 * 1024
SIZE = 2 * MEBIBYTE


def file_of(database: Path) -> Path:
    return database.with_name("store.db.ballast")


def made(database: Path, size: int = SIZE) -> Ballast:
    ballast = Ballast(database, size)
    ballast.prepare()
    ballast.take_back()
    return ballast


def allocated(file: Path) -> int:
    return file.stat().st_blocks * STAT_BLOCK


def test_the_room_is_allocated_and_not_just_the_length_of_a_file(tmp_path: Path) -> None:
    ballast = made(tmp_path / "store.db")
    file = file_of(tmp_path / "store.db")
    assert ballast.held == SIZE
    assert (file.stat().st_size, file.stat().st_mode & 0o777) == (SIZE, 0o600)
    assert allocated(file) >= SIZE


def test_a_file_system_that_does_not_allocate_is_written_to(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(SIZE)
        _fill(file.fileno(), 0, SIZE)
        os.fsync(file.fileno())
    assert allocated(tmp_path / "file") >= SIZE


def test_it_is_released_by_halves_and_taken_back(tmp_path: Path) -> None:
    ballast = made(tmp_path / "store.db")
    file = file_of(tmp_path / "store.db")
    assert ballast.release(SIZE)
    assert (ballast.held, allocated(file), ballast.releases) == (SIZE // 2, SIZE // 2, 1)
    assert not ballast.release(SIZE), "the other half is for those who make room"
    assert not ballast.release(SIZE // SMALL_PART + 1)
    assert ballast.release(SIZE // SMALL_PART)
    assert (ballast.held, file.stat().st_size, ballast.releases) == (0, 0, 2)
    assert not ballast.release(0), "there is no more of it"
    ballast.take_back()
    assert (ballast.held, allocated(file)) == (SIZE, SIZE)


def cut_short(file: Path) -> None:
    os.truncate(file, 0)


def make_sparse(file: Path) -> None:
    """Make the file sparse, as some programs do when they copy a file of zeros."""
    os.truncate(file, 0)
    os.truncate(file, SIZE)


LEFT = [
    pytest.param(Path.stat, id="as it was"),
    pytest.param(cut_short, id="released"),
    pytest.param(make_sparse, id="of its size, and not allocated"),
    pytest.param(Path.unlink, id="deleted"),
    pytest.param(lambda file: os.truncate(file, 2 * SIZE), id="larger than is wanted now"),
]


@pytest.mark.parametrize("left", LEFT)
def test_a_start_makes_it_whole(tmp_path: Path, left: Callable[[Path], None]) -> None:
    file = file_of(tmp_path / "store.db")
    made(tmp_path / "store.db")
    left(file)
    ballast = made(tmp_path / "store.db")
    assert (ballast.held, file.stat().st_size) == (SIZE, SIZE)
    assert allocated(file) >= SIZE


def test_a_file_that_was_deleted_by_hand_has_made_its_room(tmp_path: Path) -> None:
    ballast = made(tmp_path / "store.db")
    file_of(tmp_path / "store.db").unlink()
    assert ballast.release(0)
    assert not file_of(tmp_path / "store.db").exists()


def test_who_wants_none_has_none(tmp_path: Path) -> None:
    made(tmp_path / "store.db")
    ballast = made(tmp_path / "store.db", 0)
    assert not file_of(tmp_path / "store.db").exists()
    assert not ballast.release(0)


async def test_half_of_what_is_released_goes_to_the_log(tmp_path: Path) -> None:
    """Then no other program takes that room, and the store can read its contents back."""
    database = tmp_path / "store.db"
    store = SqliteStore(database, ballast_bytes=SIZE)
    await store.open()
    batch = Batch()
    batch.append(stored(1))
    await store.commit(batch)
    assert made(database).release(0)
    assert log_size(database) == SIZE // 2
    assert allocated(log_of(database)) >= SIZE // 2
    batch = Batch()
    batch.append(stored(2))
    await store.commit(batch)
    with closing(sqlite3.connect(database)) as reader:
        assert reader.execute("SELECT number FROM segment").fetchall() == [(1,), (2,)]
    await store.close()
    again = SqliteStore(database, ballast_bytes=SIZE)
    await again.open()
    assert [int(message.number) for message in await stored_messages(again, "q")] == [1, 2]
    await again.close()


# ---- a database with a limit on its pages stands for a full disk


class Limited:
    """A database that can use no further page until `make_room` is called."""

    def __init__(self, database: Path) -> None:
        self.connection = engine_of(database).connect()
        prepare(self.connection)
        driver = self.connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        self.driver = driver
        driver.execute("CREATE TABLE row (number INTEGER PRIMARY KEY, name TEXT UNIQUE, body BLOB)")
        self.asked = 0
        self.gives = 1000
        self.limit(0)

    def limit(self, pages: int) -> None:
        (count,) = self.driver.execute("PRAGMA page_count").fetchone()
        self.driver.execute(f"PRAGMA max_page_count={count + pages}")

    def make_room(self) -> bool:
        self.asked += 1
        self.limit(self.gives * self.asked)
        return self.gives > 0

    def names(self) -> list[str]:
        return [name for (name,) in self.driver.execute("SELECT name FROM row ORDER BY number")]


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Limited]:
    made = Limited(tmp_path / "store.db")
    yield made
    made.connection.engine.dispose()


def insert(limited: Limited) -> None:
    """Insert rows that do not fit in a transaction like those of `write`."""
    rows = [(f"row {number}", bytes(3000)) for number in range(20)]
    limited.driver.execute("BEGIN IMMEDIATE")
    try:
        limited.driver.executemany("INSERT INTO row (name, body) VALUES (?, ?)", rows)
    except sqlite3.Error:
        if limited.driver.in_transaction:
            limited.driver.execute("ROLLBACK")
        raise
    limited.driver.execute("COMMIT")


@pytest.mark.requirement("PRD-03")
def test_what_found_no_room_is_done_once_more(limited: Limited) -> None:
    with_room(limited.driver, lambda: insert(limited), limited.make_room)
    assert limited.names() == [f"row {number}" for number in range(20)]
    assert limited.asked == 1


def test_where_there_is_room_nobody_is_asked(limited: Limited) -> None:
    limited.limit(1000)
    with_room(limited.driver, lambda: insert(limited), limited.make_room)
    assert limited.asked == 0


def test_it_is_done_as_often_as_somebody_makes_room(limited: Limited) -> None:
    limited.gives = 10
    with_room(limited.driver, lambda: insert(limited), limited.make_room)
    assert (limited.asked, len(limited.names())) == (2, 20)


def test_it_is_not_done_again_without_room(limited: Limited) -> None:
    limited.gives = 0
    with pytest.raises(sqlite3.OperationalError, match="full"):
        with_room(limited.driver, lambda: insert(limited), limited.make_room)
    assert (limited.asked, limited.names()) == (1, [])


def test_another_error_ends_it(limited: Limited) -> None:
    """After any other error of the disk it is unknown what was written."""

    def fail() -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
        raise error

    with pytest.raises(sqlite3.OperationalError, match="I/O"):
        with_room(limited.driver, fail, limited.make_room)
    assert limited.asked == 0


def test_a_transaction_that_was_not_rolled_back_ends_it(limited: Limited) -> None:
    def insert_and_leave() -> None:
        limited.driver.execute("BEGIN IMMEDIATE")
        limited.driver.execute(
            "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted LIMIT 20)"
            " INSERT INTO row (name, body) SELECT 'row ' || n, zeroblob(3000) FROM counted"
        )

    with pytest.raises(sqlite3.OperationalError, match="full"):
        with_room(limited.driver, insert_and_leave, limited.make_room)
    assert limited.driver.in_transaction, "SQLite has undone the statement, and no more"
    assert limited.asked == 0
    limited.driver.execute("ROLLBACK")


async def test_a_batch_is_written_again_with_the_same_rows(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    for number in range(1, 200):
        batch.append(stored(number))
    await store.close()
    with connected(database) as connection:
        prepare(connection)
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        (pages,) = driver.execute("PRAGMA page_count").fetchone()
        driver.execute(f"PRAGMA max_page_count={pages}")
        changes = store._index.apply(batch)

        def more_pages() -> bool:
            driver.execute("PRAGMA max_page_count=10000")
            return True

        texts = Texts(connection.dialect)
        with_room(driver, lambda: write(driver, texts, changes), more_pages)
    again = SqliteStore(database)
    await again.open()
    held = [int(message.number) for message in await stored_messages(again, "q")]
    assert held == list(range(1, 200))
    await again.close()
