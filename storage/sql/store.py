"""A store in SQLite: everything in one file, written by one thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, TypeVar, final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from storage.api import StoreError
from storage.batch import Batch
from storage.events import EventColumns, EventPage, EventQuery
from storage.facts import SetAside, StoreFacts
from storage.sql import contents, events, sqlite
from storage.sql.backup import back_up
from storage.sql.checkpoints import Checkpoints
from storage.sql.contents import IN_USE
from storage.sql.files import prepare_folder, resolved, tighten
from storage.sql.lock import StoreLock
from storage.sql.reader import Reader
from storage.sql.reading import learn
from storage.sql.rows import UnreadableError
from storage.sql.schema import bring_up_to_date
from storage.sql.sql_store import SqlStore
from storage.sql.statements import Texts
from storage.sql.writer import Writer

T = TypeVar("T")


@final
class SqliteStore(SqlStore):
    """One file. After an error nothing more is committed: what the disk holds is in doubt (P8)."""

    def __init__(self, database: Path) -> None:
        super().__init__()
        self._name: Final = f"sqlite:{database}"
        self._notices: list[str] = []
        self._database: Final = resolved(database)
        self._writer: Final = Writer("store")
        self._reader: Final = Reader(self._database)
        self._copying: Final = asyncio.Lock()
        self._ending: Final = Event()
        self._lock: StoreLock | None = None
        self._connection: Connection | None = None
        self._statements: Texts | None = None
        self._checkpoints: Final = Checkpoints()
        self._unused = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def notices(self) -> list[str]:
        return self._notices

    def free_bytes(self) -> int:
        """What file and log have unused counts, too: as it was when this was asked the last time.

        The log is looked at only where it takes more room than is left.
        """
        self._writer.post(self._measure)  # nobody does it any more once this is closed
        try:
            return sqlite.free_on_disk(self._database) + self._unused
        except OSError:
            return -1

    def _measure(self) -> None:
        if self._connection is None or self._failure is not None:
            return
        try:
            unused = sqlite.unused_in_file(self._connection)
            if sqlite.free_on_disk(self._database) < sqlite.log_size(self._database):
                unused += sqlite.reusable_log(self._connection, self._database)
            self._unused = unused
        except OSError:
            return  # `free_bytes` finds the same
        except SQLAlchemyError as error:
            if sqlite.code_of(error) != sqlite3.SQLITE_FULL:
                self._failure = sqlite.explained(error, self._database)

    # -- open and close

    async def open(self) -> None:
        await self._do(self._open)

    def _open(self) -> None:
        prepare_folder(self._database)
        self._lock = StoreLock(self._database)
        self._notices = [*self._lock.notices, *tighten(self._database)]
        connection = sqlite.engine_of(self._database).connect()
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        self._connection = connection
        self._statements = Texts(connection.dialect)
        sqlite.prepare(connection)
        bring_up_to_date(connection)
        self._take_up(connection)
        connection.exec_driver_sql("PRAGMA wal_autocheckpoint=0")

    async def close(self) -> None:
        self._ending.set()
        async with self._copying:
            if not self._writer.is_closed:
                await self._reader.close()
                await self._writer.do(self._close)
                await self._writer.close()

    def _close(self) -> None:
        if self._connection is not None:
            if self._failure is None and self._statements is not None:
                contents.set_mark(self._connection, IN_USE, 0)
            self._connection.engine.dispose()
            self._connection = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def _do(self, work: Callable[[], T]) -> T:
        """What `work` returned in the thread; StoreError for whatever the driver raises."""
        if self._failure is not None:
            raise self._failure
        if self._writer.is_closed:
            raise self._not_open()
        try:
            return await self._writer.do(work)
        except (*sqlite.DRIVER_ERRORS, OSError, UnreadableError) as error:
            self._failure = sqlite.explained(error, self._database)
            raise self._failure from error

    async def _run(self, work: Callable[[Connection], T]) -> T:
        return await self._do(partial(self._with, work))

    def _with(self, work: Callable[[Connection], T]) -> T:
        return work(self._opened())

    def _at_once(self, connection: Connection, work: Callable[[Connection], None]) -> None:
        """One sync for all rows."""
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            work(connection)
        except BaseException:
            with suppress(SQLAlchemyError):  # a full disk has rolled back already
                connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")

    def _opened(self) -> Connection:
        if self._connection is None:
            raise self._not_open()
        return self._connection

    def _texts(self) -> Texts:
        if self._statements is None:
            raise self._not_open()
        return self._statements

    def _not_open(self) -> StoreError:
        return StoreError(f"the store {self._database} is not open")

    # -- commits

    async def commit(self, batch: Batch) -> None:
        await self._do(partial(self._commit, batch))

    def _commit(self, batch: Batch) -> None:
        connection, texts = self._opened(), self._texts()
        wanted = self._index.segments.wanted(batch)
        if wanted.any():
            learn(connection, texts, segments=self._index.segments, wanted=wanted)
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        sqlite.write(driver, texts, self._index.changes(batch))
        self._checkpoints.written(batch)
        self._committed(batch)
        if self._checkpoints.is_due():
            self._checkpoint()

    def _checkpoint(self) -> None:
        """Move the log into the file. Where that finds no room, the next commit tries again."""
        try:
            logged, _ = sqlite.checkpoint(self._opened())
        except SQLAlchemyError as error:
            if sqlite.code_of(error) != sqlite3.SQLITE_FULL:
                raise
        else:
            self._checkpoints.moved(logged)

    # -- for those who manage the broker

    async def facts(self) -> StoreFacts:
        return await self._reader.facts()

    async def events(self, query: EventQuery) -> EventPage:
        return await self._reader.do(partial(events.load, query=query))

    async def event_columns(self, query: EventQuery) -> EventColumns:
        return await self._reader.do(partial(events.load_columns, query=query))

    async def event_bounds(self) -> tuple[int, int]:
        return await self._reader.do(events.bounds)

    async def set_aside(self, behind: int, at_most: int) -> list[SetAside]:
        return await self._reader.set_aside(behind, at_most)

    async def back_up(self, target: str, told: Callable[[int, int], None]) -> None:
        if self._copying.locked() or self._ending.is_set():
            raise StoreError("one backup at a time")
        async with self._copying:
            await asyncio.to_thread(
                partial(back_up, self._database, Path(target), told=told, ending=self._ending)
            )
