"""The twelve rows of "Shared subscriptions" (SUB-01 to SUB-12): what an attach means.

There is a case for each row, and `--clause shared:table` for all of them, so that the harness
reports for any broker which of the rows it implements.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from broker.amqp.errors import NOT_FOUND, RESOURCE_LOCKED
from broker.amqp.performatives import Detach
from broker.amqp.terminus import (
    LINK_DETACH,
    NEVER,
    NOT_DURABLE,
    UNSETTLED_STATE,
    Source,
    SourceFilter,
)

from .conversation import Conversation
from .exchange import ALL_OUTCOMES, receive_one, send_all, take_all
from .harness import case
from .jms_destinations import publisher, topic_of
from .jms_subscriptions import SHARED_SUBS, condition_of, subscribed
from .messages import message
from .session import Receiver, Sender, Session
from .steps import connected_session, must
from .verdict import Kind, NotApplicable

CAPABILITIES: Final = ("shared", "global")


def wanted(address: str, words: str, stated: list[SourceFilter] | None = None) -> Source:
    """Return the source of a JMS subscriber; `words` are any of `shared global durable`."""
    durable = "durable" in words
    return Source(
        address=address,
        durable=UNSETTLED_STATE if durable else NOT_DURABLE,
        expiry_policy=NEVER if durable else LINK_DETACH,
        filter=stated,
        outcomes=list(ALL_OUTCOMES),
        capabilities=["topic", *(word for word in CAPABILITIES if word in words)],
    )


def link_name(peer: Conversation, name: str) -> str:
    """Return `name` with the part before its bar, if any, made unique to this case."""
    before, bar, behind = name.partition("|")
    return peer.name(before) + bar + behind


@asynccontextmanager
async def clients(
    peer: Conversation, words: str = ""
) -> AsyncIterator[tuple[Sender, Session, Session]]:
    """Yield a publisher, and the sessions of two clients with container-ids of their own."""
    sender = await publisher(await connected_session(peer))
    async with peer.another() as one, peer.another() as other:
        sessions = []
        for each, name in ((one, "one"), (other, "other")):
            opened = await each.open(
                container_id=peer.name(name), desired_capabilities=[SHARED_SUBS]
            )
            if "shared" in words and SHARED_SUBS not in opened.offered_capabilities:
                raise NotApplicable(f"the broker does not offer {SHARED_SUBS}", Kind.NOT_OFFERED)
            sessions.append(await each.begin())
        yield sender, sessions[0], sessions[1]


async def attached(session: Session, name: str, words: str) -> Receiver:
    """Return a subscriber to the topic of the case, after a check of the broker's answer."""
    source = wanted(topic_of(session.peer), words)
    link = await subscribed(session, link_name(session.peer, name), source)
    return check_answered(link, words)


def check_answered(link: Receiver, words: str) -> Receiver:
    """Check that the source in the answer is the one asked for; return `link`."""
    source = None if link.remote_attach is None else link.remote_attach.source
    assert source is not None
    durable = source.durable != NOT_DURABLE
    must(durable is ("durable" in words), "the durability that was asked for", source.durable)
    private = "shared" not in words and not durable
    for word in ("topic", *CAPABILITIES):
        if word == "topic" or (word in words and not private):
            must(word in source.capabilities, f"the capability {word}", source.capabilities)
        elif word == "shared":
            must(word not in source.capabilities, "no capability shared", source.capabilities)
    return link


async def check_gets(link: Receiver, *expected: bytes) -> None:
    """Check that a drain brings exactly these bodies, and accept them."""
    found = await take_all(link)
    must(found == list(expected), f"{list(expected)} for {link.name}", found)


async def check_shares(sender: Sender, first: Receiver, second: Receiver) -> None:
    """Check that the two have one subscription together."""
    await send_all(sender, message(b"one"), message(b"two"))
    came = await receive_one(first)
    first.settle(came)
    found = await take_all(second)
    must(len(found) == 1, "the other message for the second subscriber", found)
    await check_gets(first)


