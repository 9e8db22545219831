"""Loads of pages, in turn: at once if the store needs no I/O, else by a task."""

import asyncio

import pytest

from broker.journal import Journal
from broker.routing.queues.queue import Queue
from broker.windows import Windows
from storage.api import Store, StoreError
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
    for message in await routing.store.messages(0):
        store.keep(message)
    return store


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
