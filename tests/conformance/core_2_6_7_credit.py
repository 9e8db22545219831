"""Core 2.6.7 to 2.6.10, 2.7.4: credit, delivery-count, drain, echo and the fields of a flow."""

from __future__ import annotations

from typing import Final

from broker.amqp import serial
from broker.amqp.performatives import Begin, Detach, End, Flow

from .conversation import Conversation
from .frames import Transfer
from .harness import case
from .messages import body_of, message
from .session import Receiver, Session
from .steps import (
    bodies,
    connected_session,
    echo,
    expect_harmless,
    must,
    put,
    received,
    settled_all,
    waiting,
)
from .verdict import Failed, Kind, NotApplicable

TRANSFER_LIMIT_EXCEEDED: Final = "amqp:link:transfer-limit-exceeded"
WINDOW_VIOLATION: Final = "amqp:session:window-violation"
CREDIT_WORTH_EXCEEDING: Final = 5_000
NEARLY_ROUND: Final = 0xFFFF_FFFE


async def with_messages(peer: Conversation, count: int, **fields: object) -> Receiver:
    """Return a link to receive on, from a queue with `count` messages."""
    session = await connected_session(peer)
    await put(session, *[str(each).encode() for each in range(count)])
    return await session.attach_receiver("", **fields)


async def expect_drained(receiver: Receiver, delivery_count: int) -> None:
    """Check for a flow that gives up all credit: link-credit 0, drain, and `delivery_count`."""
    peer = receiver.session.peer
    flow = await peer.expect(Flow, skip=())
    while flow.handle != receiver.remote_handle or flow.link_credit != 0:
        flow = await peer.expect(Flow, skip=())
    said = (int(flow.delivery_count), flow.drain)
    must(said == (delivery_count, True), f"delivery-count {delivery_count} and drain", said)


async def link_flow(session: Session, handle: int) -> Flow:
    """Return the next flow for the broker's `handle`."""
    came = await session.peer.expect(Flow)
    while came.handle != handle:
        came = await session.peer.expect(Flow)
    return came


# -- credit


@case("core", "2.6.7", "Without credit no message comes.")
async def nothing_comes_without_credit(peer: Conversation) -> None:
    receiver = await with_messages(peer, 2)
    await peer.expect_nothing()
    came = await received(receiver, 2)
    must(bodies(came) == [b"0", b"1"], "both messages once there is credit", bodies(came))


@case("core", "2.6.7", "As many messages come as the credit says, and no more.")
async def credit_is_used_and_kept(peer: Conversation) -> None:
    receiver = await with_messages(peer, 5)
    came = await received(receiver, 2)
    must(bodies(came) == [b"0", b"1"], "the first two messages", bodies(came))
    await peer.expect_nothing()


