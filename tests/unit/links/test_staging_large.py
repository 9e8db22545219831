"""Large messages in a stage: their bodies stay in the store until they are committed."""

from __future__ import annotations

import pytest

from broker.amqp.outcomes import Accepted
from storage.stages import STAGED
from tests.support.frames import Disposition, body_of
from tests.support.large import SIZE, StreamingBroker, large, pieces, received
from tests.support.stored import stored_messages

PROPERTIES: dict[str, object] = {
    "stage-query": "orders",
    "stage-batch": 0,
    "stage-partition": 0,
    "stage-attempt": 0,
}


async def staged(streaming: StreamingBroker, *, durable: bool) -> bytes:
    """Stage a large message by a sender that then disconnects; return its body."""
    client = streaming.broker.session("sender")
    client.attach_sender(properties=PROPERTIES)
    payload, body = large(durable=durable)
    client.send(*pieces(payload))
    await streaming.work()
    assert isinstance(client.expect_last(Disposition).state, Accepted)
    client.hang_up()
    await streaming.work()
    await streaming.store.sweep()
    return body


@pytest.mark.requirement("PIP-12", "PIP-13")
@pytest.mark.parametrize("durable", [True, False], ids=["durable", "not durable"])
async def test_a_large_message_is_committed_as_it_was_sent(durable: bool) -> None:
    async with StreamingBroker() as streaming:
        body = await staged(streaming, durable=durable)
        assert streaming.broker.queue().staged_bytes > SIZE
        stages, journal = streaming.broker.router.staging_area, streaming.broker.journal
        (stage,) = stages.choose("orders", 0, [(0, 0, 1)])
        found = [stage.read(each) for each in await streaming.store.load(list(stage.numbers))]
        stages.begin_commit("orders", 0, [stage], batch=journal.batch)
        stages.publish(stage, found, journal.batch)
        stage.end(journal.batch)
        found.clear()
        streaming.broker.container.run_round()
        await streaming.work()
        await streaming.store.sweep()
        assert await stored_messages(streaming.store, STAGED) == []
        assert [each.durable for each in await stored_messages(streaming.store, "q")] == [durable]
        consumer = streaming.broker.session("receiver")
        consumer.attach_receiver(credit=10)
        delivered = b"".join(each.payload for each in await received(streaming, consumer))
        assert body_of(delivered) == body


@pytest.mark.requirement("PIP-14")
async def test_the_body_goes_with_its_stage() -> None:
    async with StreamingBroker() as streaming:
        await staged(streaming, durable=True)
        assert await streaming.store.chunks() > 0
        for stage in streaming.broker.router.staging_area.take_batch("orders", 0):
            stage.end(streaming.broker.journal.batch)
        streaming.broker.container.run_round()
        await streaming.work()
        await streaming.store.sweep()
        assert await streaming.store.chunks() == 0
