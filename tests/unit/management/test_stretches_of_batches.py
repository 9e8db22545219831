"""Commits of sinks and settlements of leases that take many turns of the event loop.

Whatever happens in between, each is one commit of the store, and clients see it as one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import broker.management.leases
import broker.management.sinks
import broker.management.stretches
from broker.amqp.types import Int
from broker.management.later import SpawnedTasks
from broker.management.management import Management
from storage.api import StoreError
from storage.stages import STAGED
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer, message
from tests.support.management import Manager, Reply, read_reply, request
from tests.support.stored import stored_messages
from tests.support.stores import GatedStore

COUNT = 300
BODIES = [b"%03d" % number for number in range(COUNT)]

TURNS_MAX = 1000
"""Turns of the loop within which everything is done, unless it waits for the store."""


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give other work of the loop its turn after each portion, however fast the machine is."""
    monkeypatch.setattr(broker.management.stretches, "STRETCH_S", 0.0)
    monkeypatch.setattr(broker.management.leases, "SETTLED_AT_ONCE", 0)
    monkeypatch.setattr(broker.management.sinks, "DROPPED_AT_ONCE", 32)
    monkeypatch.setattr(broker.management.sinks, "DROPPED_IN_ONE_PIECE", 0)


class Scene:
    """A broker whose store commits only when it is let, and a manager."""

    def __init__(self) -> None:
        self.store = GatedStore()
        self.broker = Broker(store=self.store)
        self.tasks = SpawnedTasks()
        self.broker.container.service = Management(
            self.broker.container, self.store, self.tasks.spawn
        )
        self.running = asyncio.ensure_future(
            self.broker.journal.run(self.broker.container.run_round)
        )
        self.manager = Manager(self.broker)

    async def durable(self) -> None:
        """Let all commits through until nothing is left to be written."""
        for _ in range(TURNS_MAX):
            self.store.let_all_through()
            await asyncio.sleep(0)
            if self.broker.journal.is_idle():
                return
        raise AssertionError("it is never durable")

    async def answers(self, count: int = 1) -> list[Reply]:
        """Return the next responses, which may need commits: these are let through."""
        found: list[Reply] = []
        for _ in range(TURNS_MAX):
            self.store.let_all_through()
            await asyncio.sleep(0)
            found += self.replies()
            if len(found) >= count:
                return found
        raise AssertionError("there is no response")

    async def until(self, is_so: Callable[[], bool]) -> int:
        """Wait until `is_so`, with all commits kept back; return the number of turns."""
        for turn in range(TURNS_MAX):
            if is_so():
                return turn
            await asyncio.sleep(0)
        raise AssertionError("it never happens")

    async def stage(self, *, attempt: int = 0, count: int = COUNT) -> None:
        client = self.broker.session(f"task-{attempt}")
        properties: dict[str, object] = {
            "stage-query": "o",
            "stage-batch": 0,
            "stage-partition": Int(0),
            "stage-attempt": attempt,
        }
        client.attach_sender(properties=properties)
        for number in range(count):
            client.transfer(number, payload=message(BODIES[number], durable=True))
            if number % 50 == 49:
                await self.durable()
        await self.durable()
        client.hang_up()

    def commit(self) -> None:
        """Request the commit of attempt 0."""
        body = {"batch": 0, "partitions": [Int(0)], "attempts": [0], "counts": [COUNT]}
        self.manager.send(request("COMMIT", "sink", "o", body=body))

    def lease(self, operation: str, **arguments: object) -> None:
        self.manager.send(request(operation, "lease", "l", body=arguments))

    def receiver(self) -> Client:
        client = self.broker.session("receiver")
        client.attach_receiver(credit=1000)
        return client

    def replies(self) -> list[Reply]:
        """Return the responses since the last call."""
        found = [body for body in self.manager.client.bodies() if isinstance(body, Transfer)]
        return [read_reply(body.payload) for body in found]

    async def stored(self) -> tuple[int, int]:
        """Return how many messages the store has, staged and in the queue: after a kill, too."""
        staged, waiting = [await stored_messages(self.store, queue) for queue in (STAGED, "q")]
        return len(staged), len(waiting)

    def unwritten(self) -> int:
        """Return how many messages the journal has, not given to the store."""
        return sum(each is not None for each in self.broker.journal.batch.appended)

    async def close(self) -> None:
        await self.durable()
        self.broker.journal.close()
        await self.running
        await self.tasks.end(cancel=False)


def bodies(client: Client) -> list[bytes]:
    found = [body.payload for body in client.bodies() if isinstance(body, Transfer)]
    return [payload[payload.index(b"\x00\x53\x75") + 5 :] for payload in found]


