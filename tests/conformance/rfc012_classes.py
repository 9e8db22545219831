"""RFC012 2.2: classes of destinations, which this project writes as addresses (DST-10 to 13)."""

from __future__ import annotations

from broker.amqp.errors import RESOURCE_LOCKED
from broker.amqp.terminus import Source, Target

from .conversation import Conversation
from .exchange import check_empty, granted, header, send_all, take_all
from .harness import case
from .jms_destinations import as_jms_consumer
from .messages import message
from .session import Receiver, Sender, Session
from .steps import connected_session, must
from .verdict import Kind, NotApplicable


async def sender_to(session: Session, address: str, kind: str = "queue") -> Sender:
    """Return a link to send on."""
    return await session.attach_sender(target=Target(address=address, capabilities=[kind]))


async def receiver_of(session: Session, address: str, kind: str = "queue") -> Receiver:
    """Return a link to receive on."""
    name = session.peer.name(f"of {address}")
    return await session.attach_receiver(source=as_jms_consumer(address, kind), name=name)


async def knowing_classes(peer: Conversation) -> Session:
    """Return a session; raise NotApplicable if the broker does not know class addresses.

    A broker that knows them accepts both word orders for one address.
    """
    session = await connected_session(peer)
    name = peer.name("known")
    sender = session.new_sender(
        target=Target(address=f"/transient/queue/{name}", capabilities=["queue"])
    )
    if await granted(sender) is None:
        raise NotApplicable("the broker refuses such addresses", Kind.NOT_OFFERED)
    plain = await receiver_of(session, f"/transient/queue/{name}")
    await send_all(sender, message(b"tried"))
    found = await take_all(plain)
    must(found == [b"tried"], "the message at its own address", found)
    await plain.detach()
    await send_all(sender, message(b"known"))
    if await take_all(await receiver_of(session, f"/queue/transient/{name}")) != [b"known"]:
        raise NotApplicable("to this broker such an address is like any other", Kind.NOT_OFFERED)
    return session


@case("rfc012", "2.2", "An address with a class is not the one without.")
async def a_class_is_part_of_the_address(peer: Conversation) -> None:
    session = await knowing_classes(peer)
    await send_all(await sender_to(session, f"/queue/durable/{peer.address}"), message(b"durable"))
    must(await take_all(await session.attach_receiver()) == [], "nothing in the plain queue", "it")
    found = await take_all(await receiver_of(session, f"/queue/durable/{peer.address}"))
    must(found == [b"durable"], "the message in the durable one", found)


@case("rfc012", "2.2", "A durable queue takes any message, and tells its sender.")
async def a_durable_queue_takes_any_message(peer: Conversation) -> None:
    session = await knowing_classes(peer)
    address = f"/queue/durable/{peer.address}"
    sender = await sender_to(session, address)
    await send_all(sender, message(b"one"), message(b"two", header(durable=True)))
    found = await take_all(await receiver_of(session, address))
    must(found == [b"one", b"two"], "both messages", found)


@case("rfc012", "2.2", "A subscriber of a transient topic gets what is published there.")
async def a_transient_topic_has_subscribers(peer: Conversation) -> None:
    session = await knowing_classes(peer)
    receiver = await receiver_of(session, f"/topic/transient/{peer.address}", "topic")
    sender = await sender_to(session, f"/transient/topic/{peer.address}", "topic")
    await send_all(sender, message(b"news"))
    found = await take_all(receiver)
    must(found == [b"news"], "the message", found)


@case("rfc012", "2.2", "A tmp queue is its maker's alone; others may send to it (DST-13).")
async def a_tmp_queue_is_locked_to_others(peer: Conversation) -> None:
    session = await knowing_classes(peer)
    address = f"/queue/tmp/{peer.address}"
    receiver = await receiver_of(session, address)
    async with peer.another() as other:
        theirs = await connected_session(other)
        consumer = theirs.new_receiver(source=Source(address=address, capabilities=["queue"]))
        await consumer.expect_refused(RESOURCE_LOCKED)
        browser = theirs.new_receiver(
            source=Source(
                address=f"/tmp/queue/{peer.address}",
                distribution_mode="copy",
                capabilities=["queue"],
            )
        )
        await browser.expect_refused(RESOURCE_LOCKED)
        await send_all(await sender_to(theirs, address), message(b"reply"))
    found = await take_all(receiver)
    must(found == [b"reply"], "the message", found)


@case("rfc012", "2.2", "A tmp queue has gone when its connection comes back.")
async def a_tmp_queue_ends_with_its_connection(peer: Conversation) -> None:
    address = f"/tmp/queue/{peer.address}"
    session = await knowing_classes(peer)
    async with peer.another() as other:
        await send_all(await sender_to(await connected_session(other), address), message(b"lost"))
        await other.lose_socket()
    await check_empty(await receiver_of(session, address))


@case("rfc012", "2.2", "A subscriber of a transient topic that lost its connection resumes.")
async def a_lost_subscriber_may_come_back(peer: Conversation) -> None:
    session = await knowing_classes(peer)
    topic = as_jms_consumer(f"/topic/transient/{peer.address}", "topic")
    container_id, name = peer.name("client-id"), peer.name("subscriber")
    async with peer.another() as other:
        await other.open(container_id=container_id)
        await (await other.begin()).attach_receiver(source=topic, name=name)
        await other.lose_socket()
    sender = await sender_to(session, f"/topic/transient/{peer.address}", "topic")
    await send_all(sender, message(b"meanwhile"))
    async with peer.another() as back:
        await back.open(container_id=container_id)
        link = await (await back.begin()).attach_receiver(source=topic, name=name)
        found = await take_all(link)
        must(found == [b"meanwhile"], "what was published meanwhile", found)
