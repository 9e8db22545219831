"""Loads of pages, in turn: at once if the store needs no I/O, else by a task."""

import asyncio

import pytest

from broker.journal import Journal
from broker.routing.queues.queue import Queue
from broker.windows import Windows
from storage.api import Store, StoreError
from storage.records import StoredMessage
from tests.support.routing import Routing, encoded, new_message, page_out
from tests.support.stores import GatedStore


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


def paged(routing: Routing, count: int = 3) -> Queue:
    """Return a queue whose messages are all only in the store."""
    queue = routing.queue()
    for number in range(count):
        queue.put(new_message(encoded(b"%d" % number), durable=True), routing.batch)
    routing.commit()
    page_out(queue)
    return queue


def windows(routing: Routing, store: Store) -> Windows:
    return Windows(store, Journal(store), routing.router.context.paging)


async def gated(routing: Routing) -> GatedStore:
    """Return a store that has to be waited for, with the messages of `routing`'s store."""
    store = GatedStore()
    await fill(store, routing)
    return store


async def fill(store: GatedStore, routing: Routing) -> None:
    """Keep the messages of `routing`'s store in `store`, too."""
    behind = 0
    while messages := await routing.store.messages(behind):
        for message in messages:
            store.keep(message)
        behind = int(messages[-1].number)


def test_a_store_without_io_is_read_there_and_then() -> None:
    routing = Routing()
    queue = paged(routing)
    windows(routing, routing.store)
    assert len(routing.consumer(queue, 10).entries) == 3


async def test_whoever_waits_is_served_when_the_store_has_been_read() -> None:
    routing = Routing()
    queue = paged(routing)
    reading = windows(routing, await gated(routing))
    task = asyncio.create_task(reading.run(routing.pump))
    consumer = routing.consumer(queue, 10)
    assert consumer.entries == []
    await settle()
    assert len(consumer.entries) == 3
    reading.close()
    await task


class LoadingStore(GatedStore):
    """A store whose loads end when a test lets them; `begun` has the numbers of each."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[list[int]] = []
        self.may_end = asyncio.Semaphore(0)

    async def load(self, numbers: list[int]) -> list[StoredMessage]:
        self.begun.append(numbers)
        await self.may_end.acquire()
        return await super().load(numbers)


async def test_the_store_has_the_next_load_while_the_one_before_is_delivered() -> None:
    routing = Routing(paging_window=128)
    queue = paged(routing, 6 * 64)
    store = LoadingStore()
    await fill(store, routing)
    reading = windows(routing, store)
    began: list[int] = []

    def deliver() -> None:
        began.append(len(store.begun))
        routing.pump()

    task = asyncio.create_task(reading.run(deliver))
    consumer = routing.consumer(queue, 1000)
    await settle()
    assert [len(numbers) for numbers in store.begun] == [64, 64]
    for _ in range(6):
        store.may_end.release()
        await settle()
    assert began == [2, 3, 4, 5, 6, 6], "the store has the other one when one is delivered"
    numbers = [entry.stored_number for entry in consumer.entries]
    assert numbers == sorted(numbers)
    assert len(numbers) == 6 * 64
    reading.close()
    await task


async def test_a_close_waits_for_the_loads_that_have_begun() -> None:
    routing = Routing(paging_window=128)
    queue = paged(routing, 6 * 64)
    store = LoadingStore()
    await fill(store, routing)
    reading = windows(routing, store)
    task = asyncio.create_task(reading.run(routing.pump))
    consumer = routing.consumer(queue, 1000)
    await settle()
    reading.close()
    await settle()
    assert not task.done()
    for _ in range(6):
        store.may_end.release()
    await task
    assert (len(store.begun), len(consumer.entries)) == (2, 2 * 64)


async def test_a_store_that_fails_ends_it() -> None:
    routing = Routing()
    queue = paged(routing)
    store = await gated(routing)
    store.is_unreadable = True
    task = asyncio.create_task(windows(routing, store).run(routing.pump))
    consumer = routing.consumer(queue, 10)
    await settle()
    assert consumer.entries == []
    with pytest.raises(StoreError):
        await task
