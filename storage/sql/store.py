"""A store in SQLite: everything in one file, written by one thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final, TypeVar, final

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from storage.api import Store, StoreError
from storage.batch import Batch
from storage.events import EventPage, EventQuery
from storage.facts import SetAside, StoreFacts
from storage.records import StoredId, StoredMessage, StoredNode, StoredPlaces, StoredSubscription
from storage.sql import chunks, contents, delivered, events, ids, sqlite
from storage.sql.backup import back_up
from storage.sql.contents import IN_USE
from storage.sql.index import Index
from storage.sql.lock import StoreLock
from storage.sql.quarantine import Damage, count, set_aside
from storage.sql.reader import Reader
from storage.sql.rows import UnreadableError
from storage.sql.schema import bring_up_to_date
from storage.sql.statements import Texts
from storage.sql.writer import Writer

T = TypeVar("T")


@final
class SqliteStore(Store):
    """One file. After an error nothing more is committed: what the disk holds is in doubt (P8)."""

    def __init__(self, database: Path) -> None:
        self._database: Final = database
        self._writer: Final = Writer("store")
        self._reader: Final = Reader(database)
        self._copying: Final = asyncio.Lock()
        self._ending: Final = Event()
        self._lock: StoreLock | None = None
        self._connection: Connection | None = None
        self._texts: Texts | None = None
        self._failure: StoreError | None = None
        self._index = Index()
        self._first_number = 1
        self._first_event = 1
        self._was_cut_off = False
        self._quarantined = 0
        self._unused = 0

    @property
    def name(self) -> str:
        return f"sqlite:{self._database}"

    @property
    def commits_at_once(self) -> bool:
        return False

    @property
    def first_number(self) -> int:
        return self._first_number

    @property
    def keeps_contents(self) -> bool:
        return True

    @property
    def first_content(self) -> int:
        return self._index.chunks.first

    @property
    def was_cut_off(self) -> bool:
        return self._was_cut_off

    @property
    def quarantined(self) -> int:
        return self._quarantined

    def free_bytes(self) -> int:
        """What file and log have unused counts, too: as it was when this was asked the last time.

        The log is looked at only where it takes more room than is left.
        """
        self._writer.post(self._measure)
        try:
            return sqlite.free_on_disk(self._database) + self._unused
        except OSError:
            return -1

    def _measure(self) -> None:
        if self._connection is not None and self._failure is None:
            with suppress(SQLAlchemyError, OSError):
                unused = sqlite.unused_in_file(self._connection)
                if sqlite.free_on_disk(self._database) < sqlite.log_size(self._database):
                    unused += sqlite.reusable_log(self._connection, self._database)
                self._unused = unused

    # -- for those who manage the broker

    async def facts(self) -> StoreFacts:
        return await self._reader.facts()

    async def set_aside(self, behind: int, at_most: int) -> list[SetAside]:
        return await self._reader.set_aside(behind, at_most)

    async def back_up(self, target: str, told: Callable[[int, int], None]) -> None:
        if self._copying.locked() or self._ending.is_set():
            raise StoreError("one backup at a time")
        async with self._copying:
            await asyncio.to_thread(
                partial(back_up, self._database, Path(target), told=told, ending=self._ending)
            )

    # -- open and close

    async def open(self) -> None:
        await self._do(self._open)

    def _open(self) -> None:
        sqlite.prepare_folder(self._database)
        self._lock = StoreLock(self._database)
        connection = sqlite.engine_of(self._database).connect()
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        self._connection = connection
        self._texts = Texts(connection.dialect)
        sqlite.prepare(connection)
        bring_up_to_date(connection)
        self._index = contents.load(connection)
        self._quarantined = count(connection)
        self._first_number = self._index.numbers_up_to + 1
        self._first_event = events.first_free(connection)
        self._was_cut_off = contents.mark(connection, IN_USE) != 0
        contents.set_mark(connection, IN_USE, 1)

    async def close(self) -> None:
        self._ending.set()
        async with self._copying:
            await self._reader.close()
        await self._writer.do(self._close)
        await self._writer.close()

    def _close(self) -> None:
        if self._connection is not None:
            if self._failure is None and self._texts is not None:
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
        try:
            return await self._writer.do(work)
        except (SQLAlchemyError, OSError, UnreadableError) as error:
            self._failure = sqlite.explained(error, self._database)
            raise self._failure from error

    def _opened(self) -> tuple[Connection, Texts]:
        if self._connection is None or self._texts is None:
            raise StoreError(f"the store {self._database} is not open")
        return self._connection, self._texts

    def _in_transaction(self, work: Callable[[], None]) -> None:
        connection, _ = self._opened()
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            work()
        except BaseException:
            with suppress(SQLAlchemyError):  # a full disk has rolled back already
                connection.exec_driver_sql("ROLLBACK")
            raise
        connection.exec_driver_sql("COMMIT")

    # -- commits

    def commit_now(self, batch: Batch) -> None:  # noqa: ARG002 - as the contract has it
        raise StoreError("SQLite has to be waited for")

    async def commit(self, batch: Batch) -> None:
        await self._do(partial(self._commit, batch))

    def _commit(self, batch: Batch) -> None:
        connection, texts = self._opened()
        changes = self._index.changes(batch)
        self._in_transaction(partial(sqlite.write, connection, texts, changes))
        if batch.contents is not None:
            self._quarantined += len(batch.contents.set_aside)
            batch.contents.chunks.clear()  # a batch is remembered for longer than they need be

    # -- what is there

    async def nodes(self) -> list[StoredNode]:
        return await self._do(lambda: contents.nodes(self._opened()[0]))

    async def delivered(self) -> dict[str, int]:
        return await self._do(lambda: delivered.positions(self._opened()[0]))

    async def subscriptions(self) -> list[StoredSubscription]:
        return await self._do(lambda: contents.subscriptions(self._opened()[0]))

    async def messages(self, behind: int) -> list[StoredMessage]:
        return await self._do(partial(self._load, behind))

    def _load(self, behind: int) -> list[StoredMessage]:
        connection, texts = self._opened()
        return self._sound(*contents.messages(connection, texts, self._index, behind=behind))

    def _sound(self, sound: list[StoredMessage], damaged: list[Damage]) -> list[StoredMessage]:
        if damaged:
            self._in_transaction(partial(set_aside, self._opened()[0], damaged))
            self._quarantined += len(damaged)
        return sound

    async def places(self, behind: int) -> StoredPlaces:
        return await self._do(lambda: contents.places(self._opened()[0], self._index, behind))

    async def load(self, numbers: list[int]) -> list[StoredMessage]:
        return await self._do(partial(self._window, numbers))

    def _window(self, numbers: list[int]) -> list[StoredMessage]:
        connection, texts = self._opened()
        return self._sound(*contents.window(connection, texts, self._index, numbers=numbers))

    def load_now(self, numbers: list[int]) -> list[StoredMessage]:  # noqa: ARG002 - as the contract
        raise StoreError("SQLite has to be waited for")

    @property
    def first_event(self) -> int:
        return self._first_event

    async def events(self, query: EventQuery) -> EventPage:
        return await self._reader.do(partial(events.load, query=query))

    async def ids(self, behind: int) -> list[StoredId]:
        return await self._do(lambda: ids.load(self._opened()[0], behind))

    # -- contents

    async def read_chunk(self, content: int, index: int) -> bytes:
        return await self._do(lambda: chunks.read(self._opened()[0], content, index))

    async def sweep(self) -> bool:
        return await self._do(lambda: chunks.sweep(self._opened()[0], self._index.chunks))
