"""Durable messages, subscriptions and transactions over a restart of the broker (`--restart`)."""

from __future__ import annotations

from typing import Any, Final

from broker.amqp.outcomes import ACCEPTED, Accepted, TransactionalState
from broker.amqp.performatives import RCV_SECOND, SENDER
from broker.amqp.terminus import CONNECTION_CLOSE, UNSETTLED_STATE, Source, Target

from .conversation import Conversation
from .exchange import (
    header,
    message_annotations,
    now_ms,
    pass_time,
    receive_all,
    receive_one,
    send_all,
    take_all,
)
from .frames import Disposition
from .harness import case
from .jms_delays import delaying
from .jms_destinations import publisher, topic_of
from .jms_subscription_rows import wanted
from .jms_subscriptions import NO_LOCAL, durable, filter_of, subscribed, unsubscribe
from .jms_transactions import coordinator, declared, ended, send_within
from .messages import message
from .resuming import after_all, tag_of, tags_in, unsettled_map
from .session import Session
from .steps import bodies, connected_session, must, received
from .verdict import Kind, NotApplicable

DELAY_MS: Final = 1_500
"""The delay of a scheduled message: a restart may take longer, then it is due at once."""

TTL_MS: Final = 30_000
"""The time to live of a message that expires before its delivery time, and so leaves no trace."""


def kept(body: bytes, *before: bytes) -> bytes:
    """Return a durable message."""
    return message(body, header(durable=True), *before)


async def before_restart(peer: Conversation) -> Session:
    """Return a session of the broker that will be restarted; not applicable without --restart."""
    peer.check_can_restart()
    return await connected_session(peer)


async def found_after_restart(peer: Conversation) -> list[bytes]:
    """Restart the broker; return the messages at the address of the case."""
    await peer.restart_broker()
    async with peer.another() as after:
        receiver = await (await connected_session(after)).attach_receiver()
        found = await take_all(receiver)
        await after.close()
    return found


@case("core", "3.2.1", "Durable messages that were accepted are there after a restart.")
async def durable_messages_outlive_a_restart(peer: Conversation) -> None:
    session = await before_restart(peer)
    sent = [b"1", b"2", b"3"]
    await send_all(await session.attach_sender(), *map(kept, sent))
    found = sorted(await found_after_restart(peer))
    must(found == sent, "the three messages", found)


@case("core", "3.2.1", "A durable message that was delivered, and not settled, comes again.")
async def unsettled_durable_messages_come_again(peer: Conversation) -> None:
    session = await before_restart(peer)
    await send_all(await session.attach_sender(), kept(b"unsettled"))
    came = await receive_one(await session.attach_receiver())
    must(bodies([came]) == [b"unsettled"], "the message", bodies([came]))
    found = await found_after_restart(peer)
    must(found == [b"unsettled"], "the message again", found)


@case("jms", "7.1", "A durable subscription and its durable messages are there after a restart.")
async def durable_subscriptions_outlive_a_restart(peer: Conversation) -> None:
    peer.check_can_restart()
    name, container_id = peer.name("durable"), peer.name("client-id")
    async with peer.another() as other:
        await other.open(container_id=container_id)
        session = await other.begin()
        sender = await publisher(session)
        link = await subscribed(session, name, durable(topic_of(peer)))
        await link.detach(closed=False)
        await send_all(sender, kept(b"before"))
        await other.close()
    await peer.restart_broker()
    async with peer.another() as back:
        await back.open(container_id=container_id)
        session = await back.begin()
        # a new publisher: the subscription must not only keep what it has
        await send_all(await publisher(session), kept(b"after"))
        link = await subscribed(session, name, durable(topic_of(peer)))
        found = sorted(await take_all(link))
        must(found == [b"after", b"before"], "what came before and after the restart", found)
        await link.detach(closed=False)
        await unsubscribe(session, name)
        await back.close()


