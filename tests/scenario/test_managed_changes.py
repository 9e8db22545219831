"""A change that `$management` reports is on disk before the report: a kill cannot undo it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest

from broker.amqp.types import Timestamp
from broker.management.message_scan import identity_of
from storage.api import StoreError
from tests.scenario.test_durable_messages import Journaled
from tests.support.frames import Transfer, message
from tests.support.management import Manager, Reply, read_reply, request
from tests.support.subscriptions import subscribing

SCHEDULED_IN_MS = 60_000


class Managed(Journaled):
    """A store with a message in `q`, a scheduled one, and a third in a subscription."""

    def __init__(self) -> None:
        super().__init__()
        self.manager = Manager(self.broker)

    async def fill(self) -> None:
        """Create all of it, and wait until it is on disk."""
        subscriber = self.broker.session("subscriber")
        subscriber.send(subscribing("durable"))
        at = Timestamp(int(self.broker.clock.wall_ms()) + SCHEDULED_IN_MS)
        later = message(durable=True, annotations={"x-opt-delivery-time": at})
        self.client.transfer(0, payload=message(durable=True))
        self.client.transfer(1, payload=later)
        publisher = self.broker.session("publisher")
        publisher.attach_sender("t", kind="topic")
        publisher.transfer(0, payload=message(durable=True))
        self.manager.send(request("CREATE", "queue", "other"))
        while not self.broker.journal.is_idle():
            await self.work()
            self.store.let_all_through()
        subscriber.hang_up()
        self.replies()

    def replies(self) -> list[Reply]:
        """Return the replies that the manager has received since the last call."""
        bodies = self.manager.client.bodies()
        return [read_reply(body.payload) for body in bodies if isinstance(body, Transfer)]


@pytest.fixture
async def managed() -> AsyncIterator[Managed]:
    managed = Managed()
    await managed.fill()
    yield managed
    await managed.stop()


IN_Q: Mapping[str, object] = {"queue": "q", "all": True}

CHANGES = [
    pytest.param(request("CREATE", "queue", "new"), 201, id="create a queue"),
    pytest.param(request("CREATE", "topic", "new"), 201, id="create a topic"),
    pytest.param(request("DELETE", "queue", "q"), 204, id="delete a queue"),
    pytest.param(request("DELETE", "topic", "t"), 204, id="delete a topic"),
    pytest.param(request("PURGE", "queue", "q"), 200, id="purge a queue"),
    pytest.param(request("PURGE", "topic", "t"), 200, id="purge a topic"),
    pytest.param(request("DELETE", "message", body=IN_Q), 200, id="delete messages"),
    pytest.param(request("MOVE", "message", body={**IN_Q, "to": "other"}), 200, id="move"),
    pytest.param(request("DELETE", "subscription", "n"), 204, id="unsubscribe"),
    pytest.param(request("PURGE", "subscription", "n"), 200, id="purge a subscription"),
]


@pytest.mark.requirement("PRD-03")
@pytest.mark.parametrize(("asked", "status"), CHANGES)
async def test_the_answer_comes_with_the_commit(
    managed: Managed, asked: bytes, status: int
) -> None:
    committed = len(managed.store.commits)
    managed.manager.send(asked)
    await managed.work()
    assert managed.replies() == []
    (batch,) = managed.store.commits[committed:]
    assert batch.changes_others(), "nothing was to be written"
    managed.store.let_through()
    await managed.work()
    (reply,) = managed.replies()
    assert reply.status == status, reply.description


async def test_what_is_cancelled_is_told_with_the_commit(managed: Managed) -> None:
    (scheduled,) = managed.broker.queue().state.scheduled()
    number = identity_of(scheduled)
    managed.manager.send(request("CANCEL", "message", body={"queue": "q", "identities": [number]}))
    await managed.work()
    assert managed.replies() == []
    managed.store.let_through()
    await managed.work()
    (reply,) = managed.replies()
    assert reply.map["cancelled"] == 1


async def test_what_the_disk_did_not_take_is_never_told(managed: Managed) -> None:
    managed.manager.send(request("DELETE", "queue", "q"))
    await managed.work()
    managed.store.let_through(failing=True)
    with pytest.raises(StoreError):
        await managed.committing
    managed.broker.container.run_round()
    assert managed.replies() == []


async def test_answers_come_in_the_order_of_the_requests(managed: Managed) -> None:
    managed.manager.send(request("DELETE", "queue", "q", correlation_id="first"))
    await managed.work()
    managed.manager.send(request("READ", "queue", "other", correlation_id="second"))
    await managed.work()
    assert managed.replies() == []
    managed.store.let_through()
    await managed.work()
    told = [(reply.correlation_id, reply.status) for reply in managed.replies()]
    assert told == [("first", 204), ("second", 200)]