@case("core", "2.6.7", "Credit granted twice is not added up.")
async def credit_is_not_added_up(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    receiver.grant(2)
    receiver.grant(2)
    await peer.expect_nothing()
    sender = await (await peer.begin(1)).attach_sender()
    await sender.credit(4)
    for _ in range(4):
        sender.transfer(message(), settled=True)
    for _ in range(2):
        await receiver.receive()
    await peer.expect_nothing()


@case("core", "2.6.7", "What the receiver had not seen when it gave credit is taken off it.")
async def credit_counts_from_the_delivery_count_in_the_flow(peer: Conversation) -> None:
    receiver = await with_messages(peer, 6)
    start = receiver.delivery_count
    await received(receiver, 2)
    receiver.session.flow(handle=receiver.handle, delivery_count=start, link_credit=3)
    await receiver.receive()
    await peer.expect_nothing()


@case("core", "2.6.7", "Credit given before the broker's attach was seen counts from its start.")
async def credit_without_delivery_count_counts_from_the_start(peer: Conversation) -> None:
    session = await connected_session(peer)
    await put(session, b"0", b"1", b"2")
    receiver = session.new_receiver()
    session.flow(handle=receiver.handle, link_credit=2)
    await receiver.expect_attached()
    for _ in range(2):
        await receiver.receive()
    await peer.expect_nothing()


@case("core", "2.6.7", "Credit that is taken back is not used any more.")
async def credit_may_be_taken_back(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    receiver.grant(10)
    receiver.grant(0)
    await peer.expect_nothing()
    await put(await peer.begin(1), b"late")
    await peer.expect_nothing()
    came = await received(receiver, 1)
    must(bodies(came) == [b"late"], "the message for new credit", bodies(came))


@case("core", "2.6.7", "Less credit than what came since it was given means none.")
async def credit_below_what_came_means_none(peer: Conversation) -> None:
    receiver = await with_messages(peer, 6)
    start = receiver.delivery_count
    await received(receiver, 3)
    receiver.session.flow(handle=receiver.handle, delivery_count=start, link_credit=1)
    await peer.expect_nothing()


@case("core", "2.6.7", "Links have credit of their own.")
async def links_have_credit_of_their_own(peer: Conversation) -> None:
    one = await with_messages(peer, 4)
    two = await one.session.attach_receiver()
    two.grant(1)
    await two.receive()
    await peer.expect_nothing()
    must(one.delivery_count == 0, "nothing on the link without credit", one.delivery_count)


@case("core", "2.6.7", "Settling gives no credit.")
async def settling_gives_no_credit(peer: Conversation) -> None:
    receiver = await with_messages(peer, 3)
    for delivery in await received(receiver, 2):
        receiver.settle(delivery)
    await peer.expect_nothing()


@case("reliability", "C15", "Credit of 2^31-1 lets everything come.")
async def extreme_credit_is_taken(peer: Conversation) -> None:
    receiver = await with_messages(peer, 3)
    receiver.grant(0x7FFF_FFFF)
    came = [await receiver.receive() for _ in range(3)]
    must(bodies(came) == [b"0", b"1", b"2"], "three messages", bodies(came))


@case("reliability", "C15", "Credit of 2^32-1, more than serial numbers can tell, does no harm.")
async def credit_beyond_serial_numbers_does_no_harm(peer: Conversation) -> None:
    receiver = await with_messages(peer, 3)
    receiver.grant(0xFFFF_FFFF)
    await expect_harmless(peer)


@case("reliability", "C15", "A receiver's delivery-count that never was does no harm to others.")
async def delivery_count_from_the_future_does_no_harm(peer: Conversation) -> None:
    receiver = await with_messages(peer, 2)
    other = await peer.begin(1)
    receiver.session.flow(handle=receiver.handle, delivery_count=0x7000_0000, link_credit=1)
    await _any_of(peer, Transfer, Flow, Detach, End)
    sender = other.new_sender(name=peer.name("other"))
    while sender.remote_attach is None:
        await peer.receive()


async def _any_of(peer: Conversation, *kinds: type[object]) -> None:
    """Read frames up to the answer to a new begin; all of them must be of `kinds`."""
    session = peer.new_session(5)
    while session.remote_channel < 0:
        came = await peer.receive()
        must(isinstance(came.body, (*kinds, Begin)), "the connection to go on", came.body)


# -- credit from the broker


@case("core", "2.6.7", "The broker's delivery-count for our link starts where ours does.")
async def delivery_count_of_our_link_starts_with_ours(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender(initial_delivery_count=NEARLY_ROUND)
    flow = await link_flow(session, sender.remote_handle)
    must(
        flow.delivery_count == NEARLY_ROUND and flow.link_credit > 0,
        f"credit from delivery-count {NEARLY_ROUND} on",
        flow.delivery_count,
    )
    for _ in range(4):
        await sender.send(message())


@case("core", "2.7.4", "A flow of the broker's to a sender has the delivery-count last seen.")
async def flow_to_a_sender_has_the_delivery_count_last_seen(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    for _ in range(3):
        await sender.send(message())
    session.flow(handle=sender.handle, delivery_count=3, link_credit=sender.link_credit, echo=True)
    flow = await echo(peer, sender.remote_handle)
    while flow.delivery_count != 3:
        must(serial.ahead(int(flow.delivery_count), 3) < 0, "delivery-count 3", flow.delivery_count)
        flow = await link_flow(session, sender.remote_handle)


@case("core", "2.7.4", "A flow of the broker's to a receiver has its delivery-count and credit.")
async def flow_to_a_receiver_has_delivery_count_and_credit(peer: Conversation) -> None:
    receiver = await with_messages(peer, 2)
    await received(receiver, 2)
    receiver.grant(7, echo=True)
    flow = await echo(peer, receiver.remote_handle)
    must(
        flow.delivery_count == receiver.delivery_count and flow.link_credit == 7,
        f"delivery-count {receiver.delivery_count} and link-credit 7",
        (flow.delivery_count, flow.link_credit),
    )


@case("jms", "13.12", "A sender that goes on gets new credit before it has to stop for good.")
async def credit_of_a_sender_is_renewed(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    first = await sender.credit()
    if first > CREDIT_WORTH_EXCEEDING:
        raise NotApplicable(
            f"a credit of {first} is more than is worth using up", Kind.DID_NOT_HAPPEN
        )
    for _ in range(first + 10):
        await sender.credit()
        sender.transfer(message(b"x"), settled=True)
    await sender.send(message(b"last"))


@case("core", "2.6.7", "Transfers beyond the credit are taken, or transfer-limit-exceeded.")
async def transfers_beyond_the_credit_are_judged(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    credit = await sender.credit()
    if credit > CREDIT_WORTH_EXCEEDING:
        raise NotApplicable(
            f"a credit of {credit} is more than is worth exceeding", Kind.DID_NOT_HAPPEN
        )
    sent = [sender.transfer(message(b"x")) for _ in range(credit + 50)]
    try:
        await settled_all(sender, sent)
    except Failed as failed:
        if TRANSFER_LIMIT_EXCEEDED not in failed.got and WINDOW_VIOLATION not in failed.got:
            raise Failed(
                f"outcomes for {len(sent)} deliveries, or {TRANSFER_LIMIT_EXCEEDED}", failed.got
            ) from None


@case("core", "2.6.7", "A transfer ahead of any credit is taken, or transfer-limit-exceeded.")
async def transfer_ahead_of_credit_is_judged(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = session.new_sender()
    sent = [sender.transfer(message(b"ahead"))]
    await sender.expect_attached()
    try:
        await settled_all(sender, sent)
    except Failed as failed:
        if TRANSFER_LIMIT_EXCEEDED not in failed.got:
            wanted = f"an outcome, or {TRANSFER_LIMIT_EXCEEDED}"
            raise Failed(wanted, failed.got) from None


@case("core", "2.6.7", "A sender that gives credit up has less of it, and gets more by a flow.")
async def sender_may_give_credit_up(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    credit = await sender.credit()
    if credit > CREDIT_WORTH_EXCEEDING:
        raise NotApplicable(
            f"a credit of {credit} is more than anybody gives up", Kind.DID_NOT_HAPPEN
        )
    session.flow(handle=sender.handle, delivery_count=credit, link_credit=0)
    sender.delivery_count = credit
    sender.link_credit = 0
    await sender.send(message(b"after"))


# -- drain


@case("core", "2.6.7", "Drain on an empty node uses all credit up and says so.")
async def drain_of_nothing_uses_the_credit_up(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    receiver.grant(10, drain=True)
    await expect_drained(receiver, serial.add(receiver.delivery_count, 10))


@case("core", "2.6.7", "Drain sends what waits before it gives up the rest of the credit.")
async def drain_sends_what_waits_first(peer: Conversation) -> None:
    receiver = await with_messages(peer, 3)
    start = receiver.delivery_count
    receiver.grant(10, drain=True)
    came = [await peer.expect(Transfer, skip=()) for _ in range(3)]
    must(bodies(came) == [b"0", b"1", b"2"], "three messages", bodies(came))
    await expect_drained(receiver, serial.add(start, 10))


@case("core", "2.6.7", "Drain with more messages than credit keeps to the credit.")
async def drain_keeps_to_the_credit(peer: Conversation) -> None:
    receiver = await with_messages(peer, 5)
    receiver.grant(3, drain=True)
    for _ in range(3):
        await receiver.receive()
    await peer.expect_nothing()


@case("core", "2.6.7", "Drain may be asked later, of credit that was given before.")
async def drain_may_follow_the_credit(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    start = receiver.delivery_count
    receiver.grant(4)
    await peer.expect_nothing()
    receiver.grant(4, drain=True)
    await expect_drained(receiver, serial.add(start, 4))


@case("core", "2.6.7", "After a drain nothing comes without new credit.")
async def nothing_comes_after_a_drain(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    start = receiver.delivery_count
    receiver.grant(4, drain=True)
    await expect_drained(receiver, serial.add(start, 4))
    await put(await peer.begin(1), b"late")
    await peer.expect_nothing()
    receiver.grant(1)
    came = await receiver.receive()
    must(body_of(came.payload) == b"late", "the late message", came)


@case("core", "2.6.7", "Drain ends with the next flow that does not ask for it.")
async def drain_may_be_ended(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    start = receiver.delivery_count
    receiver.grant(1, drain=True)
    await expect_drained(receiver, serial.add(start, 1))
    receiver.grant(2)
    await peer.expect_nothing()
    sender = await (await peer.begin(1)).attach_sender()
    await sender.credit()
    sender.transfer(message(b"1"), settled=True)
    await peer.expect(Transfer)
    must(receiver.link_credit == 1, "link-credit 1 left", receiver.link_credit)


@case("jms", "13.2", "A drain that is asked for again, with no credit left, does no harm.")
async def drain_asked_again_does_no_harm(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    start = receiver.delivery_count
    receiver.grant(2, drain=True)
    await expect_drained(receiver, serial.add(start, 2))
    receiver.grant(0, drain=True)
    await peer.expect_nothing()
    receiver.grant(3, drain=True)
    await expect_drained(receiver, serial.add(start, 5))


@case("jms", "13.2", "A drain sees a message whose sender was told before that it is accepted.")
async def drain_sees_what_was_accepted_before(peer: Conversation) -> None:
    async with peer.another() as other:
        session = await connected_session(peer)
        receiver = await session.attach_receiver()
        makers = await connected_session(other)
        for round_ in range(20):
            await put(makers, str(round_).encode())
            receiver.grant(5, drain=True)
            came = await peer.expect(Transfer)
            receiver.settle(came)
            while receiver.link_credit > 0:
                await peer.expect(Flow, skip=())


# -- echo and the fields of a flow


@case("core", "2.7.4", "An echo that names no link should be answered: by a session's state.")
async def echo_of_a_session_is_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.flow(echo=True)
    flow = await echo(peer)
    must(flow.next_incoming_id >= 0, "a next-incoming-id, as our begin has been seen", flow)


@case("core", "2.7.4", "A flow that names no link says nothing of one.")
async def flow_of_a_session_has_no_link_fields(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.flow(echo=True)
    flow = await echo(peer)
    must(flow.handle < 0, "no handle, as there is no link", flow.handle)
    said = (flow.delivery_count, flow.link_credit, flow.available)
    must(said == (-1, -1, -1), "no delivery-count, link-credit or available", said)


@case("core", "2.7.4", "Every flow of the broker's has next-incoming-id, once it has our begin.")
async def flows_always_have_next_incoming_id(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = session.new_sender()
    while sender.link_credit <= 0:
        body = (await peer.receive()).body
        if isinstance(body, Flow):
            must(body.next_incoming_id >= 0, "next-incoming-id", "none")
    receiver = await session.attach_receiver()
    receiver.grant(3, drain=True)
    flow = await link_flow(session, receiver.remote_handle)
    must(flow.next_incoming_id >= 0 and flow.delivery_count >= 0, "both ids", flow)


@case("reliability", "C14", "A thousand echoes are answered at least once, and cost little.")
async def many_echoes_are_answered(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    for _ in range(1000):
        session.flow(
            handle=receiver.handle,
            delivery_count=receiver.delivery_count,
            link_credit=3,
            echo=True,
        )
    await echo(peer, receiver.remote_handle)
    await session.end()


@case("core", "2.7.4", "A flow for a handle that is not attached ends the session.")
async def flow_of_an_unattached_handle_ends_the_session(peer: Conversation) -> None:
    session = await connected_session(peer)
    session.flow(handle=2, delivery_count=0, link_credit=1)
    error = await peer.expect_error("amqp:session:unattached-handle")
    must(isinstance(error, End), "end", error)


@case("core", "2.7.4", "A flow for a handle that has been detached ends the session.")
async def flow_of_a_detached_handle_ends_the_session(peer: Conversation) -> None:
    session = await connected_session(peer)
    receiver = await session.attach_receiver()
    await receiver.detach()
    session.flow(handle=receiver.handle, delivery_count=0, link_credit=1)
    error = await peer.expect_error("amqp:session:unattached-handle")
    must(isinstance(error, End), "end", error)


@case("core", "2.7.4", "Flows with available and properties are read like others.")
async def available_and_properties_of_a_flow_are_let_pass(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await sender.credit()
    session.flow(
        handle=sender.handle,
        delivery_count=0,
        link_credit=sender.link_credit,
        available=12,
        properties={"x-conformance": "yes"},
    )
    await sender.send(message(b"after"))
    left = await waiting(session)
    must(left == [b"after"], "the message", left)
