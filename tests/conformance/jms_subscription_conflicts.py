"""Conflicts of attaches for one subscription: which is refused, which ends it (SUB-20 to 40)."""

from __future__ import annotations

from broker.amqp.errors import NOT_FOUND, RESOURCE_LOCKED, STOLEN
from broker.amqp.performatives import Attach, Detach
from broker.amqp.terminus import LINK_DETACH, NEVER, NOT_DURABLE, SESSION_END, Source, Target

from .conversation import Conversation
from .core_3_5_6_lifetimes import SECOND_MS
from .exchange import header, pass_time, receive_one, send_all, take_all
from .harness import case
from .jms_destinations import topic_of
from .jms_subscription_rows import (
    attached,
    check_apart,
    check_gets,
    check_refused,
    check_shares,
    clients,
    end,
    link_name,
    look_up,
    wanted,
)
from .jms_subscriptions import SELECTOR, SHARED_SUBS, condition_of, filter_of, subscribed
from .messages import message
from .session import Receiver, Session
from .steps import connected_session, must
from .verdict import Kind, NotApplicable


def other_topic(peer: Conversation) -> str:
    return f"{topic_of(peer)}.other"


def to_other_topic(session: Session, name: str, words: str) -> Receiver:
    """Send an attach by that name to another topic than the case's; do not await the answer."""
    name = link_name(session.peer, name)
    return session.new_receiver(name=name, source=wanted(other_topic(session.peer), words))


def attaching(session: Session, name: str, words: str) -> Receiver:
    """Like `attached`, but do not await the answer."""
    source = wanted(topic_of(session.peer), words)
    return session.new_receiver(name=link_name(session.peer, name), source=source)


# -- another topic, another selector (SUB-21)


@case("jms", "7.4", "With another topic a subscription without consumers starts anew, and empty.")
async def another_topic_begins_anew(peer: Conversation) -> None:
    async with clients(peer) as (sender, one, _):
        await (await attached(one, "n", "durable")).detach(closed=False)
        await send_all(sender, message(b"dropped"))
        elsewhere = await sender.session.attach_sender(
            target=Target(address=other_topic(peer), capabilities=["topic"])
        )
        link = to_other_topic(one, "n", "durable")
        answer = (await link.expect_attached()).source
        assert answer is not None
        must(answer.address == other_topic(peer), other_topic(peer), answer.address)
        await send_all(sender, message(b"not wanted any more"))
        await send_all(elsewhere, message(b"wanted now"))
        await check_gets(link, b"wanted now")
        await end(link)


@case(
    "jms", "7.4", "With another selector a subscription without consumers starts anew, and empty."
)
async def another_selector_begins_anew(peer: Conversation) -> None:
    async with clients(peer) as (sender, one, _):
        link = await selecting_durably(one, "JMSPriority = 4")
        if not filters_in(link):
            raise NotApplicable(
                "the broker does not answer the selector as a filter in force", Kind.NOT_OFFERED
            )
        await link.detach(closed=False)
        await send_all(sender, message(b"dropped"))
        link = await selecting_durably(one, "JMSPriority = 5")
        must(filters_in(link) == ["JMSPriority = 5"], "the other selector", filters_in(link))
        await send_all(sender, message(b"not wanted any more"))
        await send_all(sender, message(b"wanted now", header(priority=5)))
        await check_gets(link, b"wanted now")
        await end(link)


async def selecting_durably(session: Session, selector: str) -> Receiver:
    """Return a durable subscriber with a selector, which may not be in force."""
    stated = filter_of("jms-selector", SELECTOR, selector)
    source = wanted(topic_of(session.peer), "durable", [stated])
    return await subscribed(session, link_name(session.peer, "n"), source)


def filters_in(link: Receiver) -> list[object]:
    """Return the values of the filters in the broker's answer."""
    assert link.remote_attach is not None
    assert link.remote_attach.source is not None
    return [each.value for each in link.remote_attach.source.filter]


