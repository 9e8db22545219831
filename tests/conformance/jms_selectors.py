"""Selectors in detail: their consumers, the fields they see, several at once (5.2, 11.4).

The clauses are sections of `docs/design/jms-clients.md`.
"""

from __future__ import annotations

import uuid

from librt.strings import BytesWriter

from broker.amqp.encode import put_value
from broker.amqp.outcomes import Released
from broker.amqp.performatives import SND_SETTLED
from broker.amqp.terminus import LINK_DETACH, Source, SourceFilter
from broker.amqp.types import Described, Float, Int, Short, Symbol, ULong

from .conversation import Conversation
from .exchange import (
    message_annotations,
    now_ms,
    properties,
    receive_all,
    receive_one,
    send_all,
    take_all,
    unless_not_offered,
)
from .harness import case
from .jms_subscriptions import NO_LOCAL, SELECTOR, numbered, selecting
from .messages import body_of, message, section
from .session import Receiver, Session
from .steps import bodies, connected_session, must
from .verdict import Kind, NotApplicable

SELECTOR_BY_NAME = Symbol("apache.org:selector-filter:string")


def stated(key: str, descriptor: ULong | Symbol, value: object) -> SourceFilter:
    """Return a filter with its encoded form."""
    out = BytesWriter()
    put_value(out, Described(descriptor, value))
    name = descriptor.value if isinstance(descriptor, ULong) else descriptor.text
    return SourceFilter(key=key, descriptor=name, value=value, encoded=out.getvalue())


async def filtered(
    session: Session, filters: list[SourceFilter], *, copies: bool = False
) -> Receiver:
    """Return a consumer, or browser, with these filters; raise NotApplicable if not in force."""
    link = session.new_receiver(
        source=Source(
            address=session.peer.address,
            expiry_policy=LINK_DETACH,
            distribution_mode="copy" if copies else None,
            capabilities=["queue"],
            filter=filters,
        ),
        name=session.peer.name("filtered"),
        **({"snd_settle_mode": SND_SETTLED} if copies else {}),
    )
    attach = await unless_not_offered(link)
    assert attach.source is not None
    if {each.key for each in attach.source.filter} != {each.key for each in filters}:
        raise NotApplicable(
            "the broker does not answer all of the filters as being in force", Kind.NOT_OFFERED
        )
    return link


