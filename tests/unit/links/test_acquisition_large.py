"""Large messages that transactions acquire: whole, aborted or damaged (core 4.4.3)."""

from __future__ import annotations

import pytest

from broker.amqp.errors import INTERNAL_ERROR
from broker.amqp.outcomes import ACCEPTED, Accepted, TransactionalState
from broker.amqp.performatives import SENDER, Detach
from tests.support.frames import Disposition, Transfer, body_of
from tests.support.large import SIZE, StreamingBroker, large, pieces, received
from tests.support.transactions import COORDINATOR_HANDLE, Controller, discharge

pytestmark = pytest.mark.requirement("RCV-06", "PRD-05")


async def acquiring(streaming: StreamingBroker) -> tuple[Controller, bytes, bytes]:
    """Return a controller whose link at handle 0 acquires a large message, its id and its body."""
    payload, body = large(durable=True)
    sender = streaming.broker.session("sender")
    sender.attach_sender("q")
    sender.send(*pieces(payload))
    await streaming.work()
    controller = Controller(streaming.broker)
    controller.client.attach_receiver("q")
    txn_id = controller.declare()
    controller.client.flow(
        handle=0, credit=1, delivery_count=0, properties={"txn-id": txn_id}, incoming_window=1
    )
    return controller, txn_id, body


async def test_a_large_message_is_acquired_whole() -> None:
    async with StreamingBroker() as streaming:
        controller, txn_id, body = await acquiring(streaming)
        came = await received(streaming, controller.client)
        assert isinstance(came[0].state, TransactionalState)
        assert came[0].state.txn_id == txn_id
        assert body_of(b"".join(each.payload for each in came)) == body
        assert len(body) == SIZE
        controller.retire(txn_id, 0, ACCEPTED)
        controller.transfer(discharge(txn_id), COORDINATOR_HANDLE)
        await streaming.work()
        (told,) = [each for each in controller.client.bodies() if isinstance(each, Disposition)]
        assert isinstance(told.state, Accepted)
        assert streaming.broker.queue().contents() == 0


async def test_a_rollback_aborts_a_large_message_that_is_being_read() -> None:
    async with StreamingBroker() as streaming:
        controller, txn_id, body = await acquiring(streaming)
        client = controller.client
        await streaming.work()
        first = client.expect(Transfer)
        assert first.more
        controller.transfer(discharge(txn_id, fail=True), COORDINATOR_HANDLE)
        client.flow(incoming_window=1000)
        aborted = [each for each in client.bodies() if isinstance(each, Transfer)][-1]
        assert aborted.aborted
        client.flow(handle=0, credit=1, delivery_count=1, properties={"txn-id": None})
        came = await received(streaming, client)
        assert came[0].state is None
        assert body_of(b"".join(each.payload for each in came)) == body


async def test_a_damaged_message_leaves_its_transaction() -> None:
    async with StreamingBroker() as streaming:
        streaming.store.damaged.add((1, 3))
        controller, txn_id, _ = await acquiring(streaming)
        client = controller.client
        client.flow(incoming_window=1000)
        detaches: list[Detach] = []
        while not detaches:
            await streaming.work()
            detaches = [each for each in client.bodies() if isinstance(each, Detach)]
        assert detaches[0].error is not None
        assert detaches[0].error.condition == INTERNAL_ERROR
        controller.transfer(discharge(txn_id, fail=True), COORDINATOR_HANDLE)
        answers = [each for each in client.bodies() if isinstance(each, Disposition)]
        assert [each.role is SENDER for each in answers] == [False]
        assert streaming.broker.queue().contents() == 0, "it is quarantined"