@case("jms", "7.4", "Another topic is refused with resource-locked while others consume.")
async def another_topic_is_refused_while_in_use(peer: Conversation) -> None:
    words = "shared durable"
    async with clients(peer, words) as (sender, one, _):
        holder = await attached(one, "n", words)
        await check_refused(to_other_topic(one, "n|2", words), RESOURCE_LOCKED)
        await send_all(sender, message(b"undisturbed"))
        await check_gets(holder, b"undisturbed")
        await end(holder)


# -- shared or not (SUB-22), names that coexist (SUB-24), live links (SUB-26)


async def check_conflict(peer: Conversation, first: str, second: str) -> None:
    """Check that a `first` subscription refuses a `second` attach, in use or not, unharmed."""
    async with clients(peer, "shared") as (sender, one, _):
        holder = await attached(one, "n", first)
        alias = "n|2" if "shared" in second else "n"
        if alias != "n":
            await check_refused(attaching(one, alias, second), RESOURCE_LOCKED)
        await send_all(sender, message(b"undisturbed"))
        await holder.detach(closed=False)
        await check_refused(attaching(one, alias, second), RESOURCE_LOCKED)
        again = await attached(one, "n", first)
        await check_gets(again, b"undisturbed")
        await end(again)


@case("jms", "7.4", "A shared subscriber is refused where an unshared subscription has the name.")
async def an_unshared_subscription_is_not_shared(peer: Conversation) -> None:
    await check_conflict(peer, "durable", "shared durable")


@case("jms", "7.4", "An unshared subscriber is refused where a shared subscription has the name.")
async def a_shared_subscription_is_nobodys_alone(peer: Conversation) -> None:
    await check_conflict(peer, "shared durable", "durable")


@case("jms", "7.2", "Durable and volatile, container's and global ones of one name coexist.")
async def subscriptions_of_one_name_coexist(peer: Conversation) -> None:
    async with clients(peer, "shared") as (sender, one, _):
        links = [
            await attached(one, "n", "shared durable"),
            await attached(one, "n|volatile1", "shared"),
            await attached(one, "n|global", "shared global durable"),
            await attached(one, "n|global-volatile1", "shared global"),
        ]
        await check_apart(sender, *links)
        for link in links:
            await end(link)


async def check_not_stolen(peer: Conversation, first: str, second: str) -> None:
    """Check that a live link for one subscription is not stolen for the other."""
    async with clients(peer, "shared") as (sender, one, _):
        holder = await attached(one, "n", first)
        again = await one.peer.begin(channel=1)
        await check_refused(attaching(again, "n", second), RESOURCE_LOCKED)
        await send_all(sender, message(b"undisturbed"))
        await check_gets(holder, b"undisturbed")
        await end(holder)
        await end(await attached(again, "n", second))


@case("jms", "7.4", "A link for a global subscription is not stolen for the container's.")
async def a_global_link_is_not_stolen(peer: Conversation) -> None:
    await check_not_stolen(peer, "shared global durable", "shared durable")


@case("jms", "7.4", "A link for the container's subscription is not stolen for a global one.")
async def a_containers_link_is_not_stolen(peer: Conversation) -> None:
    await check_not_stolen(peer, "shared durable", "shared global durable")


# -- the contents of the answer, SUB-20, 23 and 25


@case("jms", "7.3", "The answer to a subscriber offers shared subscriptions, asked or not.")
async def attaches_offer_shared_subscriptions(peer: Conversation) -> None:
    async with clients(peer, "shared") as (_, one, _):
        for words in ("", "shared"):
            link = await attached(one, f"n{words}|volatile1", words)
            assert link.remote_attach is not None
            offered = link.remote_attach.offered_capabilities
            must(SHARED_SUBS in offered, SHARED_SUBS, offered)


