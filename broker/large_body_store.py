"""Contents of large messages: numbers for them, who holds them, reading ahead, and the sweep.

What is noted goes the way of all changes, in the journal's batch; reading is awaited here,
off the way of frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final

from broker.journal import Journal, Waiter
from broker.large_body import LargeBodyKeeper, LargeBodyRef
from storage.api import ContentError, Store, StoreError

SWEEP_PAUSE_S: Final = 0.5
"""So long what nobody uses any more lies about, and more of it gathers."""


class LargeBodyStore(LargeBodyKeeper):
    """Begins contents, reads them, and has those deleted that nobody holds."""

    def __init__(self, journal: Journal, store: Store) -> None:
        self._journal: Final = journal
        self._store: Final = store
        self._last = store.first_content - 1
        self._after: Callable[[], None] = _nothing
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._is_sweeping = False

    def begin(self) -> LargeBodyRef:
        """A content that is new."""
        self._last += 1
        return self.hold(self._last)

    def hold(self, content: int) -> LargeBodyRef:
        """A content that a message in the store has."""
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
        """Have one of the two called some time after this: with a chunk, or why it is none."""
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
        """The store is broken: the next commit says so, to everybody."""
        self._journal.batch.content_changes()
        self._journal.flush()

    # -- what nobody uses

    def start(self, after: Callable[[], None]) -> None:
        """Call `after` when somebody has been told something; delete what was left over."""
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
        """Delete what nobody uses as of the last commit."""
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
        """Nothing more is read or deleted; a start finds what is left."""
        self._after = _nothing
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Turn(Waiter):
    def __init__(self, contents: LargeBodyStore) -> None:
        self._contents: Final = contents

    def committed(self) -> None:
        self._contents.sweep()


def _nothing() -> None:
    """Before the start, and behind the end."""
