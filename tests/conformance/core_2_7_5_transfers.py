"""Core 2.7.5 and 2.6.12, deliveries from the broker: the required fields of its transfers."""

from __future__ import annotations

from broker.amqp import serial
from broker.amqp.outcomes import ACCEPTED
from broker.amqp.performatives import (
    RCV_FIRST,
    RCV_SECOND,
    SENDER,
    SND_SETTLED,
    SND_UNSETTLED,
)

from .conversation import Conversation
from .frames import Disposition, Transfer
from .harness import case
from .messages import body_of
from .session import Receiver
from .steps import bodies, connected_session, must, put, received, waiting
from .verdict import Kind, NotApplicable


async def receiver_of(peer: Conversation, *messages: bytes, **fields: object) -> Receiver:
    """Return a link to receive on, from a queue with `messages`."""
    session = await connected_session(peer)
    await put(session, *messages)
    return await session.attach_receiver("", **fields)


@case("core", "2.7.3", "A broker that sends says its initial-delivery-count in its attach.")
async def attach_of_a_sending_broker_has_initial_delivery_count(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    assert receiver.remote_attach is not None
    count = receiver.remote_attach.initial_delivery_count
    must(count >= 0, "an initial-delivery-count", "none")


@case("core", "2.7.5", "Every delivery of the broker's begins with a delivery-id, tag and format.")
async def deliveries_have_id_tag_and_format(peer: Conversation) -> None:
    receiver = await receiver_of(peer, b"1", b"2", b"3")
    for delivery in await received(receiver, 3):
        must(delivery.delivery_id is not None, "a delivery-id", delivery)
        must(delivery.tag is not None and len(delivery.tag) <= 32, "a tag", delivery.tag)
        must(delivery.message_format is not None, "a message-format", delivery)
        must(not delivery.resume and not delivery.aborted, "a plain delivery", delivery)


@case("core", "2.6.12", "Tags of deliveries that are unsettled on one link all differ.")
async def tags_differ_while_unsettled(peer: Conversation) -> None:
    receiver = await receiver_of(peer, *[b"x"] * 20)
    tags = {delivery.tag for delivery in await received(receiver, 20)}
    must(len(tags) == 20, "twenty tags", len(tags))


@case("jms", "13.8", "The broker's delivery-ids are consecutive over all links of a session.")
async def delivery_ids_are_consecutive_over_all_links(peer: Conversation) -> None:
    one = await receiver_of(peer, b"1", b"2", b"3", b"4")
    two = await one.session.attach_receiver()
    ids = []
    for link in (one, two, one, two):
        delivery = (await received(link, 1))[0]
        assert delivery.delivery_id is not None
        ids.append(delivery.delivery_id)
    wanted = [serial.add(ids[0], step) for step in range(4)]
    must(ids == wanted, f"delivery-ids {wanted}", ids)


@case("core", "2.7.5", "On a link with snd-settle-mode unsettled every delivery is unsettled.")
async def unsettled_mode_is_kept(peer: Conversation) -> None:
    receiver = await receiver_of(peer, b"1", snd_settle_mode=SND_UNSETTLED)
    assert receiver.remote_attach is not None
    if receiver.remote_attach.snd_settle_mode != SND_UNSETTLED:
        raise NotApplicable(
            "the broker does not agree to snd-settle-mode unsettled", Kind.NOT_OFFERED
        )
    delivery = (await received(receiver, 1))[0]
    must(not delivery.settled, "an unsettled transfer", delivery)


@case("core", "2.7.5", "On a link with snd-settle-mode settled every delivery is settled.")
async def settled_mode_is_kept(peer: Conversation) -> None:
    receiver = await receiver_of(peer, b"1", b"2", snd_settle_mode=SND_SETTLED)
    assert receiver.remote_attach is not None
    if receiver.remote_attach.snd_settle_mode != SND_SETTLED:
        raise NotApplicable(
            "the broker does not agree to snd-settle-mode settled", Kind.NOT_OFFERED
        )
    for delivery in await received(receiver, 2):
        must(delivery.settled is True, "a settled transfer", delivery)
    await receiver.detach()
    left = await waiting(receiver.session)
    must(left == [], "nothing left after settled transfers", left)


@case("core", "2.6.14", "A message larger than our max-frame-size comes in several frames.")
async def large_messages_come_in_frames_that_fit(peer: Conversation) -> None:
    await peer.open(max_frame_size=512)
    session = await peer.begin()
    large = bytes(range(256)) * 20
    await put(session, large)
    receiver = await session.attach_receiver()
    receiver.grant(1)
    frames: list[Transfer] = []
    while not frames or frames[-1].more:
        came = await peer.receive()
        must(len(came.raw) <= 512, "a frame of 512 bytes at most", len(came.raw))
        if isinstance(came.body, Transfer):
            frames.append(came.body)
    first = frames[0]
    must(body_of(b"".join(each.payload for each in frames)) == large, "the message", len(frames))
    for each in frames[1:]:
        must(each.delivery_id in (None, first.delivery_id), "the same delivery-id", each)
        must(each.tag in (None, first.tag), "the same tag", each)
        must(each.message_format in (None, first.message_format), "the same format", each)
        must(not each.settled, "unsettled on every frame", each)


@case("core", "2.6.14", "Deliveries of one link are not interleaved.")
async def deliveries_of_one_link_are_not_interleaved(peer: Conversation) -> None:
    await peer.open(max_frame_size=512)
    session = await peer.begin()
    await put(session, b"a" * 2000, b"b" * 2000)
    receiver = await session.attach_receiver()
    receiver.grant(2)
    came = [await receiver.receive(), await receiver.receive()]
    must(bodies(came) == [b"a" * 2000, b"b" * 2000], "one message after the other", len(came))


# -- settling second


async def second_mode(peer: Conversation, *messages: bytes) -> Receiver:
    """Return a link to receive on where the broker settles before us."""
    receiver = await receiver_of(peer, *messages, rcv_settle_mode=RCV_SECOND)
    assert receiver.remote_attach is not None
    if receiver.remote_attach.rcv_settle_mode != RCV_SECOND:
        raise NotApplicable(
            "the broker answers rcv-settle-mode second with first", Kind.NOT_OFFERED
        )
    return receiver


@case("core", "2.6.12", "An outcome that is not settled yet is settled by the broker.")
async def broker_settles_first_in_second_mode(peer: Conversation) -> None:
    receiver = await second_mode(peer, b"1")
    delivery = (await received(receiver, 1))[0]
    receiver.settle(delivery, settled=False)
    answer = await peer.expect(Disposition, role=SENDER, settled=True)
    must(answer.covers(delivery.delivery_id or 0), "the delivery", answer)
    receiver.settle(delivery)
    await receiver.detach()
    left = await waiting(receiver.session)
    must(left == [], "no message", left)


@case("core", "2.6.12", "A range of outcomes that are not settled yet is settled by the broker.")
async def broker_settles_a_range_first(peer: Conversation) -> None:
    receiver = await second_mode(peer, b"1", b"2", b"3")
    ids = [each.delivery_id or 0 for each in await received(receiver, 3)]
    told = Disposition(first=ids[0], last=ids[-1], settled=False, state=ACCEPTED)
    receiver.session.send(told)
    left = set(ids)
    while left:
        answer = await peer.expect(Disposition, role=SENDER, settled=True)
        left = {each for each in left if not answer.covers(each)}
    await receiver.detach()
    messages = await waiting(receiver.session)
    must(messages == [], "no message", messages)


@case("core", "2.7.3", "A rcv-settle-mode of the broker's answer is one that it keeps.")
async def first_mode_is_answered_with_first(peer: Conversation) -> None:
    receiver = await receiver_of(peer, b"1", rcv_settle_mode=RCV_FIRST)
    assert receiver.remote_attach is not None
    mode = receiver.remote_attach.rcv_settle_mode
    must(mode == RCV_FIRST, "rcv-settle-mode first, as we settle so", mode)
    receiver.settle((await received(receiver, 1))[0])
    await peer.expect_nothing()
