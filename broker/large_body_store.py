"""Contents of large messages: their numbers, references to them, reads, and deletion (the sweep).

Changes are noted in the journal's batch like all others. Reads are awaited here, apart from the
processing of frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from broker.journal import Journal, Waiter
from broker.large_body import LargeBodyRef, LargeBodyReferences
from storage.api import ContentError, Store, StoreError

SWEEP_PAUSE_S: Final = 0.5
"""Seconds for which an unused content waits for a sweep, so that more of them gather."""


class LargeBodyStore(LargeBodyReferences):
    """Begins contents, reads them, and has unused ones deleted."""

    def __init__(self, journal: Journal, store: Store) -> None:
        self._journal: Final = journal
        self._store: Final = store
        self._last = store.first_content - 1
        self._after: Callable[[], None] = _nothing
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._is_sweeping = False

    def begin(self) -> LargeBodyRef:
        """Return a reference to a new content."""
        self._last += 1
        return self.hold(self._last)

    def hold(self, content: int) -> LargeBodyRef:
        """Return a reference to `content`, which a message in the store has."""
        self._journal.batch.content_changes().held.append(content)
        return LargeBodyRef(content, self)

    def let_go(self, content: int) -> None:
        self._journal.batch.content_changes().let_go.append(content)
        self._sweep_soon()

    def read(
        self,
        content: int,
        index: int,
        *,
        arrived: Callable[[bytes], None],
        damaged: Callable[[str], None],
    ) -> None:
        """Read chunk `index`; later call `arrived` with it, or `damaged` with what is wrong.

        Neither is called if the store fails: that ends the broker.
        """
        self._do(self._read(content, index, arrived, damaged=damaged))

    async def _read(
        self,
        content: int,
        index: int,
        arrived: Callable[[bytes], None],
        *,
        damaged: Callable[[str], None],
    ) -> None:
        try:
            chunk = await self._store.read_chunk(content, index)
        except ContentError as damage:
            damaged(str(damage))
        except StoreError:
            self._fail()
        else:
            arrived(chunk)
        self._after()

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fail(self) -> None:
        """Force a commit, which reports the failure of the store."""
        self._journal.batch.content_changes()
        self._journal.flush()

    # -- unused contents

    def start(self, after: Callable[[], None]) -> None:
        """Call `after` after each read from now on; delete contents left unused by the last run."""
        self._after = after
        self._sweep_soon()

    def _sweep_soon(self) -> None:
        if not self._is_sweeping and self._after is not _nothing:
            self._is_sweeping = True
            self._do(self._wait_for_turn())

    async def _wait_for_turn(self) -> None:
        await asyncio.sleep(SWEEP_PAUSE_S)
        self._journal.submit(_Turn(self))
        self._journal.flush()

    def sweep(self) -> None:
        """Delete contents that are unused as of the last commit."""
        self._is_sweeping = False
        if self._after is not _nothing:
            self._do(self._sweep())

    async def _sweep(self) -> None:
        try:
            while await self._store.sweep():
                pass
        except StoreError:
            self._fail()

    async def close(self) -> None:
        """Cancel reads and deletions; the next start deletes what is left."""
        self._after = _nothing
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Turn(Waiter):
    """Sweeps once the ends of references that were noted before are durable."""

    def __init__(self, contents: LargeBodyStore) -> None:
        self._contents: Final = contents

    def committed(self) -> None:
        self._contents.sweep()


def _nothing() -> None:
    """Do nothing: the value of `_after` before `start`, and after `close`."""