@case("shared", "lifetime", "One that asks for another lifetime is told the real one.")
async def the_real_lifetime_is_told(peer: Conversation) -> None:
    async with clients(peer, "shared") as (_, one, _):
        first = await attached(one, "n", "shared durable")
        assert first.remote_attach is not None
        granted = first.remote_attach.source
        assert granted is not None
        usual = wanted(topic_of(peer), "shared durable")
        source = Source(
            address=usual.address,
            durable=1,
            expiry_policy=LINK_DETACH,
            timeout=60,
            outcomes=usual.outcomes,
            capabilities=usual.capabilities,
        )
        second = await subscribed(one, link_name(peer, "n|2"), source)
        assert second.remote_attach is not None
        told = second.remote_attach.source
        assert told is not None
        # a broker that keeps no unsettled state over a restart grants less than was asked for
        must(granted.durable != NOT_DURABLE, "a durable source", granted.durable)
        real = (granted.durable, NEVER, 0)
        found = (told.durable, told.expiry_policy, told.timeout)
        must(found == real, str(real), found)
        await end(first, second)


async def lasting(session: Session, expiry_policy: str, timeout_s: int = 0) -> Receiver:
    """Return a volatile subscriber with that policy and timeout.

    Raise NotApplicable if the broker answers with another lifetime.
    """
    usual = wanted(topic_of(session.peer), "")
    source = Source(
        address=usual.address,
        expiry_policy=expiry_policy,
        timeout=timeout_s,
        outcomes=usual.outcomes,
        capabilities=usual.capabilities,
    )
    link = await subscribed(session, link_name(session.peer, "lasting"), source)
    assert link.remote_attach is not None
    told = link.remote_attach.source
    assert told is not None
    if (told.expiry_policy, told.timeout) != (expiry_policy, timeout_s):
        raise NotApplicable(
            f"the terminus lives by {told.expiry_policy}, {told.timeout} s", Kind.NOT_OFFERED
        )
    return link


@case(
    "core", "3.5.6", "A subscription of session-end outlives its link, and ends with the session."
)
async def a_subscription_may_last_until_its_session_ends(peer: Conversation) -> None:
    async with clients(peer) as (sender, one, _):
        await (await lasting(one, SESSION_END)).detach(closed=False)
        await send_all(sender, message(b"kept"))
        again = await lasting(one, SESSION_END)
        await check_gets(again, b"kept")
        await again.detach(closed=False)
        await one.end()
        await send_all(sender, message(b"missed"))
        await check_gets(await lasting(await one.peer.begin(), SESSION_END))


@case("core", "3.5.6", "A subscription with a timeout is there for its link until that is over.")
async def a_subscription_waits_for_its_timeout(peer: Conversation) -> None:
    async with clients(peer) as (sender, one, _):
        await (await lasting(one, LINK_DETACH, 1)).detach(closed=False)
        await send_all(sender, message(b"kept"))
        again = await lasting(one, LINK_DETACH, 1)
        await pass_time(peer, SECOND_MS + 100)
        await check_gets(again, b"kept")
        await again.detach(closed=False)
        await pass_time(peer, SECOND_MS + 100)
        await send_all(sender, message(b"missed"))
        await check_gets(await lasting(one, LINK_DETACH, 1))


# -- ends (SUB-31 to SUB-33, SUB-36), names (SUB-35)


@case("jms", "7.5", "However often an unsubscribe fails, it changes nothing.")
async def a_failed_unsubscribe_changes_nothing(peer: Conversation) -> None:
    words = "shared durable"
    async with clients(peer, words) as (sender, one, _):
        holder = await attached(one, "n|2", words)
        await send_all(sender, message(b"first"), message(b"second"))
        came = await receive_one(holder)
        for _attempt in range(3):
            lookup = look_up(one, "n", "shared")
            await lookup.expect_attached()
            error = (await lookup.detach()).error
            must(condition_of(error) == RESOURCE_LOCKED, RESOURCE_LOCKED, condition_of(error))
        holder.settle(came)
        await check_gets(holder, b"second")
        await end(holder)


@case("jms", "7.5", "A lookup by the name of a live link is refused, and leaves that alone.")
async def a_lookup_does_not_steal(peer: Conversation) -> None:
    async with clients(peer) as (sender, one, _):
        holder = await attached(one, "n", "durable")
        again = await one.peer.begin(channel=1)
        await check_refused(look_up(again, "n", ""), RESOURCE_LOCKED)
        await send_all(sender, message(b"undisturbed"))
        await check_gets(holder, b"undisturbed")
        await end(holder)