@case(
    "jms",
    "5.2",
    "After a restart a durable subscriber with no-local gets none of its own messages.",
)
async def no_local_outlives_a_restart(peer: Conversation) -> None:
    peer.check_can_restart()
    name, container_id = peer.name("durable"), peer.name("client-id")
    source = wanted(topic_of(peer), "durable", [filter_of("no-local", NO_LOCAL, "NoLocalFilter{}")])
    async with peer.another() as other:
        await other.open(container_id=container_id)
        session = await other.begin()
        await publisher(session)
        link = await subscribed(session, name, source)
        assert link.remote_attach is not None
        assert link.remote_attach.source is not None
        if not link.remote_attach.source.filter:
            raise NotApplicable("the broker does not answer no-local", Kind.NOT_OFFERED)
        await link.detach(closed=False)
        await other.close()
    await peer.restart_broker()
    async with peer.another() as back, peer.another() as elsewhere:
        await back.open(container_id=container_id)
        session = await back.begin()
        await send_all(await publisher(session), kept(b"own"))
        await send_all(await publisher(await connected_session(elsewhere)), kept(b"another's"))
        link = await subscribed(session, name, source)
        found = await take_all(link)
        must(found == [b"another's"], "the other connection's message alone", found)
        await link.detach(closed=False)
        await unsubscribe(session, name)
        await back.close()


@case("jms", "4.4", "A durable delayed message comes after a restart, and not before its time.")
async def delayed_messages_outlive_a_restart(peer: Conversation) -> None:
    session = await before_restart(peer)
    sender = await delaying(session)
    due = now_ms().value + DELAY_MS
    await send_all(
        sender,
        message(
            b"never",
            header(durable=True, ttl=TTL_MS),
            message_annotations(x_opt_delivery_time=due + TTL_MS),
        ),
        kept(b"later", message_annotations(x_opt_delivery_time=due)),
    )
    await peer.restart_broker()
    async with peer.another() as after:
        receiver = await (await connected_session(after)).attach_receiver()
        early = await take_all(receiver)
        must(b"never" not in early, "nothing half a minute before its time", early)
        must(not early or now_ms().value >= due, "nothing before its time", early)
        if not early:
            await pass_time(after, max(0, due - now_ms().value))
            came = await receive_one(receiver)
            receiver.settle(came)
            early = bodies([came])
        must(early == [b"later"], "the delayed message", early)
        await after.close()


@case("core", "4.4.1", "After a restart there is what was committed, and nothing else.")
async def a_commit_outlives_a_restart(peer: Conversation) -> None:
    session = await before_restart(peer)
    link, sender = await coordinator(session), await session.attach_sender()
    for body, fail in ((b"committed", False), (b"rolled back", True)):
        txn_id = await declared(link)
        await send_within(sender, txn_id, kept(body))
        await ended(link, txn_id, fail=fail)
    await send_within(sender, await declared(link), kept(b"not discharged"))
    found = await found_after_restart(peer)
    must(found == [b"committed"], "the committed message", found)


@case("core", "4.4.2", "After a restart a message whose acceptance was committed does not come.")
async def a_committed_acceptance_outlives_a_restart(peer: Conversation) -> None:
    session = await before_restart(peer)
    await send_all(await session.attach_sender(), *map(kept, [b"1", b"2", b"3"]))
    link, receiver = await coordinator(session), await session.attach_receiver()
    came = sorted(await receive_all(receiver, 3), key=lambda each: bodies([each]))
    must(bodies(came) == [b"1", b"2", b"3"], "the three messages", bodies(came))
    for each, fail in ((came[0], False), (came[1], True)):
        txn_id = await declared(link)
        receiver.settle(each, TransactionalState(txn_id=txn_id, outcome=ACCEPTED))
        await ended(link, txn_id, fail=fail)
    found = sorted(await found_after_restart(peer))
    must(found == [b"2", b"3"], "the two messages that were not accepted", found)


