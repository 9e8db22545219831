"""The connection over which messages are loaded, so that no load waits for a commit.

A load reads what earlier commits have written, and SQLite lets a connection read while another
writes. So a consumer of a long backlog gets its messages while its settlements are written. The
connection has a thread of its own, never writes or checkpoints (`docs/design/storage.md`), and is
opened at the first load.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Lock, RLock
from typing import Final, TypeVar, final

from sqlalchemy import Connection

from storage.sql.sqlite import sqlite
from storage.sql.sqlite.writer import Writer
from storage.sql.transaction import transaction

T = TypeVar("T")

PRAGMAS: Final = ("PRAGMA query_only=ON", "PRAGMA wal_autocheckpoint=0")


@final
class LoadConnection:
    """One read-only connection to `database`, used by a thread of its own.

    SQLite moves no more of the log into the file than the oldest transaction sees, and begins the
    log anew only if no transaction reads it. So the thread that writes can wait for a load's end
    (`wait`), and keep loads from beginning (`pause`).
    """

    def __init__(self, database: Path) -> None:
        self._database: Final = database
        self._thread: Writer | None = None
        self._connection: Connection | None = None
        self.is_closed = False
        self._reading: Final = RLock()
        # held by the thread that reads next: else loads could always overtake one that waits
        self._turn: Final = Lock()
        self._is_paused = False

    async def do(self, work: Callable[[Connection], T]) -> T:
        """Return the result of `work`, all of whose statements see one state of the store.

        Raise the driver's error if it fails. Not after `close`.
        """
        assert not self.is_closed, "there is no connection any more"
        if self._thread is None:
            self._thread = Writer("store-loads")
        return await self._thread.do(partial(self._with, work))

    def _with(self, work: Callable[[Connection], T]) -> T:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._open()
        with self._turn:
            self._reading.acquire()
        try:
            with transaction(connection):
                return work(connection)
        finally:
            self._reading.release()

    # -- called by the thread that writes

    def wait(self) -> None:
        """Wait until the load under way has ended: later ones see all that is committed."""
        with self._turn, self._reading:
            pass

    def pause(self) -> None:
        """Wait as `wait` does, and let no load begin before `resume`."""
        if not self._is_paused:
            with self._turn:
                self._reading.acquire()
            self._is_paused = True

    def resume(self) -> None:
        """Let loads begin. No effect unless they are paused."""
        if self._is_paused:
            self._is_paused = False
            self._reading.release()

    def _open(self) -> Connection:
        connection = sqlite.engine_of(self._database).connect()
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        for pragma in PRAGMAS:
            connection.exec_driver_sql(pragma)
        return connection

    # -- the end

    async def close(self) -> None:
        """Close the connection once all loads are done. Idempotent."""
        self.is_closed = True
        thread = self._thread
        if thread is not None and not thread.is_closed:
            await thread.do(self._close)
            await thread.close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.engine.dispose()
            self._connection = None
