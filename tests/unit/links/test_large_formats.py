"""Large messages of other formats through the store, whether they consist of sections or not."""

from __future__ import annotations

import pytest

from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX
from broker.amqp.outcomes import Accepted, Rejected
from broker.amqp.sections import split
from tests.support.broker import Client
from tests.support.frames import Disposition, Transfer, message
from tests.support.large import SIZE, StreamingBroker, large, pieces, received
from tests.support.stored import stored_messages

BATCH = 0x8001_3700

READABLE = large(ttl=60_000, subject="big")[0]

OPAQUE = {
    "no section at all": b"\x01" * SIZE,
    "a section that is none of the body": READABLE + b"\x00\x53\x70\x45",
    "the end is missing": READABLE[:-1],
    "a body that begins too late": message(
        bytes(SIZE), annotations={"x-opt-a": bytes(SECTIONS_BEFORE_BODY_MAX)}
    ),
}


async def sent(streaming: StreamingBroker, payload: bytes, message_format: int) -> Client:
    client = streaming.broker.session("ada")
    client.attach_sender("q")
    client.send(*pieces(payload, message_format=message_format))
    await streaming.work()
    return client


async def taken(streaming: StreamingBroker) -> list[Transfer]:
    client = streaming.broker.session("eve")
    client.attach_receiver("q", credit=1)
    frames = await received(streaming, client)
    client.hang_up()
    return frames


@pytest.mark.parametrize("payload", [pytest.param(each, id=name) for name, each in OPAQUE.items()])
async def test_what_cannot_be_read_is_kept_as_it_is(payload: bytes) -> None:
    async with StreamingBroker() as streaming:
        client = await sent(streaming, payload, BATCH)
        assert isinstance(client.expect_last(Disposition).state, Accepted)
        (stored,) = await stored_messages(streaming.store, "q")
        assert (stored.opaque, stored.durable, stored.message_format) == (True, True, BATCH)
        assert stored.content is not None
        assert len(stored.encoded) + stored.content.size == len(payload)
        for _ in range(2):
            frames = await taken(streaming)
            assert b"".join(each.payload for each in frames) == payload
            assert {each.message_format for each in frames} == {BATCH}


@pytest.mark.parametrize("payload", [pytest.param(each, id=name) for name, each in OPAQUE.items()])
async def test_of_the_usual_format_it_is_refused(payload: bytes) -> None:
    async with StreamingBroker() as streaming:
        client = await sent(streaming, payload, 0)
        assert isinstance(client.expect_last(Disposition).state, Rejected)
        assert await streaming.swept() == 0


async def test_sections_of_another_format_are_read() -> None:
    async with StreamingBroker() as streaming:
        await sent(streaming, READABLE, BATCH)
        frames = await taken(streaming)
        assert {each.message_format for each in frames} == {BATCH}
        whole = b"".join(each.payload for each in frames)
        found = split(whole, 0, len(whole))
        assert (found.ttl, found.subject(whole)) == (60_000, "big")
        assert len(frames) > 1


async def test_a_delivery_that_is_broken_off_keeps_its_format() -> None:
    async with StreamingBroker() as streaming:
        await sent(streaming, OPAQUE["no section at all"], BATCH)
        streaming.store.damaged.add((1, 1))
        client = streaming.broker.session("eve")
        client.attach_receiver("q", credit=1)
        await streaming.work()
        frames = [each for each in client.bodies() if isinstance(each, Transfer)]
        assert frames[-1].aborted
        assert {each.message_format for each in frames} == {BATCH}
