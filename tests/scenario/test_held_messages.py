"""Dead letters that cannot be moved, on a store on disk: over restarts, and in a long backlog."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker.app import App
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from broker.settings import given_settings
from tests.support.broker import RecordingWatcher
from tests.support.parties import RecordingConsumer
from tests.support.routing import bodies, encoded, new_message

pytestmark = pytest.mark.requirement("RCV-02", "PRD-03")

COUNT = 300
REJECTED = [encoded(b"%d" % number) for number in range(0, COUNT, 3)]
KEPT = [encoded(b"%d" % number) for number in range(COUNT) if number % 3]


@asynccontextmanager
async def running(folder: Path, *, dead_letter: str) -> AsyncIterator[App]:
    """Run a broker on the store in `folder`."""
    settings = given_settings(
        port=0,
        users_file=folder / "users",
        store=f"sqlite:///{folder / 'store.db'}",
        paging_window=64,
        dead_letter=dead_letter,
    )
    app = App(settings, watcher=RecordingWatcher())
    await app.start()
    try:
        yield app
    finally:
        await app.stop(0.1)


NOWHERE = "/topic/durable/dead"
"""An address that no queue can have."""


def queue_of(app: App, address: str = "q") -> Queue:
    node = app.container.router.resolve(
        app.container.router.parse(address, "queue"), app.journal.batch
    )
    assert isinstance(node, Queue)
    return node


async def settled(app: App) -> None:
    """Wait until everything done so far is on disk."""
    async with asyncio.timeout(30):
        while not app.journal.is_idle():
            app.container.run_round()
            await app.store.nodes()


async def consume(app: App, address: str, disposals: dict[bytes, Disposal]) -> list[bytes]:
    """Consume all messages and return their bodies.

    Each is disposed of as `disposals` says; a message that is not in it is released.
    """
    queue, consumer = queue_of(app, address), RecordingConsumer(10**6)
    queue.attach_consumer(consumer)
    queue.consumer_ready(consumer, drain=False)
    async with asyncio.timeout(30):
        while True:
            app.container.run_round()
            await app.store.nodes()
            if queue.backlogs.waiting == 0:
                break
    while consumer.entries:
        body = consumer.entries[0].message.encoded
        consumer.dispose(disposals.get(body, Disposal.RELEASE), app.journal.batch)
    queue.detach_consumer(consumer, queue, app.journal.batch)
    await settled(app)
    return consumer.taken


async def tried_again(app: App) -> None:
    """Retry the moves of held messages once, and wait until the result is on disk."""
    app.container.router.moves.retry(app.journal.batch)
    await settled(app)


async def rejected_in_vain(folder: Path) -> None:
    """Send COUNT messages, and reject every third one while dead letters cannot be moved."""
    async with running(folder, dead_letter=NOWHERE) as app:
        queue = queue_of(app)
        for number in range(COUNT):
            queue.put(new_message(encoded(b"%d" % number), durable=True), app.journal.batch)
        await consume(app, "q", dict.fromkeys(REJECTED, Disposal.DEAD_LETTER))
        assert bodies(queue.state.held_for_move()) == REJECTED
        assert (queue.backlogs.waiting, queue.state.acquired) == (len(KEPT), 0)


async def test_messages_that_are_held_are_held_after_a_restart(tmp_path: Path) -> None:
    await rejected_in_vain(tmp_path)
    for _ in range(2):
        async with running(tmp_path, dead_letter=NOWHERE) as app:
            queue = queue_of(app)
            assert queue.contents() == COUNT
            assert await consume(app, "q", {}) == KEPT
            assert bodies(queue.state.held_for_move()) == REJECTED
            assert app.stats.held_back == len(REJECTED)


async def test_they_are_moved_once_the_settings_name_a_node_that_can_be(tmp_path: Path) -> None:
    await rejected_in_vain(tmp_path)
    async with running(tmp_path, dead_letter="DLQ") as app:
        assert await consume(app, "q", dict.fromkeys(KEPT, Disposal.REMOVE)) == KEPT
        await tried_again(app)
        assert queue_of(app).contents() == 0
    async with running(tmp_path, dead_letter="DLQ") as app:
        dead = await consume(app, "DLQ", {})
        assert len(dead) == len(REJECTED)
        for message, rejected in zip(dead, REJECTED, strict=True):
            assert message.endswith(rejected), "the bare message is as it was"
            assert b"x-opt-dead-letter-reason" in message
        assert (queue_of(app).contents(), queue_of(app).state.bytes) == (0, 0)


async def test_they_are_dropped_once_the_settings_say_so(tmp_path: Path) -> None:
    await rejected_in_vain(tmp_path)
    async with running(tmp_path, dead_letter="") as app:
        assert await consume(app, "q", {}) == KEPT
        await tried_again(app)
        assert app.stats.dropped == len(REJECTED)
    async with running(tmp_path, dead_letter="DLQ") as app:
        assert queue_of(app).contents() == len(KEPT)
