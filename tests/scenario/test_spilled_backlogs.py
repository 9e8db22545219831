"""Non-durable messages leave memory when it is short, and end with their process."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

import pytest

from broker.app import App
from broker.machine import LEAST
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector
from tests.scenario.test_paged_backlogs import Reader
from tests.scenario.test_paged_backlogs import running as running_paged
from tests.support.routing import encoded, new_message

BODY = bytes(20_000)
COUNT: Final = 5000
"""Number of messages of BODY: about 100 MB, whereas half of the memory budget is 64 MiB."""


def running(folder: Path) -> AbstractAsyncContextManager[App]:
    """Run a broker with the smallest memory budget on the store in `folder`."""
    return running_paged(folder, memory_max=LEAST)


def plain(app: App) -> Queue:
    node = app.container.router.resolve(app.container.router.parse("q", "queue"), app.journal.batch)
    assert isinstance(node, Queue)
    return node


def temporary(app: App) -> Queue:
    node = app.container.router.create_temporary("queue", 1)
    assert isinstance(node, Queue)
    return node


def of_a_volatile_subscription(app: App) -> Queue:
    """Return a queue as a volatile subscription has it: without address, and not stored."""
    router = app.container.router
    return Queue(
        address="news",
        policy=router.policy_of("news"),
        context=router.context,
        is_subscription=True,
    )


QUEUES: Final[dict[str, Callable[[App], Queue]]] = {
    "a queue": plain,
    "a temporary queue": temporary,
    "the queue of a volatile subscription": of_a_volatile_subscription,
}


def body(number: int) -> bytes:
    return encoded(b"%d " % number + BODY)


async def fill(app: App, queue: Queue, count: int = COUNT) -> None:
    """Put `count` messages into `queue`, as fast as the store writes those that leave memory."""
    memory = app.container.router.memory
    for number in range(count):
        queue.put(new_message(body(number), durable=False), app.journal.batch)
        if number % 100 == 99:
            app.container.run_round()
            async with asyncio.timeout(30):
                while memory.total() > memory.limit * 5 // 8:
                    await app.store.nodes()  # runs after the commits in the store's thread


async def take(app: App, queue: Queue, count: int) -> list[bytes]:
    reader = Reader(app, count)
    queue.attach_consumer(reader)
    queue.consumer_ready(reader, drain=False)
    app.container.run_round()
    async with asyncio.timeout(30):
        await reader.served.wait()
    queue.detach_consumer(reader, queue, app.journal.batch)
    app.container.run_round()
    return reader.taken


@pytest.mark.parametrize("queue_of", QUEUES.values(), ids=QUEUES.keys())
async def test_a_backlog_leaves_memory_and_comes_back_in_its_order(
    tmp_path: Path, queue_of: Callable[[App], Queue]
) -> None:
    async with running(tmp_path) as app:
        queue = queue_of(app)
        await fill(app, queue)
        memory = app.container.router.memory
        assert app.stats.spilled > 0
        assert memory.volatile <= memory.limit * 5 // 8
        assert queue.backlogs.waiting == COUNT
        assert await take(app, queue, COUNT) == [body(number) for number in range(COUNT)]
        assert (memory.total(), memory.held, queue.state.bytes) == (0, 0, 0)
    async with running(tmp_path) as app:
        assert (await app.store.places(0)).numbers == []


@pytest.mark.parametrize("queue_of", QUEUES.values(), ids=QUEUES.keys())
async def test_a_queue_that_ends_leaves_nothing_in_the_store(
    tmp_path: Path, queue_of: Callable[[App], Queue]
) -> None:
    async with running(tmp_path) as app:
        queue = queue_of(app)
        await fill(app, queue)
        if queue.is_subscription:
            queue.delete(app.journal.batch)
        else:
            app.container.router.delete(queue, app.journal.batch)
        app.container.run_round()
        assert app.container.router.memory.total() == 0
        async with asyncio.timeout(30):
            while (await app.store.places(0)).numbers:
                await app.store.nodes()  # runs after the commits in the store's thread


async def test_a_start_forgets_what_was_not_durable(tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        await fill(app, plain(app))
        plain(app).put(new_message(encoded(b"kept"), durable=True), app.journal.batch)
        app.container.run_round()
    async with running(tmp_path) as app:
        queue = plain(app)
        assert queue.backlogs.waiting == 1
        assert await take(app, queue, 1) == [encoded(b"kept")]


async def test_a_selector_finds_what_has_left_memory(tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        queue = plain(app)
        await fill(app, queue)
        wanted = encoded(b"x", group="wanted")
        queue.put(new_message(wanted, group="wanted"), app.journal.batch)
        reader = Reader(app, 1)
        reader.filter = ConsumerFilter(parse_selector("JMSXGroupID = 'wanted'"))
        queue.attach_consumer(reader)
        queue.consumer_ready(reader, drain=False)
        app.container.run_round()
        async with asyncio.timeout(30):
            await reader.served.wait()
        assert reader.taken == [wanted]
        queue.detach_consumer(reader, queue, app.journal.batch)
