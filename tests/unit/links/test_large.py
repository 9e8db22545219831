"""Large messages: through the store, byte for byte, completely or not at all."""

from __future__ import annotations

import pytest

from broker.amqp.decode import take_value
from broker.amqp.errors import DECODE_ERROR, INTERNAL_ERROR, RESOURCE_LIMIT_EXCEEDED
from broker.amqp.limits import STREAMED_FROM, UNSAVED_BYTES_MAX, Limits
from broker.amqp.outcomes import (
    ACCEPTED,
    Accepted,
    Modified,
    Rejected,
    Released,
    TransactionalState,
)
from broker.amqp.performatives import RECEIVER, SND_SETTLED, Detach, Flow
from broker.amqp.sections import split
from broker.amqp.terminus import COPY, Source
from broker.amqp.types import Map, Symbol, UInt
from broker.links.credited_producer import BYTES_AHEAD
from broker.links.large import AHEAD, BEGINNING
from broker.routing.addresses.policy import AddressPolicy
from storage.contents import CHUNK_SIZE
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, Transfer, body_of, header_of, message
from tests.support.large import FRAME, SIZE, StreamingBroker, large, pieces, received
from tests.support.stored import stored_messages
from tests.support.transactions import COORDINATOR_HANDLE, Controller, discharge


def sender(streaming: StreamingBroker, address: str = "q", **fields: object) -> Client:
    client = streaming.broker.session("sender")
    client.attach_sender(address, **fields)
    return client


def receiver(streaming: StreamingBroker, address: str = "q", **fields: object) -> Client:
    client = streaming.broker.session("receiver")
    client.attach_receiver(address, credit=10, **fields)
    return client


def bytes_of(transfers: list[Transfer]) -> bytes:
    assert {(each.handle, each.delivery_id, each.tag) for each in transfers} == {
        (transfers[0].handle, transfers[0].delivery_id, transfers[0].tag)
    }
    return b"".join(each.payload for each in transfers)


def annotations_of(payload: bytes) -> dict[str, object]:
    sections = split(payload, 0, len(payload))
    value, _ = take_value(payload, sections.message_annotations, len(payload))
    assert isinstance(value, Map)
    return {str(key.text): each for key, each in value.pairs if isinstance(key, Symbol)}


def outcome(client: Client, kind: type[object]) -> object:
    answer = client.expect_last(Disposition)
    assert isinstance(answer.state, kind), answer.state
    return answer.state


async def accept(streaming: StreamingBroker, client: Client, number: int = 0) -> None:
    client.send(Disposition(role=RECEIVER, first=number, last=number, settled=True, state=ACCEPTED))
    await streaming.work()


@pytest.mark.requirement("PRD-05")
@pytest.mark.parametrize("durable", [True, False], ids=["durable", "not durable"])
async def test_a_large_message_arrives_as_it_was_sent(durable: bool) -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, body = large(durable=durable, subject="big")
        client.send(*pieces(payload))
        await streaming.work()
        outcome(client, Accepted)
        consumer = receiver(streaming)
        delivered = bytes_of(await received(streaming, consumer))
        assert body_of(delivered) == body
        assert header_of(delivered)[0] is durable
        await accept(streaming, consumer)
        assert await streaming.swept() == 0
        assert await stored_messages(streaming.store, "q") == []


