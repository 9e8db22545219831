"""A store in SQLite: everything in one file, written by one thread."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, TypeVar, final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from storage.api import StoreError
from storage.batch import Batch
from storage.events import EventColumns, EventPage, EventQuery
from storage.facts import DiskSpace, QuarantinedMessage, StoreFacts
from storage.sql import contents, events
from storage.sql.reading import learn
from storage.sql.rows import UnreadableError
from storage.sql.schema import bring_up_to_date
from storage.sql.sql_store import SqlStore
from storage.sql.sqlite import sqlite
from storage.sql.sqlite.backup import back_up
from storage.sql.sqlite.ballast import Ballast, with_room
from storage.sql.sqlite.checkpoints import Checkpoints, bytes_of
from storage.sql.sqlite.files import prepare_folder, resolved, tighten
from storage.sql.sqlite.lock import StoreLock
from storage.sql.sqlite.reader import Reader
from storage.sql.sqlite.writer import Writer
from storage.sql.statements import Texts
from storage.sql.transaction import transaction

T = TypeVar("T")


@final
class SqliteStore(SqlStore):
    """A store in one file. After an error nothing more is committed: its content is in doubt (P8).

    A full disk is an exception: work that was rolled back is repeated with room of the ballast,
    a file of `ballast_bytes`.
    """

    def __init__(self, database: Path, *, ballast_bytes: int = 0) -> None:
        super().__init__()
        self._name: Final = f"sqlite:{database}"
        self._notices: list[str] = []
        self._tell: Callable[[str], None] = lambda _: None
        self._database: Final = resolved(database)
        self._writer: Final = Writer("store")
        self._reader: Final = Reader(self._database)
        self._copying: Final = asyncio.Lock()
        self._ending: Final = Event()
        self._lock: StoreLock | None = None
        self._connection: Connection | None = None
        self._statements: Texts | None = None
        self._checkpoints: Final = Checkpoints()
        self._ballast: Final = Ballast(self._database, ballast_bytes)
        self._is_full = False
        self._is_loaded = False
        self._unused = 0

    @property
    def name(self) -> str:
        return self._name

    def when_noticed(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def is_full(self) -> bool:
        return self._is_full

    def free_bytes(self) -> int:
        """Return the free bytes of the disk, plus the unused ones of file and log; -1 if unknown.

        The unused bytes are those found after the previous call. The log is examined only if it
        is larger than the room that is left.
        """
        self._writer.post(self._measure)  # not done any more once the writer is closed
        try:
            return sqlite.free_on_disk(self._database) + self._unused
        except OSError:
            return -1

    def disk_space(self) -> DiskSpace | None:
        try:
            used = self._database.stat().st_size + sqlite.log_size(self._database)
            disk = shutil.disk_usage(self._database.parent)
        except OSError:
            return None
        return DiskSpace(used=used, free=disk.free, total=disk.total)

    def _measure(self) -> None:
        if self._connection is None or self._failure is not None:
            return
        try:
            self._look_for_room(self._connection)
        except OSError:
            return  # `free_bytes` finds the same
        except StoreError as error:
            self._failure = error
        except SQLAlchemyError as error:
            self._failure = sqlite.explained(error, self._database)

    def _look_for_room(self, connection: Connection) -> None:
        """Measure the unused bytes, and take back the missing part of the ballast.

        The disk is no longer full once the ballast and the reusable log have half the ballast's
        size, so that commits find room, and as many bytes as that size can be written.
        """
        reusable, size = 0, self._ballast.size
        if self._is_full or sqlite.free_on_disk(self._database) < sqlite.log_size(self._database):
            reusable = self._checkpoint()
        while self._checkpoints.is_postponed and self._ballast.release(0):
            reusable = self._checkpoint()  # a log that can be overwritten is as good as ballast
        if not self._checkpoints.is_postponed:
            self._ballast.take_back()
        self._unused = sqlite.unused_in_file(connection) + reusable
        if self._is_full and not self._checkpoints.is_postponed:
            room = sqlite.free_on_disk(self._database) + self._unused
            self._is_full = self._ballast.held + reusable < size // 2 or room < size

    # -- open and close

    async def open(self) -> None:
        await self._do(self._open)
        for notice in self._notices:
            self._tell(notice)

    def _open(self) -> None:
        prepare_folder(self._database)
        self._lock = StoreLock(self._database)
        self._notices = [*self._lock.notices, *tighten(self._database)]
        self._ballast.prepare()
        connection = sqlite.engine_of(self._database).connect()
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        self._connection = connection
        self._statements = Texts(connection.dialect)
        sqlite.prepare(connection)
        bring_up_to_date(connection)
        self._take_up(connection)
        self._is_loaded = True  # else nothing is changed at the close: the store was refused
        connection.exec_driver_sql("PRAGMA wal_autocheckpoint=0")
        self._is_full = self._ballast.size > 0  # until `_measure` finds room
        self._measure()
        if self._failure is not None:
            raise self._failure

    async def close(self) -> None:
        self._ending.set()
        async with self._copying:
            if not self._writer.is_closed:
                await self._reader.close()
                await self._writer.do(self._close)
                await self._writer.close()

    def _close(self) -> None:
        try:
            if self._connection is not None:
                self._close_connection(self._connection)
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _close_connection(self, connection: Connection) -> None:
        if self._failure is None and self._is_loaded:
            self._with(self._leave)
        connection.engine.dispose()
        self._connection = None
        self._ballast.take_back()  # SQLite has deleted the log, which made room

    def _leave(self, connection: Connection) -> None:
        self._at_once(connection, partial(contents.leave, index=self._index))

    async def _do(self, work: Callable[[], T]) -> T:
        """Do `work` in the thread and return its result. Raise StoreError for a driver's error."""
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
        return self._with_room(partial(work, self._opened()))

    def _with_room(self, work: Callable[[], T], wanted: int = 0) -> T:
        """Return the result of `work`, which writes `wanted` bytes, if need be in ballast room."""
        return with_room(self._driver(), work, partial(self._make_room, wanted))

    def _make_room(self, wanted: int) -> bool:
        if not self._ballast.release(wanted):
            return False
        self._is_full = True
        self._checkpoint()  # so that the next write begins the log anew, not grows it
        return True

    def _at_once(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        """Do `work` in one transaction: one sync for all rows."""
        with transaction(connection, "BEGIN IMMEDIATE"):
            return work(connection)

    def _opened(self) -> Connection:
        if self._connection is None:
            raise self._not_open()
        return self._connection

    def _driver(self) -> sqlite3.Connection:
        driver = self._opened().connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        return driver

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
        changes = self._index.apply(batch)  # once: the index counts it as written now
        write = partial(sqlite.write, self._driver(), texts, changes)
        self._with_room(write, bytes_of(batch))
        self._checkpoints.written(batch)
        self._committed(batch)
        if self._checkpoints.is_due():
            self._checkpoint()

    def _checkpoint(self) -> int:
        """Move the log into the file. Return how many bytes of the log can then be overwritten.

        If the disk has no room for the file to grow, the log stays: the next commit tries again.
        """
        connection = self._opened()
        try:
            logged, moved = sqlite.checkpoint(connection)
        except SQLAlchemyError as error:
            if sqlite.code_of(error) != sqlite3.SQLITE_FULL:
                raise
            self._checkpoints.postpone()
            self._is_full = True
            return 0
        self._checkpoints.moved(logged)
        return sqlite.reusable_log(connection, self._database, unmoved=logged - moved)

    # -- for management

    async def facts(self) -> StoreFacts:
        return replace(
            await self._reader.facts(),
            ballast_bytes=self._ballast.held,
            ballast_missing_bytes=self._ballast.size - self._ballast.held,
            ballast_releases=self._ballast.releases,
            checkpoints_postponed=self._checkpoints.postponed,
        )

    async def events(self, query: EventQuery) -> EventPage:
        return await self._reader.do(partial(events.load, query=query))

    async def event_columns(self, query: EventQuery) -> EventColumns:
        return await self._reader.do(partial(events.load_columns, query=query))

    async def event_bounds(self) -> tuple[int, int]:
        return await self._reader.do(events.bounds)

    async def quarantined_messages(self, behind: int, at_most: int) -> list[QuarantinedMessage]:
        return await self._reader.quarantined_messages(behind, at_most)

    async def back_up(self, target: str, told: Callable[[int, int], None]) -> None:
        if self._copying.locked() or self._ending.is_set():
            raise StoreError("one backup at a time")
        async with self._copying:
            await asyncio.to_thread(
                partial(back_up, self._database, Path(target), told=told, ending=self._ending)
            )
