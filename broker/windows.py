"""Loads the messages that backlogs want from the store, off the loop's thread, in turn.

The store reads the next load while the messages of the one before are delivered.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, final

from broker.journal import Journal
from broker.routing.queues.paging import Load, Paging, Reader
from storage.api import Store
from storage.records import StoredMessage

READ_AT_ONCE: Final = 2
"""Loads that the store has at a time: when it has read one, it begins the other at once."""

Read = tuple[Load, asyncio.Task[list[StoredMessage]]]
"""A load, and the task that reads its messages."""


@final
class Windows(Reader):
    """Reads the loads in turn. A store without I/O is read at once, by `read`."""

    def __init__(self, store: Store, journal: Journal, paging: Paging) -> None:
        self._store: Final = store
        self._journal: Final = journal
        self._paging: Final = paging
        self._loads: Final[deque[Load]] = deque()
        self._under_way: Final[deque[Read]] = deque()
        self._work: Final = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = False
        paging.reader = self

    def read(self, load: Load) -> None:
        if self._store.commits_at_once:
            self._finish(load, self._store.load_now(load.numbers()))
        else:
            self._loads.append(load)
            self._begin()
            self._work.set()

    def _begin(self) -> bool:
        """Let the store begin loads, READ_AT_ONCE at a time. Return whether it has new ones."""
        has_begun = False
        loop = None if self._closing else self._loop
        while loop is not None and self._loads and len(self._under_way) < READ_AT_ONCE:
            load = self._loads.popleft()
            reading = loop.create_task(self._store.load(load.numbers()))
            self._under_way.append((load, reading))
            has_begun = True
        return has_begun

    def _finish(self, load: Load, messages: list[StoredMessage]) -> None:
        load.finish(messages, self._journal.batch)
        self._paging.resume()

    async def run(self, after_load: Callable[[], None]) -> None:
        """Read until `close`; call `after_load` when a load's messages are ready to be delivered.

        A StoreError ends this.
        """
        self._loop = asyncio.get_running_loop()
        self._begin()
        try:
            while not self._closing:
                await self._work.wait()
                self._work.clear()
                while self._under_way:
                    await self._finish_first()
                    after_load()
        finally:
            self._closing = True
            for _, reading in self._under_way:
                reading.cancel()

    async def _finish_first(self) -> None:
        """Wait for the first load, and finish it, after the store has begun the next one."""
        load, reading = self._under_way[0]
        messages = await reading
        self._under_way.popleft()
        if self._begin():
            await asyncio.sleep(0)  # the new task hands its load to the store
        self._finish(load, messages)

    def close(self) -> None:
        """Let `run` return after the loads that the store has begun."""
        self._closing = True
        self._work.set()
