"""One session with PostgreSQL: it holds the lock of the store for as long as it lives.

The session that writes is the one that holds the lock, so no broker can commit without the lock:
if a session is lost, its transaction is over before another session can get the lock. Besides,
whatever it writes is written in one epoch only (`epoch.py`).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, TypeVar, final

import asyncpg
from asyncpg.prepared_stmt import PreparedStatement
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from storage.api import StoreError
from storage.sql.index import Changes
from storage.sql.postgresql import postgres
from storage.sql.postgresql.epoch import BEGIN_EPOCH, CHECK_EPOCH, LEADS
from storage.sql.postgresql.lock import HOLDER, TRY_LOCK
from storage.sql.postgresql.postgres import AwayError, Place
from storage.sql.postgresql.servers import places_of, writable
from storage.sql.statements import Texts

T = TypeVar("T")

LOCK_ATTEMPTS: Final = 15
LOCK_PAUSE_S: Final = 0.1
"""Seconds between two attempts: the session of a killed broker ends a moment after the broker."""

REPLICATION_IN_DOUBT: Final = frozenset({"01000", "57P01"})
"""Codes of the warnings to a commit that may not have reached the standby."""


@final
class Session:
    """A session that is open after `connect`, until `close` or `drop`."""

    def __init__(
        self,
        url: str,
        application: str,
        settings: Mapping[str, str] = postgres.NO_SETTINGS,
        *,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`tell` is called with a sentence for the log if several servers take changes."""
        self._url: Final = url
        self._tell: Final = tell
        self.place: Place | None = None
        """The server, if the URL names several."""
        self.application: Final = application
        self._settings: Final = settings
        self._engine: Final = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=self._connect,
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
        )
        self._raw: asyncpg.Connection | None = None
        self._core: AsyncConnection | None = None
        self._plain: PreparedStatement | None = None
        self._texts: Texts | None = None
        self._warning = ""
        self._is_replicated = False
        self.epoch = 0
        """The epoch in which this session writes."""

    async def _connect(self) -> asyncpg.Connection:
        self.place = await writable(self._url, self._tell)
        self._raw = await postgres.connect(
            self._url, self.application, self._settings, place=self.place
        )
        return self._raw

    async def connect(self) -> None:
        """Open the session, and check that the server keeps what is committed.

        Raise StoreError if the server must not be used, AwayError if it is a standby.
        """
        self._core = await self._engine.connect()
        self._texts = Texts(self._engine.dialect)
        raw = self.raw
        raw.add_log_listener(self._noticed)
        facts = await postgres.facts_of(raw, len(places_of(self._url)))
        why = postgres.refusal(facts)
        if why:
            raise StoreError(f"the store {postgres.name_of(self._url)} is refused: {why}")
        if facts.is_standby:
            raise AwayError("it is a standby, and takes no changes")

    @property
    def raw(self) -> asyncpg.Connection:
        assert self._raw is not None
        return self._raw

    @property
    def texts(self) -> Texts:
        assert self._texts is not None
        return self._texts

    @property
    def is_open(self) -> bool:
        return self._raw is not None and not self._raw.is_closed()

    def _noticed(self, _: object, message: asyncpg.PostgresLogMessage) -> None:
        if message.severity_en == "WARNING" and message.sqlstate in REPLICATION_IN_DOUBT:
            self._warning = message.message

    # -- the lock

    async def lock(self) -> bool:
        """Return whether this session has the lock now.

        An earlier session of this broker that still holds the lock is ended.
        """
        for _ in range(LOCK_ATTEMPTS):
            if await self.raw.fetchval(TRY_LOCK):
                return True
            for pid, application, _host in await self.raw.fetch(HOLDER):
                if application == self.application:
                    await self.raw.fetchval("SELECT pg_terminate_backend($1)", pid)
            await asyncio.sleep(LOCK_PAUSE_S)
        return False

    async def holder(self) -> str:
        """Return a text for the operator about the session that has the lock."""
        rows = await self.raw.fetch(HOLDER)
        if not rows:
            return "somebody"
        pid, application, host = rows[0]
        return f"{application or 'a session of another user'} from {host} (its session is {pid})"

    async def begin_epoch(self) -> int:
        """Begin the next epoch; return the number of the last batch of those before.

        Raise AwayError if the epoch may not have reached the standby.
        """
        self._warning = ""
        row = await self.raw.fetchrow(BEGIN_EPOCH)
        self._check_warning()
        assert row is not None
        self.epoch = row["epoch"]
        return int(row["value"])

    async def leads(self) -> bool:
        """Return whether this session still holds the lock, in the epoch that lasts.

        If the server is to wait for a standby server, ask by a commit: a primary that was left
        behind would answer a mere question.
        """
        if self._is_replicated:
            await self.raw.execute(CHECK_EPOCH.format(epoch=self.epoch))
        row = await self.raw.fetchrow(LEADS, self.epoch)
        assert row is not None
        self._is_replicated = row["is_replicated"]
        return bool(row["leads"])

    # -- work

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Call `work` with a connection of SQLAlchemy and return its result."""
        assert self._core is not None
        return await self._core.run_sync(work)

    async def in_transaction(self, work: Callable[[Connection], T]) -> T:
        """Call `work` like `run`, in one transaction, which fails in an epoch that is over.

        Raise AwayError if its commit may not have reached the standby.
        """
        await self.raw.execute(f"BEGIN; {CHECK_EPOCH.format(epoch=self.epoch)}")
        result = await self.run(work)
        self._warning = ""
        await self.raw.execute("COMMIT")
        self._check_warning()
        return result

    def _check_warning(self) -> None:
        if self._warning:
            raise AwayError(self._warning)

    async def write(self, changes: Changes, number: int) -> None:
        """Commit a batch under its number.

        Raise AwayError if the commit may not have reached the standby.
        """
        self._warning = ""
        if postgres.is_plain(changes):
            if self._plain is None:
                self._plain = await self.raw.prepare(postgres.PLAIN)
            await postgres.write_plain(self._plain, changes, number=number, epoch=self.epoch)
        else:
            await postgres.write(self.raw, self.texts, changes, number=number, epoch=self.epoch)
        self._check_warning()

    # -- the end

    @contextmanager
    def dropped_after(self, seconds: float) -> Iterator[None]:
        """Drop the session if what the block awaits takes longer; nothing of it is cancelled."""
        limit = asyncio.get_running_loop().call_later(seconds, self.drop)
        try:
            yield
        finally:
            limit.cancel()

    def drop(self) -> None:
        """Close the connection at once, even during a statement, without asking the server."""
        if self._raw is not None:
            self._raw.terminate()

    async def close(self) -> None:
        """End the session in order."""
        if self._raw is not None:
            await self._raw.close(timeout=postgres.CONNECT_TIMEOUT_S)


def application_name(pid: int) -> str:
    """Return a name for the sessions of one broker that no other broker has."""
    return f"{postgres.APPLICATION} {pid} {secrets.token_hex(4)}"
