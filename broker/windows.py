"""Loads the messages that backlogs want from the store, off the loop's thread, in turn."""

import asyncio
from collections.abc import Callable
from typing import Final, final

from broker.journal import Journal
from broker.routing.queues.paging import Load, Paging, Reader
from storage.api import Store
from storage.records import StoredMessage


@final
class Windows(Reader):
    """Reads one load after the other. A store without I/O is read at once, by `read`."""

    def __init__(self, store: Store, journal: Journal, paging: Paging) -> None:
        self._store: Final = store
        self._journal: Final = journal
        self._paging: Final = paging
        self._loads: list[Load] = []
        self._work: Final = asyncio.Event()
        self._closing = False
        paging.reader = self

    def read(self, load: Load) -> None:
        if self._store.commits_at_once:
            self._finish(load, self._store.load_now(load.numbers()))
        else:
            self._loads.append(load)
            self._work.set()

    def _finish(self, load: Load, messages: list[StoredMessage]) -> None:
        load.finish(messages, self._journal.batch)
        self._paging.resume()

    async def run(self, after_load: Callable[[], None]) -> None:
        """Read until `close`; call `after_load` when a load's messages are ready to be delivered.

        A StoreError ends this.
        """
        while not self._closing:
            await self._work.wait()
            self._work.clear()
            loads = self._loads
            self._loads = []
            for load in loads:
                self._finish(load, await self._store.load(load.numbers()))
                after_load()

    def close(self) -> None:
        """Let `run` return after the loads that it is reading."""
        self._closing = True
        self._work.set()