async def check_apart(sender: Sender, *links: Receiver) -> None:
    """Check that each has a subscription of its own."""
    await send_all(sender, message(b"to each"))
    for link in links:
        await check_gets(link, b"to each")


async def check_refused(link: Receiver, condition: str) -> None:
    """Check that the link is refused with `condition`, and finish its detach."""
    await link.expect_refused(condition)
    link.session.send(Detach(handle=link.handle, closed=True))
    link.session.links.pop(link.handle)


async def end(*links: Receiver) -> None:
    """Detach all links, the last one by closing it, which ends its subscription."""
    for link in links[:-1]:
        await link.detach(closed=False)
    error = (await links[-1].detach()).error
    must(error is None, "a detach without error", condition_of(error))


# -- rows 1 to 4: unshared


async def check_private(peer: Conversation, words: str) -> None:
    """Check that every link has its own subscription, which ends with it."""
    async with clients(peer) as (sender, one, other):
        first = await attached(one, "n", words)
        links = [await attached(one, "m", words), await attached(other, "n", words)]
        await check_apart(sender, first, *links)
        await first.detach()
        await send_all(sender, message(b"missed"))
        await check_gets(await attached(one, "n", words))
        for link in links:
            await check_gets(link, b"missed")


@case("shared", "table.1", "SUB-01: a volatile subscriber has a subscription of its own.")
async def row_1_is_private(peer: Conversation) -> None:
    await check_private(peer, "")


@case("shared", "table.2", "SUB-02: a durable one is its container's, by the whole link name.")
async def row_2_is_durable(peer: Conversation) -> None:
    async with clients(peer) as (sender, one, other):
        first = await attached(one, "n", "durable")
        others = [await attached(one, "n|2", "durable"), await attached(other, "n", "durable")]
        await check_apart(sender, first, *others)
        await first.detach(closed=False)
        await send_all(sender, message(b"kept"))
        again = await attached(one, "n", "durable")
        for link in (again, *others):
            await check_gets(link, b"kept")
            await end(link)


@case("shared", "table.3", "SUB-03: a volatile subscriber that says global has its own, too.")
async def row_3_is_private(peer: Conversation) -> None:
    await check_private(peer, "global")


@case("shared", "table.4", "SUB-04: a durable global one is anybody's, but one's at a time.")
async def row_4_is_global_and_durable(peer: Conversation) -> None:
    words = "global durable"
    async with clients(peer) as (sender, one, other):
        first = await attached(one, "n", words)
        second = other.new_receiver(name=first.name, source=wanted(topic_of(peer), words))
        await check_refused(second, RESOURCE_LOCKED)
        await send_all(sender, message(b"undisturbed"))
        await check_gets(first, b"undisturbed")
        await first.detach(closed=False)
        await send_all(sender, message(b"kept"))
        second = await attached(other, "n", words)
        await check_gets(second, b"kept")
        await end(second)


# -- rows 5 to 8: shared


async def check_volatile(sender: Sender, link: Receiver, session: Session, words: str) -> None:
    """Check that the subscription ends with `link`, its last one."""
    await link.detach()
    await send_all(sender, message(b"missed"))
    await check_gets(await attached(session, "n|volatile9", words))


async def check_durable(sender: Sender, link: Receiver, session: Session, words: str) -> None:
    """Check that the subscription continues without `link`, its last one."""
    await link.detach(closed=False)
    await send_all(sender, message(b"kept"))
    last = await attached(session, "n|9", words)
    await check_gets(last, b"kept")
    await end(last)


@case("shared", "table.5", "SUB-05: a volatile shared one is its container's, until the last goes.")
async def row_5_is_shared_and_volatile(peer: Conversation) -> None:
    async with clients(peer, "shared") as (sender, one, other):
        first = await attached(one, "n|volatile1", "shared")
        second = await attached(one, "n|volatile2", "shared")
        await check_shares(sender, first, second)
        await check_apart(sender, await attached(other, "n|volatile1", "shared"))
        await take_all(first)
        await second.detach()
        await check_volatile(sender, first, one, "shared")


