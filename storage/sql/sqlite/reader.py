"""The connection that only reads: for management, so that no commit waits for its queries.

It never checkpoints (`docs/design/storage.md`: only one connection may), holds no transaction
for longer than a piece of work takes, and is opened at the first query.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from sqlalchemy import Connection, event, func, select
from sqlalchemy.engine import URL

from storage.api import StoreError
from storage.facts import QuarantinedMessage, StoreFacts
from storage.sql.quarantine import count as count_quarantined
from storage.sql.quarantine import listed
from storage.sql.schema import version_of
from storage.sql.segments.segment import RECORD
from storage.sql.sqlite import sqlite
from storage.sql.tables import SEGMENT

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")

COUNTED_TOGETHER: Final = 1000
"""Segments whose messages are counted with one query."""

COUNTING_MAX_S: Final = 1.0
"""Seconds after which the counting of messages is given up."""

PRAGMAS: Final = ("PRAGMA query_only=ON", "PRAGMA wal_autocheckpoint=0")


@final
class Reader:
    """One read-only connection, used by one task at a time."""

    def __init__(self, database: Path) -> None:
        self._database: Final = database
        self._turn: Final = asyncio.Lock()
        self._engine: AsyncEngine | None = None
        self._closed = False

    async def facts(self) -> StoreFacts:
        """Return sizes, the schema, and the number of messages: None if counting takes too long."""
        unused = await self.do(sqlite.unused_in_file)
        log = self._database.with_name(self._database.name + "-wal")
        return StoreFacts(
            schema=await self.do(version_of),
            file_bytes=self._database.stat().st_size,
            log_bytes=log.stat().st_size if log.exists() else 0,
            unused_bytes=unused,
            free_bytes=sqlite.free_on_disk(self._database) + unused,
            messages=await self._messages(),
            quarantined=await self.do(count_quarantined),
        )

    async def quarantined_messages(self, behind: int, at_most: int) -> list[QuarantinedMessage]:
        """Return the first `at_most` damaged messages with numbers above `behind`, ascending."""
        return await self.do(lambda connection: listed(connection, behind, at_most))

    async def _messages(self) -> int | None:
        ends_at = time.monotonic() + COUNTING_MAX_S
        found, behind = 0, -1
        while time.monotonic() < ends_at:
            rows = await self.do(partial(_lengths, behind=behind))
            found += sum(length for _, length in rows) // int(RECORD)
            if len(rows) < COUNTED_TOGETHER:
                return found
            behind = rows[-1][0]
        return None

    async def do(self, work: Callable[[Connection], T]) -> T:
        """Call `work` with the connection and return its result. Raise StoreError if it fails.

        Each statement of `work` sees one state of the store; a commit may be between two of them.
        """
        async with self._turn:
            if self._closed:
                raise StoreError(f"the store {self._database} is closed")
            if self._engine is None:
                self._engine = _engine(self._database)
            try:
                async with self._engine.connect() as connection:
                    return await connection.run_sync(work)
            except (*sqlite.DRIVER_ERRORS, OSError) as error:
                raise sqlite.explained(error, self._database) from error

    async def close(self) -> None:
        """Wait for the current query, and close the connection: later queries raise StoreError."""
        async with self._turn:
            self._closed = True
            if self._engine is not None:
                await self._engine.dispose()


def _lengths(connection: Connection, *, behind: int) -> list[tuple[int, int]]:
    some = select(SEGMENT.c.number, func.length(SEGMENT.c.facts))
    ordered = some.where(SEGMENT.c.number > behind).order_by(SEGMENT.c.number)
    return [(row[0], row[1]) for row in connection.execute(ordered.limit(COUNTED_TOGETHER))]


def _engine(database: Path) -> AsyncEngine:
    from sqlalchemy.ext.asyncio import create_async_engine

    url = URL.create("sqlite+aiosqlite", database=str(database))
    engine = create_async_engine(url, pool_size=1, max_overflow=0)
    event.listen(engine.sync_engine, "connect", _prepare)
    return engine


def _prepare(connection: Any, record: object) -> None:  # noqa: ARG001 - as SQLAlchemy calls it
    cursor = connection.cursor()
    for pragma in PRAGMAS:
        cursor.execute(pragma)
    cursor.close()
