"""Core 3.4: the effects of accepted, rejected, released, modified and received on a message."""

from __future__ import annotations

from librt.strings import BytesWriter

from broker.amqp.encode import put_value
from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    DeliveryState,
    Modified,
    Received,
    Rejected,
)
from broker.amqp.performatives import SND_SETTLED, Error
from broker.amqp.types import Described, Int, Symbol, UInt, ULong

from .conversation import Conversation
from .exchange import (
    annotation,
    bare,
    check_accepted,
    check_empty,
    header,
    header_of,
    message_annotations,
    receive_all,
    receive_one,
    send_all,
    symbol_map,
)
from .frames import Transfer
from .harness import case
from .messages import message
from .session import Receiver, Session
from .steps import bodies, connected_session, must
from .verdict import Kind, NotApplicable

FAILED = Modified(delivery_failed=True)


async def another_link(session: Session) -> Receiver:
    """Attach a second link to the queue of the case, while the first one exists."""
    return await session.attach_receiver(name=session.peer.name("another"))


async def redelivered(peer: Conversation, state: DeliveryState) -> tuple[Transfer, Transfer]:
    """Return the first delivery of a message, and its redelivery after the state `state`."""
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"body", header(priority=6)))
    receiver = await session.attach_receiver()
    first = await receive_one(receiver)
    receiver.settle(first, state)
    again = await receive_one(receiver)
    receiver.settle(again)
    await peer.expect_nothing()
    return first, again


@case("core", "3.4", "A delivery that was sent unsettled is answered with an outcome, and settled.")
async def a_message_is_answered_with_an_outcome(peer: Conversation) -> None:
    session = await connected_session(peer)
    told = await (await session.attach_sender()).send(message(b""))
    check_accepted(told)
    must(told.settled, "settled=true, for the receiver settles first", told)
    receiver = await session.attach_receiver()
    receiver.settle(await receive_one(receiver))
    await peer.expect_nothing()


@case("core", "3.4.2", "An accepted message is gone from its queue.")
async def an_accepted_message_is_gone(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"one"), message(b"other"))
    receiver = await session.attach_receiver()
    receiver.settle(await receive_one(receiver))
    await receiver.detach()
    found = await receive_all(receiver := await another_link(session))
    for each in found:
        receiver.settle(each)
    must(bodies(found) == [b"other"], "the other message alone", bodies(found))
    await peer.expect_nothing()


@case("core", "3.4.2", "A message sent settled is gone: it is not acquired again by anybody.")
async def a_settled_message_is_gone(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"settled"))
    receiver = await session.attach_receiver(snd_settle_mode=SND_SETTLED)
    came = await receive_one(receiver)
    if came.settled is not True:
        receiver.settle(came)
        await peer.expect_nothing()
        raise NotApplicable("the broker sends unsettled, though asked to settle", Kind.NOT_OFFERED)
    await receiver.detach()
    await check_empty(await another_link(session))


@case(
    "core", "3.4.4", "A released message is delivered again, and its delivery-count is not raised."
)
async def a_released_message_is_delivered_again_uncounted(peer: Conversation) -> None:
    _, again = await redelivered(peer, RELEASED)
    must(header_of(again).delivery_count == 0, "delivery-count=0", header_of(again))


@case("core", "3.4.4", "A released message is unchanged.")
async def a_released_message_is_unchanged(peer: Conversation) -> None:
    first, again = await redelivered(peer, RELEASED)
    must(bare(again.payload) == bare(first.payload), "the same bare message", again.payload.hex())
    must(header_of(again).priority == 6, "priority=6", header_of(again))


@case("core", "3.4.4", "A released message is made available to other links, too.")
async def a_released_message_may_go_elsewhere(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"body"))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    other = await another_link(session)
    other.grant(1)
    receiver.settle(came, RELEASED)
    again = await other.receive()
    other.settle(again)
    must(bodies([again]) == [b"body"], "the released message", bodies([again]))
    await peer.expect_nothing()


@case("core", "3.4.5", "A message modified with delivery-failed comes again with its count raised.")
async def a_failed_delivery_is_counted(peer: Conversation) -> None:
    _, again = await redelivered(peer, FAILED)
    must(header_of(again).delivery_count == 1, "delivery-count=1", header_of(again))


@case("core", "3.4.5", "Each failed delivery raises the delivery-count by one.")
async def every_failed_delivery_is_counted(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b""))
    receiver = await session.attach_receiver()
    for count in range(4):
        came = await receive_one(receiver)
        must(header_of(came).delivery_count == count, f"count={count}", header_of(came))
        receiver.settle(came, FAILED if count < 3 else ACCEPTED)
    await peer.expect_nothing()


