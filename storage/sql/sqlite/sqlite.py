"""SQLite specifics: opening, writing and measuring its file, and explaining its errors.

One connection writes and checkpoints, in one thread: the versions of SQLite that are shipped with
Python have a bug that occurs with two (3.7.0 to 3.51.2, `docs/design/storage.md`).
"""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from storage.api import StoreError
from storage.sql.index import Changes
from storage.sql.rows import UnreadableError
from storage.sql.segments.ranges import joined
from storage.sql.segments.segments import SegmentChanges
from storage.sql.statements import (
    CHANGE_BODY,
    CHANGE_SEGMENT,
    DELETE_BODIES,
    DELETE_SEGMENTS,
    INSERT_BODY,
    INSERT_SEGMENT,
    Texts,
)
from storage.sql.tables import QUEUE

FULL: Final = 2
"""Value of `synchronous` with which a commit is synced before it returns."""

WAL_SIZE_LIMIT: Final = 64 * 1024 * 1024
"""Maximum bytes of the log that are kept: overwriting the log syncs faster than growing it."""

PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA secure_delete=OFF",
    "PRAGMA mmap_size=0",
    f"PRAGMA journal_size_limit={WAL_SIZE_LIMIT}",
)

OWN: Final = frozenset({"alembic_version", QUEUE.name})
"""Tables that stores of all schemas have."""

UNREADABLE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

UNWRITABLE: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)

DRIVER_ERRORS: Final = (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError)
"""Errors that a statement can raise; the last if SQLite's own message quotes a damaged schema."""


