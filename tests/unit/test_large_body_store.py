"""Large bodies in use: their numbers, reading, and the sweep of unused ones."""

import asyncio

import pytest

from broker import large_body_store as contents_module
from broker.journal import Journal
from broker.large_body_store import LargeBodyStore
from storage.api import StoreError
from storage.batch import Batch
from tests.support.stores import GatedStore


class Running:
    """Large bodies on a store whose commits end at once, with their journal."""

    def __init__(self) -> None:
        self.store = GatedStore(keeps_contents=True)
        self.journal = Journal(self.store)
        self.contents = LargeBodyStore(self.journal, self.store)
        self.rounds = 0
        self.committing = asyncio.get_running_loop().create_task(self.journal.run(self.round))
        self.contents.start(self.round)

    def round(self) -> None:
        self.rounds += 1

    async def work(self) -> None:
        for _ in range(10):
            self.store.let_all_through()
            await asyncio.sleep(0)

    async def stop(self) -> None:
        await self.contents.close()
        self.journal.close()
        await self.work()
        await self.committing


async def test_numbers_are_new_and_holds_are_noted() -> None:
    running = Running()
    first, second = running.contents.begin(), running.contents.begin()
    assert (first.content, second.content) == (1, 2)
    changes = running.journal.batch.content_changes()
    assert changes.held == [1, 2]
    del first
    assert changes.let_go == [1]
    await running.stop()


async def test_a_chunk_is_read_and_then_there_is_a_round() -> None:
    running = Running()
    hold = running.contents.begin()
    running.journal.batch.content_changes().write(hold.content, 0, b"chunk")
    running.journal.flush()
    await running.work()
    told: list[object] = []
    rounds = running.rounds
    running.contents.read(1, 0, arrived=told.append, damaged=told.append)
    running.contents.read(1, 1, arrived=told.append, damaged=told.append)
    await running.work()
    assert told[0] == b"chunk"
    assert "no chunk 1" in str(told[1])
    assert running.rounds == rounds + 2
    await running.stop()


async def test_a_store_that_fails_while_reading_ends_the_journal() -> None:
    running = Running()

    async def broken(content: int, index: int) -> bytes:
        raise StoreError(f"chunk {index} of {content}: the disk is gone")

    running.store.read_chunk = broken  # type: ignore[method-assign]
    running.contents.read(1, 0, arrived=lambda _: None, damaged=lambda _: None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(running.store.commits) == 1, "which is asked to commit, and says so"
    await running.stop()


async def test_what_was_let_go_is_swept_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents_module, "SWEEP_PAUSE_S", 0)
    running = Running()
    hold = running.contents.begin()
    running.journal.batch.content_changes().write(hold.content, 0, b"chunk")
    running.journal.flush()
    await running.work()
    assert await running.store.chunks() == 1
    del hold
    await running.work()
    await running.work()
    assert await running.store.chunks() == 0
    await running.stop()


async def test_nothing_is_begun_behind_the_end() -> None:
    running = Running()
    hold = running.contents.begin()
    await running.stop()
    del hold
    assert not [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
    assert isinstance(running.journal.batch, Batch)