@case("core", "3.4.5", "A message modified without delivery-failed comes again uncounted.")
async def a_modified_delivery_that_did_not_fail_is_not_counted(peer: Conversation) -> None:
    _, again = await redelivered(peer, Modified())
    must(header_of(again).delivery_count == 0, "delivery-count=0", header_of(again))


@case("core", "3.4.5", "A message modified with undeliverable-here never comes to that link again.")
async def an_undeliverable_message_does_not_come_here_again(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"refused"), message(b"next"))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    receiver.settle(came, Modified(undeliverable_here=True))
    found = await receive_all(receiver)
    for each in found:
        receiver.settle(each)
    must(bodies(found) == [b"next"], "the next message alone", bodies(found))
    await peer.expect_nothing()


@case("core", "3.4.5", "A message that one link finds undeliverable is still there for others.")
async def an_undeliverable_message_goes_elsewhere(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"refused"))
    receiver = await session.attach_receiver()
    receiver.settle(await receive_one(receiver), Modified(undeliverable_here=True))
    came = await receive_one(other := await another_link(session))
    other.settle(came)
    must(bodies([came]) == [b"refused"], "the message", bodies([came]))
    must(header_of(came).delivery_count == 0, "delivery-count=0", header_of(came))
    await peer.expect_nothing()


@case("core", "3.4.5", "Annotations of modified are added to the message's, or replace them.")
async def modified_changes_annotations(peer: Conversation) -> None:
    session = await connected_session(peer)
    payload = message(b"body", message_annotations(x_opt_kept="kept", x_opt_old="old"))
    await send_all(await session.attach_sender(), payload)
    receiver = await session.attach_receiver()
    changes = BytesWriter()
    put_value(changes, symbol_map({"x_opt_old": "new", "x_opt_added": Int(7)}))
    receiver.settle(await receive_one(receiver), Modified(message_annotations=changes.getvalue()))
    again = await receive_one(receiver)
    receiver.settle(again)
    for key, value in (("kept", "kept"), ("old", "new"), ("added", Int(7))):
        found = annotation(again, f"x-opt-{key}")
        must(found == value, f"the annotation x-opt-{key}={value!r}", found)
    must(bodies([again]) == [b"body"], "the body as it was", bodies([again]))
    await peer.expect_nothing()


@case("core", "3.4.3", "A rejected message is not made available again without a raised count.")
async def a_rejected_message_does_not_come_as_new(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"rejected"))
    receiver = await session.attach_receiver()
    receiver.settle(
        await receive_one(receiver),
        Rejected(Error(condition="amqp:decode-error", description="no")),
    )
    found = await receive_all(receiver, credit=1)
    for each in found:
        receiver.settle(each)
        must(header_of(each).delivery_count > 0, "delivery-count > 0", header_of(each))
    await peer.expect_nothing()


@case("core", "3.4.1", "A delivery whose state is received stays with its link, until an outcome.")
async def received_is_not_an_outcome(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"partly"))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    receiver.settle(came, Received(section_number=0, section_offset=0), settled=False)
    await check_empty(other := await another_link(session))
    receiver.settle(came, RELEASED)
    again = await receive_one(other)
    other.settle(again)
    must(bodies([again]) == [b"partly"], "the message", bodies([again]))
    await peer.expect_nothing()


@case("core", "3.4", "An outcome that is told first and settled later is the one that counts.")
async def an_outcome_may_be_settled_later(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b"accepted"))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    receiver.settle(came, ACCEPTED, settled=False)
    receiver.settle(came, ACCEPTED)
    await receiver.detach()
    await check_empty(await another_link(session))


@case("core", "3.4", "A delivery state that is not known is an error, not an outcome.")
async def an_unknown_delivery_state_is_an_error(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b""))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    out = BytesWriter()
    unknown = Described(Symbol("conformance:unknown:list"), [])
    put_value(out, Described(ULong(0x15), [True, UInt(came.delivery_id or 0), None, True, unknown]))
    peer.send_raw(out.getvalue(), channel=session.channel)
    await peer.expect_error()


@case("core", "3.4.1", "A received state without its section-number is an error.")
async def received_without_its_fields_is_an_error(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), message(b""))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    out = BytesWriter()
    nothing = Described(ULong(0x23), [])
    put_value(out, Described(ULong(0x15), [True, UInt(came.delivery_id or 0), None, True, nothing]))
    peer.send_raw(out.getvalue(), channel=session.channel)
    await peer.expect_error()
