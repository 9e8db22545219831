"""The durable path: many changes, one commit, then everybody who waited for it.

Routing notes changes in `batch`; links `submit` what must not happen before
those changes are durable. `flush` closes the batch. A store without I/O
commits there and then; any other is awaited by `run`, and whatever arrives
meanwhile gathers in the next batch (no timer: the disk sets the pace).
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import Final, final

from mypy_extensions import mypyc_attr

from storage.api import Store
from storage.batch import Batch


@mypyc_attr(allow_interpreted_subclasses=True)
class Waiter:
    """Something that happens only once a batch is durable, such as an outcome."""

    @abstractmethod
    def committed(self) -> None:
        """The batch that this waited for has survived any crash."""


@final
class Journal:
    """Groups changes into batches and commits them one after the other, in order."""

    def __init__(self, store: Store) -> None:
        self.batch = Batch()
        self._store: Final = store
        self._at_once: Final = store.commits_at_once
        self._waiting: list[Waiter] = []
        self._work: Final = asyncio.Event()
        self._closing = False

    def submit(self, waiter: Waiter) -> None:
        """Call `waiter` back once everything that is in `batch` now is durable."""
        self._waiting.append(waiter)

    def flush(self) -> None:
        """End of a round of routing: commit now, or let `run` do it."""
        if not self._waiting and self.batch.is_empty():
            return
        if not self._at_once:
            self._work.set()
            return
        batch, waiting = self._take()
        if not batch.is_empty():
            self._store.commit_now(batch)
        for waiter in waiting:
            waiter.committed()

    def _take(self) -> tuple[Batch, list[Waiter]]:
        batch, waiting = self.batch, self._waiting
        self.batch = Batch()
        self._waiting = []
        return batch, waiting

    async def run(self, after_commit: Callable[[], None]) -> None:
        """Commit until `close`; call `after_commit` when those who waited for one have been told.

        What they did about it still has to be written. A StoreError ends this: nobody
        waiting is told anything (PRD-03).
        """
        closing = False
        while not closing:
            await self._work.wait()
            self._work.clear()
            closing = self._closing
            batch, waiting = self._take()
            if not batch.is_empty():
                await self._store.commit(batch)
            for waiter in waiting:
                waiter.committed()
            after_commit()

    def close(self) -> None:
        """Let `run` return after what is gathered now."""
        self._closing = True
        self._work.set()