@case("core", "3.5.8", "A message is delivered only if it passes every one of several filters.")
async def every_filter_counts(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    filters = [stated("low", SELECTOR, "x > 0"), stated("high", SELECTOR, "x < 2")]
    link = await filtered(session, filters)
    await send_all(sender, numbered(0, b"zero"), numbered(1, b"one"), numbered(2, b"two"))
    found = await take_all(link)
    must(found == [b"one"], "the message that passes both", found)
    await link.detach()
    await take_all(await session.attach_receiver(name=peer.name("rest")))


@case("jms", "5.2", "A filter may be named by its symbol as well as by its number.")
async def a_selector_may_be_named(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    link = await filtered(session, [stated("selector", SELECTOR_BY_NAME, "x = 1")])
    await send_all(sender, numbered(2, b"two"), numbered(1, b"one"))
    found = await take_all(link)
    must(found == [b"one"], "the message with x = 1 alone", found)
    await link.detach()
    await take_all(await session.attach_receiver(name=peer.name("rest")))


@case("jms", "5.2", "A filter in force is answered as it was asked for, byte for byte.")
async def filters_are_answered_as_they_came(peer: Conversation) -> None:
    session = await connected_session(peer)
    asked = [stated("s", SELECTOR, "x = 1"), stated("n", NO_LOCAL, "NoLocalFilter{}")]
    link = await filtered(session, asked)
    answer = link.remote_attach
    assert answer is not None
    assert isinstance(answer.source, Source)
    told = {each.key: each.encoded for each in answer.source.filter}
    must(told == {each.key: each.encoded for each in asked}, "the filters of the attach", told)


@case("jms", "9", "A browser with a selector sees the messages for which it is true.")
async def a_browser_sees_what_its_selector_takes(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), numbered(1, b"one"), numbered(2, b"two"))
    browser = await filtered(session, [stated("s", SELECTOR, "x = 2")], copies=True)
    seen = bodies(await receive_all(browser))
    must(seen == [b"two"], "the message with x = 2 alone", seen)
    found = await take_all(await session.attach_receiver())
    must(found == [b"one", b"two"], "both messages still in the queue", found)


@case("jms", "5.5", "A drain ends for a consumer for whom nothing that waits is.")
async def a_drain_ends_where_nothing_matches(peer: Conversation) -> None:
    session = await connected_session(peer)
    link = await selecting(session, "x = 5")
    sender = await session.attach_sender()
    await send_all(sender, *[numbered(1, b"one")] * 20)
    found = await take_all(link)
    must(found == [], "nothing", found)
    await send_all(sender, numbered(5, b"five"))
    found = await take_all(link)
    must(found == [b"five"], "the message that matches", found)
    await link.detach()
    await take_all(await session.attach_receiver(name=peer.name("rest")))


@case("jms", "5.2", "A message that comes back is delivered to a selector that takes it.")
async def a_returned_message_meets_selectors(peer: Conversation) -> None:
    session = await connected_session(peer)
    await send_all(await session.attach_sender(), numbered(1, b"one"))
    holder = await session.attach_receiver(name=peer.name("holder"))
    holder.grant(1)
    held = await receive_one(holder)
    link = await selecting(session, "x = 1")
    link.grant(1)
    holder.settle(held, Released())
    came = await receive_one(link)
    must(bodies([came]) == [b"one"], "the message that was released", bodies([came]))
    link.settle(came)


IDENTITY = uuid.UUID(int=0xABC)


@case("jms", "11.4", "A selector sees message-ids of all types in the form in which clients do.")
async def a_selector_sees_message_ids(peer: Conversation) -> None:
    ids: list[tuple[object, str]] = [
        ("ID:7", "ID:7"),
        (ULong(7), "ID:AMQP_ULONG:7"),
        (IDENTITY, f"ID:AMQP_UUID:{IDENTITY}"),
        (b"\x07\xab", "ID:AMQP_BINARY:07AB"),
        ("7", "ID:AMQP_NO_PREFIX:7"),
    ]
    session = await connected_session(peer)
    sender = await session.attach_sender()
    for value, text in ids:
        link = await selecting(session, f"JMSMessageID = '{text}'")
        await send_all(sender, message(text.encode(), properties(message_id=value)))
        found = await take_all(link)
        must(found == [text.encode()], f"the message with the id {text}", found)
        await link.detach()


async def check_found(peer: Conversation, selector: str, wanted: bytes, *others: bytes) -> None:
    """Fail if a consumer with `selector` does not get `wanted` alone of these messages."""
    session = await connected_session(peer)
    sender = await session.attach_sender()
    link = await selecting(session, selector)
    await send_all(sender, *others, wanted)
    found = await take_all(link)
    must(found == [body_of(wanted)], f"the message for {selector}", found)
    await link.detach()
    await take_all(await session.attach_receiver(name=peer.name("rest")))


@case("jms", "5.2", "To a selector, the JMSTimestamp of a message without creation-time is 0.")
async def a_selector_sees_a_missing_timestamp_as_zero(peer: Conversation) -> None:
    timed = message(b"timed", properties(creation_time=now_ms()))
    await check_found(peer, "JMSTimestamp = 0", message(b"it"), timed)


@case("jms", "5.2", "A selector sees reply-to-group-id as JMS_AMQP_REPLY_TO_GROUP_ID.")
async def a_selector_sees_the_group_of_replies(peer: Conversation) -> None:
    wanted = message(b"it", properties(reply_to_group_id="g"))
    other = message(b"other", properties(reply_to_group_id="h"))
    await check_found(peer, "JMS_AMQP_REPLY_TO_GROUP_ID = 'g'", wanted, other, message(b"none"))


@case("own", "JMSType", "A selector sees a JMSType that only x-opt-jms-type has.")
async def a_selector_sees_an_annotated_type(peer: Conversation) -> None:
    wanted = message(b"it", message_annotations(x_opt_jms_type="order"))
    other = message(b"other", message_annotations(x_opt_jms_type="other"))
    await check_found(peer, "JMSType = 'order'", wanted, other, message(b"none"))


@case("jms", "11.1", "A selector sees application properties of all types of JMS as what they are.")
async def a_selector_sees_properties_of_all_types(peer: Conversation) -> None:
    conditions: list[tuple[object, str]] = [
        (True, "p = TRUE"),
        (Short(-3), "p = -3"),
        (Int(70_000), "p / 7 = 10000"),
        (2**63 - 1, "p = 9223372036854775807"),
        (Float(0.25), "p = 0.25"),
        (0.001, "p = 1E-3"),
        ("it's", "p = 'it''s'"),
        ("a_b", "p LIKE 'a!_%' ESCAPE '!'"),
    ]
    session = await connected_session(peer)
    sender = await session.attach_sender()
    for value, condition in conditions:
        link = await selecting(session, condition)
        await send_all(sender, message(b"it", section(0x74, {"p": value})))
        found = await take_all(link)
        must(found == [b"it"], f"the message for {condition}", found)
        await link.detach()