@case("jms", "7.5", "A lookup finds no volatile subscription, and makes none.")
async def a_lookup_finds_nothing_volatile(peer: Conversation) -> None:
    async with clients(peer, "shared") as (sender, one, _):
        holder = await attached(one, "n|volatile1", "shared")
        await check_refused(look_up(one, "n|2", "shared"), NOT_FOUND)
        await check_apart(sender, holder)


@case("jms", "7.2", "A volatile shared subscription ends with its last link, closed or not.")
async def a_volatile_subscription_ends_with_its_last_link(peer: Conversation) -> None:
    async with clients(peer, "shared") as (sender, one, _):
        first = await attached(one, "n|volatile1", "shared")
        second = await attached(one, "n|volatile2", "shared")
        await first.detach(closed=False)
        await check_apart(sender, second)
        await second.detach(closed=False)
        await send_all(sender, message(b"missed"))
        await check_gets(await attached(one, "n|volatile1", "shared"))


@case("jms", "7.2", "What follows the bar tells the links of one shared subscription apart.")
async def what_follows_the_bar_means_nothing(peer: Conversation) -> None:
    words = "shared durable"
    async with clients(peer, words) as (sender, one, _):
        for names in (("n", "n|2"), ("n|global", "n|anything"), ("n|volatile1", "n|2|3")):
            first, second = [await attached(one, name, words) for name in names]
            await check_shares(sender, first, second)
            await first.detach(closed=False)
            await second.detach(closed=False)
        await end(await attached(one, "n", words))


@case("jms", "7.4", "A subscription that has been ended is made again by an attach.")
async def what_was_ended_may_begin_again(peer: Conversation) -> None:
    async with clients(peer) as (sender, one, _):
        await end(await attached(one, "n", "durable"))
        await send_all(sender, message(b"missed"))
        again = await attached(one, "n", "durable")
        await check_apart(sender, again)
        await end(again)


@case("jms", "7.1", "A closing detach of a queue's consumer ends no queue.")
async def closing_a_consumer_ends_no_queue(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    receiver = await session.attach_receiver()
    await send_all(sender, message(b"kept"))
    error = (await receiver.detach()).error
    must(error is None, "a detach without error", condition_of(error))
    found = await take_all(await session.attach_receiver())
    must(found == [b"kept"], "the message", found)


# -- at once (SUB-37, SUB-39)


async def check_steal(peer: Conversation, words: str) -> None:
    """Check that a second link of that name gets the subscription with all its messages."""
    async with clients(peer, words) as (sender, one, _):
        first = await attached(one, "n", words)
        await send_all(sender, message(b"held"), message(b"waiting"))
        await receive_one(first)
        again = await one.peer.begin(channel=1)
        second = attaching(again, "n", words)
        stolen = await one.peer.expect_until(Detach)
        must(condition_of(stolen.error) == STOLEN, STOLEN, condition_of(stolen.error))
        one.send(Detach(handle=first.handle, closed=True))
        one.links.pop(first.handle)
        if second.remote_attach is None:
            await one.peer.expect(Attach, name=second.name)
        await check_gets(second, b"held", b"waiting")
        await end(second)


@case("core", "2.6.1", "Who steals the link of a durable subscription gets all that is in it.")
async def a_steal_loses_no_message_of_a_durable_subscription(peer: Conversation) -> None:
    await check_steal(peer, "durable")


@case("core", "2.6.1", "Who steals the only link of a volatile subscription does not end it.")
async def a_steal_does_not_end_a_volatile_subscription(peer: Conversation) -> None:
    await check_steal(peer, "shared")


@case("jms", "7.1", "Two clients that begin one subscription at once get one.")
async def two_that_begin_at_once_get_one(peer: Conversation) -> None:
    words = "shared global durable"
    async with clients(peer, words) as (sender, one, other):
        links = [attaching(session, "n|global", words) for session in (one, other)]
        for link in links:
            await link.expect_attached()
        await check_shares(sender, links[0], links[1])
        await end(*links)
