"""A store that no broker uses, opened by a command: found by its name, locked, told in one line."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from storage.api import StoreError
from storage.sql import sqlite
from storage.sql.lock import StoreLock

SQLITE: Final = "sqlite:///"


def database_of(place: str) -> Path:
    """The file that a path or a URL names; StoreError, without its password, for other URLs."""
    if "://" in place and not place.startswith(SQLITE):
        scheme = place.partition("://")[0]
        raise StoreError(f"{scheme}://… is no SQLite store: {SQLITE}PATH or the path of a file is")
    return Path(place.removeprefix(SQLITE))


def present(database: Path) -> Path:
    """`database`, where it is a file."""
    if not database.is_file():
        raise StoreError(f"there is no store {database}")
    return database


@contextmanager
def reading(database: Path) -> Iterator[Connection]:
    """A connection that changes nothing in the file, while no broker has it."""
    address = f"file:{quote(str(present(database)))}?mode=ro"
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite.connect(address),
        poolclass=StaticPool,
    )
    with _locked(database), _connected(engine, database) as connection:
        yield connection


@contextmanager
def writing(database: Path) -> Iterator[Connection]:
    """A connection as the broker's own, while no broker has the file."""
    sqlite.prepare_folder(database)
    engine = sqlite.engine_of(database)
    with _locked(database), _connected(engine, database) as connection:
        sqlite.prepare(connection)
        yield connection


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    try:
        lock = StoreLock(database)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise StoreError(f"the store {database} cannot be locked: {error.strerror}") from None
        yield  # who could write where nobody can?
        return
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
