"""Durable and shared subscriptions, selectors and no-local, as far as a broker has them.

According to `docs/design/jms-clients.md` 5.2 and 7, and to the mapping's working draft 10.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from broker.amqp.encode import put_value
from broker.amqp.errors import INVALID_FIELD, NOT_FOUND, RESOURCE_LOCKED
from broker.amqp.performatives import Attach, Detach, Error
from broker.amqp.terminus import COPY, LINK_DETACH, NEVER, UNSETTLED_STATE, Source, SourceFilter
from broker.amqp.types import Described, ULong

from .conversation import Conversation
from .exchange import (
    ALL_OUTCOMES,
    header,
    receive_one,
    send_all,
    take_all,
    unless_not_offered,
)
from .harness import case
from .jms_destinations import as_jms_consumer, publisher, topic_of
from .messages import message, section
from .session import Receiver, Session
from .steps import connected_session, must
from .verdict import Kind, NotApplicable

SHARED_SUBS: Final = "SHARED-SUBS"

SELECTOR: Final = ULong(0x0000_468C_0000_0004)
NO_LOCAL: Final = ULong(0x0000_468C_0000_0003)


# -- durable subscriptions


def durable(address: str, *capabilities: str) -> Source:
    """Return the source of a durable subscriber (5.1)."""
    return Source(
        address=address,
        durable=UNSETTLED_STATE,
        expiry_policy=NEVER,
        distribution_mode=COPY,
        outcomes=list(ALL_OUTCOMES),
        capabilities=["topic", *capabilities],
    )


async def subscribed(session: Session, name: str, source: Source) -> Receiver:
    """Return a subscriber under exactly that link name."""
    link = session.new_receiver(name=name, source=source)
    await unless_not_offered(link)
    return link


async def unsubscribe(session: Session, name: str) -> Error | None:
    """Look the subscription up by its name and close the link; return the error, if any (7.5)."""
    link = session.new_receiver(name=name, source=None)
    attach = await session.peer.expect(Attach, name=name)
    if attach.source is None:
        detach = await session.peer.expect(Detach, closed=True)
        session.send(Detach(handle=link.handle, closed=True))
        session.links.pop(link.handle)
        return detach.error
    return (await link.detach()).error


def condition_of(error: Error | None) -> str:
    return "no error" if error is None else error.condition


@case("jms", "7.5", "The lookup of a subscription that nobody has is refused with amqp:not-found.")
async def a_missing_subscription_is_not_found(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = session.new_receiver(name=peer.name("no such subscription"), source=None)
    await link.expect_refused(NOT_FOUND)


@case("jms", "7.1", "A durable subscription collects messages while its subscriber is detached.")
async def a_durable_subscription_outlives_its_link(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await publisher(session)
    name = peer.name("durable")
    link = await subscribed(session, name, durable(topic_of(peer)))
    await link.detach(closed=False)
    await send_all(sender, message(b"kept"))
    again = await subscribed(session, name, durable(topic_of(peer)))
    found = await take_all(again)
    must(found == [b"kept"], "the message that came meanwhile", found)
    await again.detach(closed=False)
    error = await unsubscribe(session, name)
    must(error is None, "a detach without error", condition_of(error))


@case("jms", "7.1", "A durable subscription collects messages while its client is not connected.")
async def a_durable_subscription_outlives_its_connection(peer: Conversation) -> None:
    name, container_id = peer.name("durable"), peer.name("client-id")
    async with peer.another() as other:
        await other.open(container_id=container_id)
        session = await other.begin()
        await publisher(session)
        await subscribed(session, name, durable(topic_of(peer)))
        await other.close()
    async with peer.another() as third:
        await send_all(await publisher(await connected_session(third)), message(b"kept"))
    async with peer.another() as back:
        await back.open(container_id=container_id)
        session = await back.begin()
        link = await subscribed(session, name, durable(topic_of(peer)))
        found = await take_all(link)
        must(found == [b"kept"], "the message that came meanwhile", found)
        await link.detach(closed=False)
        await unsubscribe(session, name)


@case("jms", "7.5", "The lookup of a durable subscription tells its source, and takes no message.")
async def a_lookup_tells_the_source(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await publisher(session)
    name = peer.name("durable")
    await (await subscribed(session, name, durable(topic_of(peer)))).detach(closed=False)
    await send_all(sender, message(b"kept"))
    lookup = session.new_receiver(name=name, source=None)
    attach = await lookup.expect_attached()
    assert attach.source is not None
    must(attach.source.address == topic_of(peer), topic_of(peer), attach.source.address)
    found = await take_all(lookup)
    must(found == [], "no message for the lookup", found)
    await lookup.detach(closed=False)
    await unsubscribe(session, name)


@case("core", "2.6.3", "An attach with neither source nor target is refused, whatever its name.")
async def an_attach_without_any_terminus_is_refused(peer: Conversation) -> None:
    session = await connected_session(peer)
    await publisher(session)
    name = peer.name("durable")
    await (await subscribed(session, name, durable(topic_of(peer)))).detach(closed=False)
    await session.new_receiver(name=name, source=None, target=None).expect_refused()
    await session.new_sender(source=None, target=None).expect_refused()
    await unsubscribe(session, name)


@case("jms", "7.5", "A subscription that was looked up ends with the closing detach.")
async def unsubscribing_ends_a_subscription(peer: Conversation) -> None:
    session = await connected_session(peer)
    await publisher(session)
    name = peer.name("durable")
    await (await subscribed(session, name, durable(topic_of(peer)))).detach(closed=False)
    error = await unsubscribe(session, name)
    must(error is None, "a detach without error", condition_of(error))
    error = await unsubscribe(session, name)
    must(condition_of(error) == NOT_FOUND, NOT_FOUND, condition_of(error))


# -- shared subscriptions


async def sharing(peer: Conversation) -> Session:
    """Return a session; raise NotApplicable if the broker offers no shared subscriptions."""
    opened = await peer.open(desired_capabilities=[SHARED_SUBS])
    if SHARED_SUBS not in opened.offered_capabilities:
        raise NotApplicable(f"the broker does not offer {SHARED_SUBS}", Kind.NOT_OFFERED)
    return await peer.begin()


def shared(address: str) -> Source:
    """Return the source of a shared subscription that ends with its last subscriber."""
    return Source(
        address=address,
        expiry_policy=LINK_DETACH,
        outcomes=list(ALL_OUTCOMES),
        capabilities=["topic", "shared"],
    )


@case("jms", "7.2", "Subscribers that share a subscription get each message once between them.")
async def shared_subscribers_divide_the_messages(peer: Conversation) -> None:
    session = await sharing(peer)
    sender = await publisher(session)
    first = await subscribed(session, peer.name("s") + "|volatile1", shared(topic_of(peer)))
    second = await subscribed(session, peer.name("s") + "|volatile2", shared(topic_of(peer)))
    await send_all(sender, message(b"one"), message(b"two"))
    came = await receive_one(first)
    first.settle(came)
    found = await take_all(second)
    must(len(found) == 1, "the other message for the second subscriber", found)
    found = await take_all(first)
    must(found == [], "nothing more for the first", found)


@case("jms", "7.2", "Subscriptions of different names each get every message.")
async def shared_subscriptions_are_told_apart_by_name(peer: Conversation) -> None:
    session = await sharing(peer)
    sender = await publisher(session)
    links = [
        await subscribed(session, peer.name(name) + "|volatile1", shared(topic_of(peer)))
        for name in ("one", "other")
    ]
    await send_all(sender, message(b"to both"))
    for link in links:
        found = await take_all(link)
        must(found == [b"to both"], "the message", found)


@case("jms", "7.5", "A shared durable subscription that others use cannot be unsubscribed.")
async def a_subscription_in_use_cannot_be_ended(peer: Conversation) -> None:
    session = await sharing(peer)
    sender = await publisher(session)
    name = peer.name("shared")
    source = durable(topic_of(peer), "shared")
    first = await subscribed(session, name, source)
    second = await subscribed(session, f"{name}|2", source)
    answer = await second.detach()
    must(condition_of(answer.error) == RESOURCE_LOCKED, RESOURCE_LOCKED, condition_of(answer.error))
    await send_all(sender, message(b"still there"))
    found = await take_all(first)
    must(found == [b"still there"], "the message for the other subscriber", found)
    await first.detach()


# -- selectors and no-local


def filter_of(key: str, descriptor: ULong, value: str) -> SourceFilter:
    """Return a filter as JMS clients write it (5.2)."""
    out = BytesWriter()
    put_value(out, Described(descriptor, value))
    return SourceFilter(key=key, descriptor=descriptor.value, value=value, encoded=out.getvalue())


def with_filter(source: Source, key: str, descriptor: ULong, value: str) -> Source:
    """Return `source` with one filter."""
    return Source(
        address=source.address,
        expiry_policy=source.expiry_policy,
        default_outcome=source.default_outcome,
        outcomes=source.outcomes,
        capabilities=source.capabilities,
        filter=[filter_of(key, descriptor, value)],
    )


async def selecting(session: Session, selector: str, kind: str = "queue") -> Receiver:
    """Return a consumer with a selector; raise NotApplicable if the broker has none."""
    address = topic_of(session.peer) if kind == "topic" else session.peer.address
    source = as_jms_consumer(address, kind)
    link = session.new_receiver(
        source=with_filter(source, "jms-selector", SELECTOR, selector),
        name=session.peer.name("selecting"),
    )
    attach = await unless_not_offered(link)
    assert attach.source is not None
    if not attach.source.filter:
        raise NotApplicable(
            "the broker does not answer the selector as a filter in force", Kind.NOT_OFFERED
        )
    return link


def numbered(value: int | None, body: bytes) -> bytes:
    """Return a message with the application property `x`, or without it if `value` is None."""
    return message(body, header(priority=7), section(0x74, {} if value is None else {"x": value}))


async def check_selection(peer: Conversation, selector: str, wanted: list[bytes]) -> None:
    """Check that of messages with x=1, x=2 and without x, the selector takes `wanted`."""
    session = await connected_session(peer)
    sender = await session.attach_sender()
    link = await selecting(session, selector)
    await send_all(sender, numbered(1, b"one"), numbered(2, b"two"), numbered(None, b"none"))
    found = await take_all(link)
    must(found == wanted, f"{wanted} for {selector}", found)
    await link.detach()
    await take_all(await session.attach_receiver(name=peer.name("rest")))


@case("jms", "5.2", "A selector takes the messages of a queue for which it is true, and no others.")
async def a_selector_takes_what_it_is_true_for(peer: Conversation) -> None:
    await check_selection(peer, "x = 1", [b"one"])


@case("jms", "5.2", "A selector that is unknown for a message does not take it, negated or not.")
async def a_selector_that_is_unknown_takes_nothing(peer: Conversation) -> None:
    await check_selection(peer, "NOT (x = 1)", [b"two"])


@case("jms", "5.2", "A selector sees the header fields of JMS, too.")
async def a_selector_sees_header_fields(peer: Conversation) -> None:
    selector = "JMSPriority = 7 AND JMSDeliveryMode = 'NON_PERSISTENT' AND x BETWEEN 2 AND 3"
    await check_selection(peer, selector, [b"two"])


@case("jms", "5.2", "A selector on a topic decides which messages the subscriber gets.")
async def a_selector_filters_a_topic(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await publisher(session)
    link = await selecting(session, "x = 1", "topic")
    await send_all(sender, numbered(2, b"two"), numbered(1, b"one"))
    found = await take_all(link)
    must(found == [b"one"], "the message with x = 1 alone", found)


@case("jms", "5.2", "A selector that cannot be parsed is refused with amqp:invalid-field.")
async def a_bad_selector_is_refused(peer: Conversation) -> None:
    session = await connected_session(peer)
    await (await selecting(session, "x = 1")).detach()
    link = session.new_receiver(
        source=with_filter(
            as_jms_consumer(peer.address), "jms-selector", SELECTOR, "x = = 'never closed"
        )
    )
    attach = await peer.expect(Attach, name=link.name)
    if attach.source is not None and not attach.source.filter:
        raise NotApplicable(
            "the broker does not answer the selector as a filter in force", Kind.NOT_OFFERED
        )
    must(attach.source is None, "a refusal", "a link")
    condition = condition_of((await peer.expect(Detach, closed=True)).error)
    if condition == "amqp:not-implemented":
        raise NotApplicable("the broker refuses it with amqp:not-implemented", Kind.NOT_OFFERED)
    must(condition == INVALID_FIELD, INVALID_FIELD, condition)


@case("jms", "5.2", "A subscriber that wants none gets no messages of its own connection.")
async def no_local_leaves_own_messages_out(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await publisher(session)
    source = as_jms_consumer(topic_of(peer), "topic")
    link = session.new_receiver(source=with_filter(source, "no-local", NO_LOCAL, "NoLocalFilter{}"))
    attach = await unless_not_offered(link)
    assert attach.source is not None
    if not attach.source.filter:
        raise NotApplicable(
            "the broker does not answer no-local as a filter in force", Kind.NOT_OFFERED
        )
    await send_all(sender, message(b"own"))
    async with peer.another() as other:
        await send_all(await publisher(await connected_session(other)), message(b"another's"))
    found = await take_all(link)
    must(found == [b"another's"], "the other connection's message alone", found)
