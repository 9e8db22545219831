"""Attacks of a user on what another user holds: links, client ids, subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.amqp.terminus import LINK_DETACH, NEVER, NOT_DURABLE, UNSETTLED_STATE, Source, Target
from tests.attacks.plan import Reached, Site
from tests.attacks.users import (
    HEALTHY,
    HELD_ID,
    MALLORY,
    RESERVED_ID,
    again_and_again,
    be_refused,
    client_of,
    hear_refusal,
    send,
    taken,
)
from tests.conformance.session import Session
from tests.conformance.uniqueness import CLOSE_EXISTING, STRONG, WEAK, claiming
from tests.support.frames import message

ATTEMPTS: Final = "attempts"
NEWS: Final = "news"
NAME: Final = "mine"
"""The name of every link and subscription that is attacked."""


def subscriber(
    address: str = NEWS, *capabilities: str, durable: int = UNSETTLED_STATE, expiry: str = NEVER
) -> Source:
    """Return the source of a subscriber; by default its subscription is durable."""
    return Source(
        address=address,
        durable=durable,
        expiry_policy=expiry,
        capabilities=["topic", *capabilities],
    )


async def _publish(session: Session) -> None:
    target = Target(address=NEWS, capabilities=["topic"])
    sender = await session.attach_sender(NEWS, target=target)
    await send(sender, message())
    await sender.detach()


async def links(site: Site) -> Reached:
    """Attach links by the names of another user's: of live ones, and of one to be resumed."""
    reached = Reached()
    kept = subscriber(durable=NOT_DURABLE)
    async with client_of(site, HEALTHY, "links") as holder:
        sender = await holder.attach_sender("healthy.links", name=NAME)
        receiver = await holder.attach_receiver("healthy.links", name=NAME)
        async with client_of(site, HEALTHY, "links-lost") as lost:
            await lost.attach_receiver(None, name=NAME, source=kept)

        async def attempt() -> None:
            await be_refused(site, reached, "links")
            async with client_of(site, MALLORY, "links-of-mallory") as other:
                await hear_refusal(other.new_sender("healthy.links", name=NAME), reached)
                await other.attach_sender("mallory.links", name=f"{NAME}-too")
            async with client_of(site, MALLORY, "links-lost") as thief:
                await hear_refusal(thief.new_receiver(None, name=NAME, source=kept), reached)
            async with client_of(site, MALLORY, "links-lost") as thief:
                ending = subscriber("other", durable=NOT_DURABLE, expiry=LINK_DETACH)
                await hear_refusal(thief.new_receiver(None, name=NAME, source=ending), reached)
            await _publish(holder)

        count = await again_and_again(site, attempt)
        await send(sender, message())
        receiver.grant(1)
        receiver.settle(await receiver.receive())
    async with client_of(site, HEALTHY, "links-lost") as back:
        there = len(await taken(back, "", name=NAME, source=kept))
    reached.figures = {ATTEMPTS: count, "messages of the resumed link": there}
    reached.check(there == count, f"{count} messages waited for the link, {there} were there")
    return reached


async def client_ids(site: Site) -> Reached:
    """Open with a container-id that another user holds, and with an idle one that a rule names."""
    reached = Reached()

    async def attempt() -> None:
        for container_id in (HELD_ID, RESERVED_ID):
            await be_refused(site, reached, container_id)
        async with client_of(site, HEALTHY, RESERVED_ID):
            await be_refused(site, reached, RESERVED_ID)

    reached.figures = {ATTEMPTS: await again_and_again(site, attempt)}
    return reached


async def close_existing(site: Site) -> Reached:
    """Claim a container-id for oneself alone, which would close the connections that hold it."""
    reached = Reached()
    claims = [claiming(CLOSE_EXISTING, detection) for detection in (STRONG, WEAK)]
    async with client_of(site, HEALTHY, "claimed", **claims[0]) as holder:
        link = await holder.attach_sender("healthy.claimed")

        async def attempt() -> None:
            for container_id in (HELD_ID, "claimed"):
                await be_refused(site, reached, container_id)
                for claim in claims:
                    await be_refused(site, reached, container_id, **claim)
            await send(link, message())

        count = await again_and_again(site, attempt)
        there = len(await taken(holder, "healthy.claimed"))
    reached.figures = {ATTEMPTS: count}
    reached.check(there == count, f"the holder has sent {count} messages, {there} were there")
    return reached


async def subscriptions(site: Site) -> Reached:
    """Resume another user's durable subscription, share it, and begin it anew with another topic.

    Its owner is connected in every second attempt.
    """
    sources = [subscriber(), subscriber(NEWS, "shared"), subscriber("other")]
    reached = Reached()
    await _against_subscription(site, reached, "subscriptions", sources=sources)
    return reached


async def lookups(site: Site) -> Reached:
    """Look another user's durable subscription up, which is how JMS clients end one."""
    reached = Reached()
    await _against_subscription(site, reached, "lookups", sources=[None])
    async with client_of(site, HEALTHY, "lookups") as owner:
        shared = subscriber(NEWS, "shared", "global")
        await owner.attach_receiver(None, name="everybody's", source=shared)
        async with client_of(site, MALLORY, "lookups-of-mallory") as other:
            asked = other.new_receiver(
                name="everybody's", source=None, desired_capabilities=["shared", "global"]
            )
            await hear_refusal(asked, reached)
    return reached


async def _against_subscription(
    site: Site, reached: Reached, container_id: str, *, sources: Sequence[Source | None]
) -> None:
    """Attach to a durable subscription of that container-id; its messages must all stay."""
    async with client_of(site, HEALTHY, container_id) as owner:
        link = await owner.attach_receiver(None, name=NAME, source=subscriber())
        await link.detach(closed=False)

    async def attempt() -> None:
        async with client_of(site, HEALTHY, f"{container_id}-publisher") as publisher:
            await _publish(publisher)
        for source in sources:
            async with client_of(site, MALLORY, container_id) as thief:
                await hear_refusal(thief.new_receiver(None, name=NAME, source=source), reached)
        async with client_of(site, HEALTHY, container_id) as owner:
            await owner.attach_receiver(None, name=NAME, source=subscriber())
            await be_refused(site, reached, container_id)

    count = await again_and_again(site, attempt)
    async with client_of(site, HEALTHY, container_id) as owner:
        there = len(await taken(owner, "", name=NAME, source=subscriber()))
    reached.figures = {ATTEMPTS: count, "messages kept for their subscriber": there}
    reached.check(there == count, f"{count} messages were published, {there} were there")