async def in_the_middle(scene: Scene) -> None:
    """Wait until a part of a commit is noted."""
    assert await scene.until(lambda: scene.unwritten() > COUNT // 4) > 1
    assert scene.unwritten() < COUNT, "it was not divided"


@pytest.mark.requirement("PIP-13")
async def test_others_work_during_a_commit_and_see_nothing_of_it() -> None:
    scene = Scene()
    await scene.stage()
    receiver, sender = scene.receiver(), scene.broker.session("sender")
    await scene.durable()
    sender.attach_sender()
    assert await scene.stored() == (COUNT, 0)
    begun = len(scene.store.commits)
    scene.commit()
    await in_the_middle(scene)
    sender.transfer(0, payload=message(b"mid", durable=True))
    await scene.until(lambda: len(scene.store.commits) > begun)
    assert (bodies(receiver), scene.replies()) == ([], [])
    assert await scene.stored() == (COUNT, 0)
    scene.store.let_through()
    await asyncio.sleep(0)
    assert await scene.stored() == (0, COUNT + 1)
    await scene.durable()
    received = bodies(receiver)
    assert [body for body in received if body != b"mid"] == BODIES
    assert 0 < received.index(b"mid") < COUNT
    [reply] = scene.replies()
    assert reply.map == {"committed": True, "messages": COUNT}
    await scene.close()


@pytest.mark.requirement("PIP-13")
async def test_the_batch_of_a_commit_has_all_of_it() -> None:
    """Messages, the ends of all attempts, and the number of the batch are in one commit."""
    scene = Scene()
    await scene.stage(attempt=1, count=100)
    await scene.stage()
    begun = len(scene.store.commits)
    scene.commit()
    await scene.until(lambda: len(scene.store.commits) > begun)
    [batch] = scene.store.commits[begun:]
    assert [each.encoded[-3:] for each in batch.appended if each is not None] == BODIES
    assert len(batch.removed) == COUNT + 100
    assert batch.stages is not None
    assert [int(sink.batch) for sink in batch.stages.sinks.values()] == [0]
    assert len(batch.stages.removed) == 2
    await scene.durable()
    assert await scene.stored() == (0, COUNT)
    queue = scene.broker.queue()
    assert (queue.contents(), queue.staged, queue.staged_bytes) == (COUNT, 0, 0)
    await scene.close()


@pytest.mark.requirement("PIP-13")
async def test_the_same_commit_again_meanwhile_is_answered_after_it() -> None:
    scene = Scene()
    await scene.stage()
    begun = len(scene.store.commits)
    scene.commit()
    await in_the_middle(scene)
    scene.commit()
    await scene.until(lambda: len(scene.store.commits) > begun)
    for _ in range(10):
        await asyncio.sleep(0)
    assert scene.replies() == []
    replies = await scene.answers(2)
    assert sorted(reply.map["committed"] is True for reply in replies) == [False, True]
    assert await scene.stored() == (0, COUNT)
    await scene.close()


@pytest.mark.requirement("PIP-13")
async def test_a_queue_that_is_deleted_during_a_commit_keeps_nothing() -> None:
    scene = Scene()
    await scene.stage()
    scene.commit()
    await in_the_middle(scene)
    operator = Manager(scene.broker, "operator")
    operator.send(request("DELETE", "queue", "q"))
    assert [reply.status for reply in await scene.answers()] == [200]
    assert await scene.stored() == (0, 0)
    assert "q" not in scene.broker.router.queues
    await scene.close()


async def broken_off(scene: Scene) -> tuple[int, int]:
    """Cancel what is under way; return what the store has, once the broker has ended for it."""
    await scene.tasks.end(cancel=True)
    with pytest.raises(StoreError, match="half-way"):
        await asyncio.wait_for(scene.running, 10)
    assert scene.replies() == []
    return await scene.stored()


@pytest.mark.requirement("PIP-13", "PRD-03")
async def test_a_commit_that_is_broken_off_is_not_written() -> None:
    scene = Scene()
    await scene.stage()
    scene.commit()
    await in_the_middle(scene)
    assert await broken_off(scene) == (COUNT, 0)


DROPS = [
    # the operation, its arguments, how many messages are left
    ("ABORT", {"batch": 0}, 0),
    ("FORGET", {}, 0),
    ("TRIM", {"batch": 0, "partition": Int(0), "attempt": 0, "count": 10}, 10),
]


@pytest.mark.parametrize(("operation", "arguments", "left"), DROPS)
@pytest.mark.requirement("PIP-13")
async def test_dropping_staged_messages_is_one_commit_in_stretches(
    operation: str, arguments: dict[str, object], left: int
) -> None:
    scene = Scene()
    await scene.stage()
    begun = len(scene.store.commits)
    scene.manager.send(request(operation, "sink", "o", body=arguments))
    queue = scene.broker.queue()
    assert await scene.until(lambda: queue.staged == left) > COUNT // 64
    await scene.until(lambda: len(scene.store.commits) > begun)
    [batch] = scene.store.commits[begun:]
    assert len(batch.removed) == COUNT - left
    assert (scene.replies(), await scene.stored()) == ([], (COUNT, 0))
    assert [reply.map for reply in await scene.answers()] == [{"messages": COUNT - left}]
    assert await scene.stored() == (left, 0)
    await scene.close()


@pytest.mark.parametrize(("operation", "arguments", "left"), DROPS)
@pytest.mark.requirement("PIP-13", "PRD-03")
async def test_dropping_that_is_broken_off_drops_nothing(
    operation: str, arguments: dict[str, object], left: int
) -> None:
    scene = Scene()
    await scene.stage()
    scene.manager.send(request(operation, "sink", "o", body=arguments))
    queue = scene.broker.queue()
    await scene.until(lambda: queue.staged < COUNT)
    assert queue.staged > left
    assert await broken_off(scene) == (COUNT, 0)


async def leased() -> Scene:
    """Return a broker whose lease `l` has all messages in its batch 1."""
    scene = Scene()
    await scene.stage()
    scene.commit()
    await scene.answers()
    scene.lease("OPEN", address="q")
    await scene.answers()
    scene.lease("ACQUIRE", fencing_token=1, batch=1, max_messages=COUNT, wait_ms=1000)
    [reply] = await scene.answers()
    assert reply.map["messages"] == COUNT
    return scene


@pytest.mark.requirement("PIP-01")
async def test_a_settlement_is_one_commit() -> None:
    scene = await leased()
    begun = len(scene.store.commits)
    scene.lease("SETTLE", fencing_token=1, batch=1)
    queue = scene.broker.queue()
    turns = await scene.until(lambda: queue.state.acquired == 0)
    assert turns > COUNT // (2 * broker.management.stretches.PORTION)
    await scene.until(lambda: len(scene.store.commits) > begun)
    [batch] = scene.store.commits[begun:]
    assert len(batch.removed) == COUNT
    assert batch.leases is not None
    assert (scene.replies(), await scene.stored()) == ([], (0, COUNT))
    assert [reply.map for reply in await scene.answers()] == [{"settled": 1}]
    assert await scene.stored() == (0, 0)
    await scene.close()


@pytest.mark.requirement("PIP-01", "PRD-03")
async def test_a_settlement_that_is_broken_off_is_not_written() -> None:
    scene = await leased()
    scene.lease("SETTLE", fencing_token=1, batch=1)
    queue = scene.broker.queue()
    await scene.until(lambda: queue.state.acquired < COUNT)
    assert queue.state.acquired > 0
    assert await broken_off(scene) == (0, COUNT)


@pytest.mark.requirement("PIP-01", "PRD-03")
async def test_a_settlement_that_is_cancelled_before_its_first_step_is_not_written() -> None:
    scene = await leased()
    scene.lease("SETTLE", fencing_token=1, batch=1)
    assert scene.broker.queue().state.acquired == COUNT, "it has begun"
    assert await broken_off(scene) == (0, COUNT)


@pytest.mark.requirement("PIP-01")
async def test_the_end_of_a_lease_during_a_settlement_returns_nothing() -> None:
    scene = await leased()
    receiver = scene.receiver()
    scene.lease("SETTLE", fencing_token=1, batch=1)
    scene.lease("RELEASE", fencing_token=1)
    replies = await scene.answers(2)
    assert [reply.map for reply in replies] == [{"settled": 1}, {"messages": 0}]
    assert (bodies(receiver), await scene.stored()) == ([], (0, 0))
    await scene.close()


@pytest.mark.requirement("PIP-01")
async def test_a_queue_that_is_deleted_during_a_settlement_leaves_nothing() -> None:
    scene = await leased()
    scene.lease("SETTLE", fencing_token=1, batch=1)
    await asyncio.sleep(0)
    operator = Manager(scene.broker, "operator")
    operator.send(request("DELETE", "queue", "q"))
    await scene.durable()
    await scene.until(scene.broker.journal.is_idle)
    assert [reply.map for reply in scene.replies()] == [{"settled": 1}]
    assert await scene.stored() == (0, 0)
    assert scene.broker.router.memory.durable == 0
    await scene.close()