@case("shared", "table.6", "SUB-06: a durable shared one is its container's.")
async def row_6_is_shared_and_durable(peer: Conversation) -> None:
    words = "shared durable"
    async with clients(peer, words) as (sender, one, other):
        first = await attached(one, "n", words)
        second = await attached(one, "n|2", words)
        await check_shares(sender, first, second)
        strange = await attached(other, "n", words)
        await check_apart(sender, strange)
        await end(strange)
        await take_all(first)
        await second.detach(closed=False)
        await check_durable(sender, first, one, words)


@case(
    "shared", "table.7", "SUB-07: a volatile shared global one is everybody's, while one is there."
)
async def row_7_is_shared_and_global(peer: Conversation) -> None:
    words = "shared global"
    async with clients(peer, words) as (sender, one, other):
        first = await attached(one, "n|global-volatile1", words)
        second = await attached(other, "n|global-volatile1", words)
        await check_shares(sender, first, second)
        await second.detach()
        await check_volatile(sender, first, other, words)


@case("shared", "table.8", "SUB-08: a durable shared global one is everybody's.")
async def row_8_is_shared_global_and_durable(peer: Conversation) -> None:
    words = "shared global durable"
    async with clients(peer, words) as (sender, one, other):
        first = await attached(one, "n|global", words)
        second = await attached(other, "n|global", words)
        await check_shares(sender, first, second)
        await second.detach(closed=False)
        await check_durable(sender, first, other, words)


# -- rows 9 to 12: without a source


def look_up(session: Session, name: str, words: str) -> Receiver:
    """Send an attach without a source; do not await the answer."""
    return session.new_receiver(
        name=link_name(session.peer, name),
        source=None,
        desired_capabilities=[word for word in CAPABILITIES if word in words],
    )


async def check_lookup(peer: Conversation, made: str, names: tuple[str, str], words: str) -> None:
    """Check that what `made` created under the first name is found under the second.

    Only a lookup with exactly these `words` finds it.
    """
    name, sought = names
    async with clients(peer, f"{made} {words}") as (sender, one, other):
        await (await attached(one, name, made)).detach(closed=False)
        await send_all(sender, message(b"kept"))
        is_global = "global" in words
        lookup = look_up(other if is_global else one, sought, words)
        source = (await lookup.expect_attached()).source
        assert source is not None
        must(source.address == topic_of(peer), topic_of(peer), source.address)
        must(source.durable != NOT_DURABLE, "a durable source", source.durable)
        for word in CAPABILITIES:
            must((word in source.capabilities) is (word in made), made, source.capabilities)
        await check_gets(lookup)
        await lookup.detach(closed=False)
        elsewhere = words.replace("global", "") if is_global else words
        await check_refused(look_up(other, sought, elsewhere), NOT_FOUND)
        again = await attached(one, name, made)
        await check_gets(again, b"kept")
        await again.detach(closed=False)
        lookup = look_up(other if is_global else one, sought, words)
        await lookup.expect_attached()
        await end(lookup)
        await check_refused(look_up(one, sought, words), NOT_FOUND)


@case(
    "shared", "table.9", "SUB-09: no source finds its container's durable one, by the whole name."
)
async def row_9_looks_up(peer: Conversation) -> None:
    await check_lookup(peer, "durable", ("n", "n"), "")


@case("shared", "table.10", "SUB-10: no source, global: the durable one of everybody.")
async def row_10_looks_up_global(peer: Conversation) -> None:
    await check_lookup(peer, "global durable", ("n", "n"), "global")


@case("shared", "table.11", "SUB-11: no source, shared: what follows the bar is not the name.")
async def row_11_looks_up_shared(peer: Conversation) -> None:
    await check_lookup(peer, "shared durable", ("n|2", "n|3"), "shared")


@case("shared", "table.12", "SUB-12: no source, shared and global: both.")
async def row_12_looks_up_shared_and_global(peer: Conversation) -> None:
    await check_lookup(peer, "shared global durable", ("n|global", "n|global2"), "shared global")
