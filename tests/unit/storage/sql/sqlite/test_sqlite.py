"""SQLite's settings for the file, and the error messages for an operator."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from storage.sql.sqlite.sqlite import (
    checkpoint,
    explained,
    log_size,
    prepare,
    reason_of,
    reusable_log,
)
from tests.support.stored_files import connected

PRAGMAS = [
    pytest.param("journal_mode", "wal", id="a log beside the file"),
    pytest.param("synchronous", 2, id="a commit is synced"),
    pytest.param("mmap_size", 0, id="no mapped memory"),
    pytest.param("secure_delete", 0, id="what is deleted is not overwritten"),
]


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize(("pragma", "value"), PRAGMAS)
def test_the_file_is_opened_for_durability(tmp_path: Path, pragma: str, value: object) -> None:
    with connected(tmp_path / "store.db") as connection:
        prepare(connection)
        assert connection.execute(text(f"PRAGMA {pragma}")).scalar() == value


def error(code: int) -> sqlite3.Error:
    failed = sqlite3.OperationalError("said SQLite")
    failed.sqlite_errorcode = code
    return failed


ERRORS = [
    pytest.param(sqlite3.SQLITE_CORRUPT, "nothing has been changed", id="corrupt"),
    pytest.param(sqlite3.SQLITE_NOTADB, "jms-broker store salvage", id="no database"),
    pytest.param(sqlite3.SQLITE_FULL, "no room is left", id="full"),
    pytest.param(sqlite3.SQLITE_CANTOPEN, "cannot be opened", id="not to be opened"),
    pytest.param(sqlite3.SQLITE_READONLY, "with -wal and -shm", id="not to be written"),
    pytest.param(sqlite3.SQLITE_BUSY, "locked by another program", id="locked"),
    pytest.param(sqlite3.SQLITE_IOERR_FSYNC, "failed: said SQLite", id="a failed sync"),
]


@pytest.mark.parametrize(("code", "says"), ERRORS)
def test_errors_say_what_to_do(code: int, says: str) -> None:
    assert says in str(explained(error(code), Path("store.db")))


def test_errors_are_told_in_one_line() -> None:
    quoting = sqlite3.DatabaseError(
        'malformed database schema (queue) - near "(\n\tid": syntax error'
    )
    assert reason_of(quoting) == 'malformed database schema (queue) - near "( id": syntax error'


@pytest.mark.parametrize("somebody_reads", [False, True], ids=["", "while somebody reads"])
def test_the_log_that_is_in_the_file_can_be_written_again(
    tmp_path: Path, somebody_reads: bool
) -> None:
    database = tmp_path / "store.db"
    with (
        connected(database) as plain,
        closing(sqlite3.connect(database)) as reader,
    ):
        connection = plain.execution_options(isolation_level="AUTOCOMMIT")
        prepare(connection)
        connection.exec_driver_sql("CREATE TABLE row (body BLOB)")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM row")
        if not somebody_reads:
            reader.rollback()
        connection.exec_driver_sql("INSERT INTO row VALUES (zeroblob(100000))")
        logged, moved = checkpoint(connection)
        reusable = reusable_log(connection, database, unmoved=logged - moved)
        assert (reusable == log_size(database)) is not somebody_reads
        assert reusable <= log_size(database)