def lasting_terminus(peer: Conversation) -> dict[str, Any]:
    """Return the fields of a source or target whose unsettled state is to outlive the broker."""
    return {
        "address": peer.address,
        "durable": UNSETTLED_STATE,
        "expiry_policy": CONNECTION_CLOSE,
        "timeout": 60,
        "capabilities": ["queue"],
    }


async def opened_before_restart(peer: Conversation) -> tuple[str, Session]:
    """Return our container-id and a session; not applicable without --restart."""
    peer.check_can_restart()
    container_id = peer.our_open().container_id
    await peer.open(container_id=container_id)
    return container_id, await peer.begin()


@case("core", "3.5.5", "Outcomes of a target whose unsettled state is durable outlive a restart.")
async def durable_outcomes_outlive_a_restart(peer: Conversation) -> None:
    container_id, session = await opened_before_restart(peer)
    target = Target(**lasting_terminus(peer))
    fields: dict[str, object] = {
        "name": peer.name("durable"),
        "target": target,
        "rcv_settle_mode": RCV_SECOND,
    }
    sender = await session.attach_sender(unsettled=unsettled_map({}), **fields)
    granted = sender.remote_attach
    if granted is None or getattr(granted.target, "durable", 0) != UNSETTLED_STATE:
        raise NotApplicable("the broker's target has no durable unsettled state", Kind.NOT_OFFERED)
    if granted.rcv_settle_mode != RCV_SECOND:
        raise NotApplicable("the broker does not agree to settle second", Kind.NOT_OFFERED)
    durable = kept(b"one")
    must(not (await sender.send(durable, tag=b"one")).settled, "an unsettled outcome", "settled")
    await peer.restart_broker()
    async with peer.another() as back:
        await back.open(container_id=container_id)
        session = await back.begin()
        again = await session.attach_sender(unsettled=unsettled_map({b"one": None}), **fields)
        assert again.remote_attach is not None
        tags = tags_in(again.remote_attach)
        must(tags == [b"one"], "the delivery in the broker's map", tags)
        told = await again.send(durable, tag=b"one", resume=True)
        must(isinstance(told.state, Accepted), "the outcome again", told)
        again.session.send(Disposition(role=SENDER, first=told.first, settled=True, state=ACCEPTED))
        await after_all(again, b"one")
        await back.close()


@case("core", "3.5.5", "Deliveries of a source whose unsettled state is durable outlive a restart.")
async def durable_deliveries_outlive_a_restart(peer: Conversation) -> None:
    container_id, session = await opened_before_restart(peer)
    source = Source(**lasting_terminus(peer))
    fields: dict[str, object] = {
        "name": peer.name("durable"),
        "source": source,
        "rcv_settle_mode": RCV_SECOND,
    }
    await send_all(await session.attach_sender(), *[kept(body) for body in (b"1", b"2", b"3")])
    receiver = await session.attach_receiver(unsettled=unsettled_map({}), **fields)
    granted = receiver.remote_attach
    if granted is None or getattr(granted.source, "durable", 0) != UNSETTLED_STATE:
        raise NotApplicable("the broker's source has no durable unsettled state", Kind.NOT_OFFERED)
    one, two, three = [tag_of(each) for each in await received(receiver, 3)]
    await peer.restart_broker()
    async with peer.another() as back:
        await back.open(container_id=container_id)
        session = await back.begin()
        states = unsettled_map({one: ACCEPTED, two: None})
        again = await session.attach_receiver(unsettled=states, **fields)
        assert again.remote_attach is not None
        tags = sorted(tags_in(again.remote_attach))
        must(tags == sorted([one, two, three]), "the deliveries in the broker's map", tags)
        settled, resumed, anew = await received(again, 3)
        must(settled.settled is True and settled.tag == one, "the accepted one settled", settled)
        must(resumed.resume and resumed.tag == two, "the unsettled one resumed", resumed)
        must(not anew.resume and bodies([anew]) == [b"3"], "the one that the map lacks", anew)
        again.settle(resumed)
        again.settle(anew)
        await after_all(again)
        await back.close()