@pytest.mark.requirement("PRD-03")
async def test_it_is_accepted_once_all_of_it_is_on_disk() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(durable=True)
        client.send(*pieces(payload))
        client.expect_nothing()
        await streaming.work()
        outcome(client, Accepted)
        (stored,) = await stored_messages(streaming.store, "q")
        assert stored.content is not None
        assert len(stored.content.beginning) == BEGINNING
        assert stored.content.size == SIZE + 8
        assert await streaming.store.chunks() == -(-(SIZE + 8) // CHUNK_SIZE)


async def test_nobody_gets_it_before_it_is_on_disk() -> None:
    async with StreamingBroker() as streaming:
        consumer = receiver(streaming)
        client = sender(streaming)
        payload, body = large()
        client.send(*pieces(payload))
        consumer.expect_nothing()
        assert body_of(bytes_of(await received(streaming, consumer))) == body


async def test_what_comes_behind_it_stays_behind_it() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, body = large()
        client.send(*pieces(payload))
        client.transfer(1, b"small")
        await streaming.work()
        consumer = receiver(streaming)
        assert body_of(bytes_of(await received(streaming, consumer))) == body
        assert body_of(bytes_of(await received(streaming, consumer))) == b"small"


async def test_a_sender_that_is_faster_than_the_disk_is_not_read_from() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(2 * STREAMED_FROM + UNSAVED_BYTES_MAX)
        sent = 0
        for piece in pieces(payload):
            client.send(piece)
            sent += len(piece.payload)
            if client.transport.paused:
                break
        assert STREAMED_FROM < sent <= STREAMED_FROM + UNSAVED_BYTES_MAX + CHUNK_SIZE + FRAME
        await streaming.work()
        client.send(*pieces(payload)[-(-sent // FRAME) :])
        await streaming.work()
        outcome(client, Accepted)
        assert not client.transport.paused, "it is read from again"


async def test_whoever_waits_for_the_disk_is_not_idle_however_long_that_takes() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(4 * STREAMED_FROM)
        frames = pieces(payload)
        while not client.transport.paused:
            client.send(frames.pop(0))
        streaming.broker.advance(3_600_000)
        assert not client.is_closed()
        await streaming.work()
        client.send(*frames)
        await streaming.work()
        outcome(client, Accepted)
        streaming.broker.advance(Limits().idle_time_out_ms)
        client.expect_close(RESOURCE_LIMIT_EXCEEDED)


async def test_a_large_message_takes_no_room_for_unfinished_deliveries() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(4 * STREAMED_FROM)
        for piece in pieces(payload)[:-1]:
            client.send(piece)
            await streaming.work()
        connection = client.peer.connection
        connection.hold_partial(connection.limits.partial_bytes_max)


@pytest.mark.attack("R10")
@pytest.mark.parametrize("share", [1, 50, 99])
@pytest.mark.parametrize("end", ["aborted", "detached", "hung up"])
async def test_half_a_message_leaves_nothing(share: int, end: str) -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        consumer = receiver(streaming)
        payload, _ = large(8 * STREAMED_FROM)
        frames = pieces(payload)
        for frame in frames[: max(1, len(frames) * share // 100)]:
            client.send(frame)
        await streaming.work()
        if end == "aborted":
            client.send(Transfer(delivery_id=None, tag=None, aborted=True))
        elif end == "detached":
            client.send(Detach(handle=0, closed=True))
        else:
            client.hang_up()
        await streaming.work()
        assert await streaming.swept() == 0
        consumer.expect_nothing()
        assert streaming.broker.queue().contents() == 0


async def test_what_is_malformed_far_behind_its_beginning_is_rejected() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(durable=True)
        client.send(*pieces(payload + b"no section"))
        await streaming.work()
        rejected = outcome(client, Rejected)
        assert isinstance(rejected, Rejected)
        assert rejected.error is not None
        assert rejected.error.condition == DECODE_ERROR
        assert await streaming.swept() == 0


async def test_a_message_that_ends_within_its_body_is_rejected() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large()
        client.send(*pieces(payload[:-1]))
        await streaming.work()
        outcome(client, Rejected)
        assert await streaming.swept() == 0


async def test_a_body_that_begins_too_late_is_rejected() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(annotations={"x": "y" * STREAMED_FROM})
        client.send(*pieces(payload))
        await streaming.work()
        rejected = outcome(client, Rejected)
        assert isinstance(rejected, Rejected)
        assert rejected.error is not None
        assert rejected.error.condition == RESOURCE_LIMIT_EXCEEDED


async def test_every_subscriber_gets_the_one_body() -> None:
    async with StreamingBroker() as streaming:
        consumers = [streaming.broker.session(name) for name in ("one", "two")]
        for consumer in consumers:
            consumer.attach_receiver("t", credit=1, kind="topic")
        client = sender(streaming, "t", kind="topic")
        payload, body = large()
        client.send(*pieces(payload))
        for consumer in consumers:
            assert body_of(bytes_of(await received(streaming, consumer))) == body
        assert await streaming.swept() == -(-(SIZE + 8) // CHUNK_SIZE)
        for consumer in consumers:
            await accept(streaming, consumer)
        assert await streaming.swept() == 0


@pytest.mark.requirement("RCV-01")
async def test_it_is_delivered_again_with_new_annotations() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, body = large(durable=True)
        client.send(*pieces(payload))
        consumer = receiver(streaming)
        await received(streaming, consumer)
        modified = Modified(
            delivery_failed=True, message_annotations=b"\xc1\x07\x02\xa3\x01a\xa1\x01b"
        )
        consumer.send(Disposition(role=RECEIVER, first=0, last=0, settled=True, state=modified))
        again = bytes_of(await received(streaming, consumer))
        assert body_of(again) == body
        assert header_of(again)[4] == UInt(1)
        assert annotations_of(again) == {"a": "b"}
        (stored,) = await stored_messages(streaming.store, "q")
        assert stored.content is not None
        assert len(stored.encoded) < 100


async def test_it_is_moved_to_the_dead_letters_without_being_written_again() -> None:
    async with StreamingBroker(
        AddressPolicy(max_delivery_count=1, dead_letter="dead")
    ) as streaming:
        client = sender(streaming)
        payload, body = large(durable=True)
        client.send(*pieces(payload))
        consumer = receiver(streaming)
        await received(streaming, consumer)
        written = await streaming.store.chunks()
        failed = Modified(delivery_failed=True)
        consumer.send(Disposition(role=RECEIVER, first=0, last=0, settled=True, state=failed))
        await streaming.work()
        assert await streaming.swept() == written
        dead = streaming.broker.session("undertaker")
        dead.attach_receiver("dead", credit=1)
        moved = bytes_of(await received(streaming, dead))
        assert body_of(moved) == body
        assert "x-opt-dead-letter-reason" in annotations_of(moved)


async def test_a_browser_gets_a_copy_while_it_stays() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, body = large()
        client.send(*pieces(payload))
        await streaming.work()
        browser = receiver(streaming, source=Source(address="q", distribution_mode=COPY))
        assert body_of(bytes_of(await received(streaming, browser))) == body
        assert streaming.broker.queue().contents() == 1


async def test_one_that_goes_settled_is_read_to_its_end() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, body = large(durable=True)
        client.send(*pieces(payload))
        await streaming.work()
        consumer = receiver(streaming, snd_settle_mode=SND_SETTLED)
        assert await streaming.store.sweep() is False
        assert body_of(bytes_of(await received(streaming, consumer))) == body
        assert await streaming.swept() == 0


async def test_a_receiver_that_leaves_in_the_middle_gives_it_back() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, body = large()
        client.send(*pieces(payload))
        await streaming.work()
        consumer = streaming.broker.connect("receiver")
        consumer.begin(incoming_window=1)
        consumer.attach_receiver("q", credit=1)
        await streaming.work()
        consumer.hang_up()
        await streaming.work()
        assert streaming.broker.queue().contents() == 1
        assert body_of(bytes_of(await received(streaming, receiver(streaming)))) == body


async def test_only_a_few_chunks_are_read_ahead() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(20 * CHUNK_SIZE)
        client.send(*pieces(payload))
        await streaming.work()
        consumer = receiver(streaming)
        consumer.transport.data.clear()
        consumer.peer.connection.output_blocked()
        read: list[int] = []
        original = streaming.store.read_chunk

        async def counted(content: int, index: int) -> bytes:
            read.append(index)
            return await original(content, index)

        streaming.store.read_chunk = counted  # type: ignore[method-assign]
        await streaming.work()
        assert len(read) <= AHEAD + 1


async def test_a_damaged_chunk_ends_the_link_and_nobody_gets_the_message() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(durable=True)
        client.send(*pieces(payload))
        client.transfer(1, b"sound")
        await streaming.work()
        streaming.store.damaged.add((1, 3))
        consumer = receiver(streaming)
        await streaming.work()
        consumer.flow(incoming_window=1000)
        await streaming.work()
        frames = [frame.body for frame in consumer.frames()]
        *sent, aborted, detach = frames
        assert all(isinstance(each, Transfer) and each.more for each in sent)
        assert isinstance(aborted, Transfer)
        assert aborted.aborted
        assert isinstance(detach, Detach)
        assert detach.error is not None
        assert detach.error.condition == INTERNAL_ERROR
        queue = streaming.broker.queue()
        assert (queue.backlogs.waiting, queue.state.acquired) == (1, 0)
        noted = [each.contents.quarantined for each in streaming.store.commits if each.contents]
        assert [number for notes in noted for number, _ in notes] == [1]
        assert streaming.broker.stats.quarantined == 1
        streaming.broker.container.run_round()
        assert any("quarantined" in event for event in streaming.broker.watcher.events)
        assert body_of(bytes_of(await received(streaming, receiver(streaming)))) == b"sound"


async def test_one_that_was_settled_too_early_is_gone_though_it_is_damaged() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(durable=True)
        client.send(*pieces(payload))
        await streaming.work()
        streaming.store.damaged.add((1, 4))
        consumer = streaming.broker.connect("receiver")
        consumer.begin(incoming_window=1)
        consumer.attach_receiver("q", credit=1)
        consumer.flow(incoming_window=1)
        await streaming.work()
        await accept(streaming, consumer)
        consumer.flow(incoming_window=1000)
        await streaming.work()
        last = consumer.bodies()[-1]
        assert isinstance(last, Detach)
        queue = streaming.broker.queue()
        assert (queue.backlogs.waiting, queue.state.acquired) == (0, 0)
        noted = [each.contents.quarantined for each in streaming.store.commits if each.contents]
        assert not any(noted)
        assert await streaming.swept() == 0


async def test_where_the_store_keeps_no_contents_it_stays_in_memory() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender("q")
    payload, body = large()
    client.send(*pieces(payload))
    assert client.expect(Flow).link_credit == BYTES_AHEAD // len(payload)
    outcome(client, Accepted)
    consumer = broker.session("receiver")
    consumer.attach_receiver("q", credit=1)
    transfers = [frame.body for frame in consumer.frames()]
    assert (
        body_of(b"".join(each.payload for each in transfers if isinstance(each, Transfer))) == body
    )


async def test_a_released_one_comes_again() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, body = large()
        client.send(*pieces(payload))
        consumer = receiver(streaming)
        for number in range(2):
            assert body_of(bytes_of(await received(streaming, consumer))) == body
            released = Disposition(
                role=RECEIVER, first=number, last=number, settled=True, state=Released()
            )
            consumer.send(released)


@pytest.mark.requirement("RCV-06")
@pytest.mark.parametrize("fails", [False, True], ids=["committed", "rolled back"])
async def test_it_is_part_of_its_transaction(fails: bool) -> None:
    """Its bytes are not in memory, so they do not count for `transaction_bytes_max`."""
    limits = Limits(transaction_bytes_max=STREAMED_FROM)
    async with StreamingBroker(limits=limits) as streaming:
        controller = Controller(streaming.broker)
        client = controller.client
        client.attach_sender("q", handle=1)
        txn_id = controller.declare()
        payload, body = large(durable=True)
        within = TransactionalState(txn_id=txn_id)
        client.send(*pieces(payload, number=controller.sent, handle=1, state=within))
        controller.sent += 1
        await streaming.work()
        answer = client.expect_last(Disposition)
        assert isinstance(answer.state, TransactionalState)
        assert isinstance(answer.state.outcome, Accepted)
        assert "q" not in streaming.broker.router.queues or not streaming.broker.queue().contents()
        number = controller.transfer(discharge(txn_id, fail=fails), COORDINATOR_HANDLE)
        await streaming.work()
        assert isinstance(controller.answer(number), Accepted)
        published = streaming.broker.stats.published_bytes
        assert published == (0 if fails else streaming.broker.queue().state.bytes)
        if fails:
            assert await streaming.swept() == 0
            return
        consumer = receiver(streaming)
        assert body_of(bytes_of(await received(streaming, consumer))) == body


async def test_one_that_expires_leaves_nothing() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(durable=True, ttl=1000)
        client.send(*pieces(payload))
        await streaming.work()
        streaming.broker.advance(2000)
        consumer = receiver(streaming)
        await streaming.work()
        consumer.expect_nothing()
        assert await streaming.swept() == 0


async def test_a_queue_that_is_deleted_leaves_nothing() -> None:
    async with StreamingBroker() as streaming:
        client = sender(streaming)
        payload, _ = large(durable=True)
        client.send(*pieces(payload))
        await streaming.work()
        broker = streaming.broker
        broker.router.delete(broker.queue(), broker.journal.batch)
        assert await streaming.swept() == 0


async def test_a_request_to_the_broker_is_not_that_large() -> None:
    async with StreamingBroker() as streaming:
        client = streaming.broker.session()
        client.attach_sender(None)
        payload, _ = large(to="$management")
        client.send(*pieces(payload))
        await streaming.work()
        outcome(client, Rejected)
        assert await streaming.swept() == 0


def test_what_streams_is_larger_than_what_lies_before_a_body() -> None:
    assert len(message(annotations={"x": "y" * 1000})) < STREAMED_FROM
