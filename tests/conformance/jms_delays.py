"""Delayed delivery, as JMS clients ask for it (`docs/design/jms-clients.md` 4.4, 11.1)."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import Detach
from broker.amqp.types import Byte, Timestamp, UInt

from .conversation import Conversation
from .exchange import (
    message_annotations,
    now_ms,
    pass_time,
    properties,
    receive_all,
    receive_one,
    send_all,
    take_all,
)
from .frames import Disposition, Transfer
from .harness import case
from .jms_destinations import browse, publisher, subscribe
from .jms_transactions import coordinator, declared, ended, send_within
from .messages import body_of, message, section
from .relay import ANONYMOUS_RELAY
from .session import Receiver, Sender, Session
from .steps import bodies, connected_session, must
from .verdict import Failed, Kind, NotApplicable

DELAY_MS: Final = 500

PATIENCE: Final = 3
"""How many times its delay a message may take; then it counts as lost."""


def delayed(body: bytes, milliseconds: int) -> bytes:
    """Return a message that is due after `milliseconds`, as JMS clients write it (11.1)."""
    return message(body, message_annotations(x_opt_delivery_time=now_ms().value + milliseconds))


async def delaying(session: Session) -> Sender:
    """Return a link that delays; raise NotApplicable if neither connection nor link offer that."""
    sender = await session.attach_sender(desired_capabilities=["DELAYED_DELIVERY"])
    opened, attached = session.peer.remote_open, sender.remote_attach
    assert opened is not None
    assert attached is not None
    if "DELAYED_DELIVERY" not in opened.offered_capabilities + attached.offered_capabilities:
        raise NotApplicable("the broker does not offer DELAYED_DELIVERY", Kind.NOT_OFFERED)
    return sender


async def next_body(receiver: Receiver, delay_ms: int = DELAY_MS) -> bytes:
    """Return the body of the next message, accepted; its delay has begun already.

    Raise Failed if nothing comes within PATIENCE times `delay_ms`: a broker that took the message
    has lost it, or its clients have to take that for granted.
    """
    receiver.grant(1)
    try:
        async with asyncio.timeout(PATIENCE * delay_ms / 1000):
            came = await _received(receiver)
    except TimeoutError:
        raise Failed(
            f"the delayed message within {PATIENCE} times {delay_ms} ms", "nothing"
        ) from None
    receiver.settle(came)
    return body_of(came.payload)


async def _received(receiver: Receiver) -> Transfer:
    """Return the next delivery, however long that takes."""
    while True:
        try:
            return await receiver.receive()
        except Failed as failed:
            if not failed.is_silence:
                raise


async def check_comes_when_due(receiver: Receiver, due_ms: int) -> None:
    """Check that the message `later` comes next, and not before that time."""
    found = await next_body(receiver)
    at = now_ms().value
    must(found == b"later", "the delayed message", found)
    must(at >= due_ms, f"{due_ms} at the earliest", at)


@case("jms", "4.4", "A delayed message is delivered, and not before its time.")
async def a_delayed_message_comes_in_time(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await delaying(session)
    due = now_ms().value + DELAY_MS
    await send_all(sender, delayed(b"later", DELAY_MS), message(b"now"))
    receiver = await session.attach_receiver()
    came = await receive_one(receiver)
    receiver.settle(came)
    must(bodies([came]) == [b"now"], "the message that is not delayed", bodies([came]))
    await check_comes_when_due(receiver, due)
    await peer.expect_nothing()


@case("jms", "4.4", "A delay is refused or kept, offered or not: the message comes in its time.")
async def a_delay_is_not_ignored(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    receiver = await session.attach_receiver()
    await send_all(sender, message(b"not delayed"))
    found = await take_all(receiver)
    must(found == [b"not delayed"], "the message that is not delayed", found)
    await sender.credit()
    due = now_ms().value + DELAY_MS
    sender.transfer(delayed(b"later", DELAY_MS))
    told = await peer.receive()
    while not isinstance(told.body, Disposition | Detach):
        told = await peer.receive()
    if isinstance(told.body, Detach):
        must(told.body.error is not None, "a detach with an error", "one without")
    elif isinstance(told.body.state, Accepted):
        await check_comes_when_due(receiver, due)


# -- what JMS says of a delay (2.0, 7.9)


@case("jms", "4.4", "Delayed messages come in the order in which they fall due.")
async def delayed_messages_come_as_they_fall_due(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await delaying(session)
    await send_all(sender, delayed(b"second", 2 * DELAY_MS), delayed(b"first", DELAY_MS))
    receiver = await session.attach_receiver()
    found = [await next_body(receiver), await next_body(receiver, 2 * DELAY_MS)]
    must(found == [b"first", b"second"], "the one that is due first, then the other", found)


@case("jms", "4.4", "A delivery time may be a timestamp (early drafts of the mapping say so).")
async def a_delivery_time_may_be_a_timestamp(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await delaying(session)
    due = Timestamp(now_ms().value + DELAY_MS)
    await send_all(sender, message(b"later", message_annotations(x_opt_delivery_time=due)))
    await check_comes_when_due(await session.attach_receiver(), due.value)


@case("jms", "9", "A browser does not see what is not available yet.")
async def a_browser_does_not_see_delayed_messages(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await delaying(session)
    due = now_ms().value + 2 * DELAY_MS
    await send_all(sender, delayed(b"later", 2 * DELAY_MS), message(b"now"))
    seen = bodies(await receive_all(await browse(session)))
    if now_ms().value >= due:
        raise NotApplicable("browsing took longer than the delay", Kind.DID_NOT_HAPPEN)
    must(seen == [b"now"], "the message that is not delayed", seen)
    receiver = await session.attach_receiver()
    found = [await next_body(receiver), await next_body(receiver, 2 * DELAY_MS)]
    must(found == [b"now", b"later"], "both messages for a consumer", found)


@case("jms", "4.4", "A delayed message to a topic is for those who subscribed when it was sent.")
async def a_delayed_message_is_for_the_subscribers_of_its_sending(peer: Conversation) -> None:
    session = await connected_session(peer)
    await (await delaying(session)).detach()
    sender = await publisher(session)
    early = await subscribe(session, "early")
    await send_all(sender, delayed(b"later", DELAY_MS))
    late = await subscribe(session, "late")
    found = await next_body(early)
    must(found == b"later", "the delayed message", found)
    others = await take_all(late)
    must(others == [], "nothing for a subscriber that came after it", others)


@case("jms", "4.4", "A message that expires before its delivery time is never delivered.")
async def a_message_that_expires_before_it_is_due_never_comes(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await delaying(session)
    mortal = section(0x70, [False, None, UInt(DELAY_MS // 3)])
    await send_all(sender, mortal + delayed(b"mortal", DELAY_MS), delayed(b"other", 2 * DELAY_MS))
    found = await next_body(await session.attach_receiver(), 2 * DELAY_MS)
    must(found == b"other", "the message that lives for ever", found)


@case("jms", "4.4", "A message to the relay is delayed as any other.")
async def the_relay_delays(peer: Conversation) -> None:
    session = await connected_session(peer)
    await (await delaying(session)).detach()
    opened = peer.remote_open
    assert opened is not None
    if ANONYMOUS_RELAY not in opened.offered_capabilities:
        raise NotApplicable(f"the broker does not offer {ANONYMOUS_RELAY}", Kind.NOT_OFFERED)
    sender = await session.attach_sender(None, desired_capabilities=["DELAYED_DELIVERY"])
    to = properties(to=peer.address)
    due = now_ms().value + DELAY_MS
    kind = message_annotations(x_opt_delivery_time=due, x_opt_jms_dest=Byte(0))
    await send_all(sender, message(b"later", kind, to))
    await check_comes_when_due(await session.attach_receiver(), due)


@case("jms", "10.3", "A delayed message in a transaction waits for commit and delivery time.")
async def a_delayed_message_waits_for_its_commit_too(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await delaying(session)
    link = await coordinator(session)
    txn_id = await declared(link)
    await send_within(sender, txn_id, delayed(b"after the commit", DELAY_MS // 3))
    await pass_time(peer, DELAY_MS)
    receiver = await session.attach_receiver()
    found = await take_all(receiver)
    must(found == [], "nothing before the commit", found)
    due = now_ms().value + DELAY_MS
    await send_within(sender, txn_id, delayed(b"later", DELAY_MS))
    await ended(link, txn_id, fail=False)
    found = [await next_body(receiver), await next_body(receiver)]
    at = now_ms().value
    must(found == [b"after the commit", b"later"], "both messages", found)
    must(at >= due, f"{due} at the earliest", at)