def connect(database: str) -> sqlite3.Connection:
    """Return a connection of the driver, for one thread at a time.

    Text that is not UTF-8 raises no error but is decoded with replacements: a flipped bit may
    cause it, and then only that row is damaged.
    """
    connection = sqlite3.connect(
        database,
        uri=database.startswith("file:"),
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.text_factory = _text
    return connection


def _text(stored: bytes) -> str:
    return stored.decode(errors="replace")


def engine_of(database: Path) -> Engine:
    """Return an engine with one connection, for use in one thread at a time."""
    return create_engine(
        "sqlite://",
        creator=lambda: connect(str(database)),
        poolclass=StaticPool,
    )


def prepare(connection: Connection) -> None:
    """Set the pragmas that durability needs. Raise StoreError if the file does not allow them.

    Nothing is changed in a database of another program, which raises StoreError, too.
    """
    _refuse_foreign(connection)
    for pragma in PRAGMAS:
        connection.exec_driver_sql(pragma)
    mode = connection.execute(text("PRAGMA journal_mode")).scalar()
    level = connection.execute(text("PRAGMA synchronous")).scalar()
    if mode != "wal" or level != FULL:
        raise StoreError(
            f"SQLite would not be durable here: journal_mode={mode}, synchronous={level};"
            " is the store on a network file system?"
        )


def _refuse_foreign(connection: Connection) -> None:
    asked = "SELECT name FROM sqlite_master WHERE type = 'table'"
    tables = set(connection.exec_driver_sql(asked).scalars())
    if tables and not tables >= OWN:
        file = connection.exec_driver_sql("PRAGMA database_list").one()[2]
        raise StoreError(
            f"{file} is no store, but a database of another program, with other tables; nothing has"
            " been changed: name another file"
        )


def unreadable(database: Path, why: str) -> StoreError:
    """Return an error with advice for a database that is damaged beyond single messages."""
    return StoreError(
        f"the store {database} cannot be read ({why}); nothing has been changed:"
        " `jms-broker store check` shows the damage, `jms-broker store salvage` copies what can"
        " be read into a new store"
    )


def code_of(error: Exception) -> int:
    """Return SQLite's primary code of a driver's error, 0 if the error is not SQLite's."""
    return _extended(error) & 0xFF


def _extended(error: Exception) -> int:
    return int(getattr(getattr(error, "orig", error), "sqlite_errorcode", 0))


def reason_of(error: Exception) -> str:
    """Return what is wrong, if possible in SQLite's words, as one line: it may quote a schema."""
    if isinstance(error, UnicodeDecodeError):
        return "its schema is damaged"
    return " ".join(str(getattr(error, "orig", error)).split())


def explained(error: Exception, database: Path) -> StoreError:
    """Return the driver's `error` as a StoreError that says what an operator can do about it."""
    code, reason = code_of(error), reason_of(error)
    if code in UNREADABLE or isinstance(error, (UnreadableError, UnicodeDecodeError)):
        return unreadable(database, reason)
    if code == sqlite3.SQLITE_FULL or _extended(error) == sqlite3.SQLITE_IOERR_SHMSIZE:
        return StoreError(
            f"no room is left for the store {database}: make room on its disk, then start again"
        )
    if code in UNWRITABLE:
        return StoreError(
            f"the store {database} cannot be opened: {reason}; this file and those of its name"
            f" with -wal and -shm must be readable and writable for user {os.geteuid()}"
        )
    if code == sqlite3.SQLITE_BUSY:
        return StoreError(
            f"the store {database} is locked by another program ({reason}), such as an SQLite"
            " shell: end that program first"
        )
    return StoreError(f"the store {database} failed: {reason}")


def write(driver: sqlite3.Connection, texts: Texts, changes: Changes) -> None:
    """Write and commit a batch without SQLAlchemy, which would double the cost of a small one."""
    driver.execute("BEGIN IMMEDIATE")
    try:
        for statement, rows in changes.statements:
            driver.executemany(texts.of(statement), rows)
        _write_segments(driver, texts, changes.segments)
        driver.execute("COMMIT")
    except BaseException:
        if driver.in_transaction:  # after most errors for a full disk SQLite has rolled back
            with suppress(sqlite3.Error):
                driver.execute("ROLLBACK")
        raise


def _write_segments(driver: sqlite3.Connection, texts: Texts, changes: SegmentChanges) -> None:
    if changes.segments:
        driver.executemany(texts.of(INSERT_SEGMENT), changes.segments)
        driver.executemany(texts.of(INSERT_BODY), changes.bodies)
    if changes.changed:
        driver.executemany(texts.of(CHANGE_SEGMENT), changes.changed)
    if changes.rebuilt:
        driver.executemany(texts.of(CHANGE_BODY), changes.rebuilt)
    if changes.removed:
        removed = joined(sorted(changes.removed))
        driver.executemany(texts.of(DELETE_SEGMENTS), removed)
        driver.executemany(texts.of(DELETE_BODIES), removed)


def free_bytes(database: Path) -> int:
    """Return the free bytes of the file system."""
    found = os.statvfs(database.parent)
    return found.f_bavail * found.f_frsize


def free_on_disk(database: Path) -> int:
    """Return the free bytes of the file system, less those that moving the log may take."""
    return max(0, free_bytes(database) - log_size(database))


def log_of(database: Path) -> Path:
    """Return the path of the log."""
    return database.with_name(database.name + "-wal")


def log_size(database: Path) -> int:
    """Return the size of the log in bytes, 0 if there is none."""
    log = log_of(database)
    return log.stat().st_size if log.exists() else 0


def reusable_log(connection: Connection, database: Path, *, unmoved: int) -> int:
    """Return the bytes of the log that can be overwritten, if `unmoved` of its pages cannot."""
    size = connection.exec_driver_sql("PRAGMA page_size").scalar() or 0
    return max(0, log_size(database) - unmoved * int(size))


def checkpoint(connection: Connection) -> tuple[int, int]:
    """Move as many pages as possible from the log to the file.

    Return the number of pages in the log, and of those moved. The next write begins the log anew
    once all of them are synced in the file.
    """
    _, logged, moved = connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)").one()
    return int(logged), int(moved)


def unused_in_file(connection: Connection) -> int:
    """Return the bytes of the file that deleted rows have left: SQLite fills them first."""
    pages = connection.exec_driver_sql("PRAGMA freelist_count").scalar() or 0
    size = connection.exec_driver_sql("PRAGMA page_size").scalar() or 0
    return int(pages) * int(size)
