"""A broker on SQLite whose backlogs are longer than their paging windows, over a restart, too."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.app import App
from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.queue import Queue
from broker.settings import Settings
from tests.support.broker import RecordingWatcher
from tests.support.parties import RecordingConsumer
from tests.support.routing import encoded, new_message

COUNT = 2000
WINDOW = 128


class Reader(RecordingConsumer):
    """A consumer that settles each message, and sets `served` once it has received `count`."""

    def __init__(self, app: App, count: int) -> None:
        super().__init__(count, settles=app.journal.batch)
        self.app = app
        self.served = asyncio.Event()

    def deliver(self, entry: QueueEntry) -> None:
        self._settles = self.app.journal.batch
        super().deliver(entry)
        if self.credit == 0:
            self.served.set()


def bodies(*numbers: int) -> list[bytes]:
    return [encoded(b"%d" % number) for number in numbers]


@asynccontextmanager
async def running(folder: Path, *, memory_max: int | None = None) -> AsyncIterator[App]:
    """Run a broker on the store in `folder`."""
    settings = Settings(
        port=0,
        users_file=folder / "users",
        store=f"sqlite:///{folder / 'store.db'}",
        paging_window=WINDOW,
        memory_max=memory_max,
    )
    app = App(settings, watcher=RecordingWatcher())
    await app.start()
    try:
        yield app
    finally:
        await app.stop(0.1)


def queue_of(app: App) -> Queue:
    node = app.container.router.resolve(app.container.router.parse("q", "queue"), app.journal.batch)
    assert isinstance(node, Queue)
    return node


def loaded(queue: Queue) -> int:
    """Return the number of entries of `queue` that are in memory."""
    return sum(len(each.loaded(-1, 10**6)) for each in queue.backlogs.existing())


async def take(app: App, count: int) -> list[bytes]:
    """Return the bodies of the `count` messages that a new consumer receives."""
    queue, reader = queue_of(app), Reader(app, count)
    queue.attach_consumer(reader)
    queue.consumer_ready(reader, drain=False)
    app.container.run_round()
    await asyncio.wait_for(reader.served.wait(), 30)
    queue.detach_consumer(reader, queue, app.journal.batch)
    return reader.taken


async def fill(app: App) -> None:
    """Send COUNT durable messages, and wait until all are committed."""
    queue = queue_of(app)
    for number in range(COUNT):
        queue.put(new_message(encoded(b"%d" % number), durable=True), app.journal.batch)
    last = app.container.router.context.next_stored_number() - 1
    app.container.run_round()
    async with asyncio.timeout(30):
        while app.journal.durable_up_to < last:
            await app.store.nodes()  # runs after the commits in the store's thread


@pytest.mark.requirement("RCV-03", "PRD-03")
async def test_a_long_backlog_comes_back_in_its_order(tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        await fill(app)
        queue = queue_of(app)
        app.container.run_round()
        assert (queue.backlogs.waiting, loaded(queue) <= 2 * WINDOW) == (COUNT, True)
        assert await take(app, 700) == bodies(*range(700))
        assert await take(app, COUNT - 700) == bodies(*range(700, COUNT))
        assert (queue.backlogs.waiting, queue.state.bytes) == (0, 0)


@pytest.mark.requirement("PRD-03", "DST-02")
async def test_a_start_loads_nothing_until_somebody_asks(tmp_path: Path) -> None:
    async with running(tmp_path) as app:
        await fill(app)
        assert await take(app, 500) == bodies(*range(500))
    async with running(tmp_path) as app:
        queue = queue_of(app)
        assert (queue.backlogs.waiting, loaded(queue)) == (COUNT - 500, 0)
        assert await take(app, COUNT - 500) == bodies(*range(500, COUNT))
    async with running(tmp_path) as app:
        assert queue_of(app).contents() == 0
