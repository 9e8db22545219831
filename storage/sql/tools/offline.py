"""Opening of a store by a command while no broker uses it: find it by its name, and lock it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from storage.api import StoreError
from storage.sql.sqlite import sqlite
from storage.sql.sqlite.files import prepare_folder, resolved, unusable
from storage.sql.sqlite.lock import StoreLock

SQLITE: Final = "sqlite:///"


class MissingStoreError(StoreError):
    """Raised for a store that does not exist. The text names its file."""


def database_of(place: str) -> Path:
    """Return the file that a path or an SQLite URL names.

    Raise StoreError, without the URL's password, for other URLs.
    """
    if "://" in place and not place.startswith(SQLITE):
        scheme = place.partition("://")[0]
        raise StoreError(f"{scheme}://… is no SQLite store: {SQLITE}PATH or the path of a file is")
    return resolved(Path(place.removeprefix(SQLITE)))


def present(database: Path) -> Path:
    """Return `database`. Raise MissingStoreError if there is no such file; it names the folder if
    that is missing.
    """
    try:
        database.stat()
    except FileNotFoundError:
        folder = database.parent
        why = "" if folder.exists() else f": its folder {folder} is not there"
        raise MissingStoreError(f"there is no store {database}{why}") from None
    except OSError as error:
        raise unusable(database, error) from None
    return database


@contextmanager
def reading(database: Path) -> Iterator[Connection]:
    """Open a connection that changes nothing in the file; the lock keeps other processes out."""
    address = f"file:{quote(str(present(database)))}?mode=ro"
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite.connect(address),
        poolclass=StaticPool,
    )
    with _locked(database, only_reads=True), _connected(engine, database) as connection:
        yield connection


@contextmanager
def writing(database: Path) -> Iterator[Connection]:
    """Open a connection with the broker's settings; the lock keeps other processes out."""
    prepare_folder(database)
    engine = sqlite.engine_of(database)
    with _locked(database), _connected(engine, database) as connection:
        sqlite.prepare(connection)
        yield connection


@contextmanager
def _locked(database: Path, *, only_reads: bool = False) -> Iterator[None]:
    lock = StoreLock(database, only_reads=only_reads)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _connected(engine: Engine, database: Path) -> Iterator[Connection]:
    try:
        with engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")
    except sqlite.DRIVER_ERRORS as error:
        raise sqlite.explained(error, database) from None
    finally:
        with suppress(SQLAlchemyError):
            engine.dispose()
