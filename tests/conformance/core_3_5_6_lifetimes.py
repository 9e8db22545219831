"""Core 3.5.6, 3.5.10 to 3.5.13: lifetimes of a dynamic node and the terminus that made it."""

from __future__ import annotations

from broker.amqp.terminus import LINK_DETACH, SESSION_END, Source, Target

from .conversation import Conversation
from .core_3_5_terminus import (
    DELETE_ON_CLOSE,
    DELETE_ON_NO_LINKS,
    DELETE_ON_NO_LINKS_OR_MESSAGES,
    DELETE_ON_NO_MESSAGES,
    address_of,
    answered,
    dynamic_target,
    wished,
)
from .exchange import check_empty, granted, pass_time, receive_one, send_all, take_all
from .harness import case
from .messages import message
from .session import Receiver, Sender, Session
from .steps import connected_session, must
from .verdict import Kind, NotApplicable

SECOND_MS = 1000
"""The shortest possible timeout, in ms."""


async def check_gone(session: Session, address: str) -> None:
    """Check that no node has that address, or that a new one has it, which is empty."""
    link = session.new_receiver(address)
    if await granted(link) is not None:
        await check_empty(link)


async def check_serves(sender: Sender, receiver: Receiver) -> None:
    """Check that what is sent to the node comes out of it, so that its end can be told."""
    await send_all(sender, message(b"served"))
    found = await take_all(receiver)
    must(found == [b"served"], "the message through the node", found)


async def creator(session: Session, expiry_policy: str, timeout_s: int = 0) -> Sender:
    """Return a link that made a node, whose terminus expires by that policy and timeout.

    Raise NotApplicable if the broker answers with others.
    """
    asked = wished(DELETE_ON_CLOSE, expiry_policy=expiry_policy, timeout=timeout_s)
    link = session.new_sender(
        name=session.peer.name("creator"),
        target=Target(**asked),  # type: ignore[arg-type]
    )
    made = await answered(link)
    if (made.expiry_policy, made.timeout) != (expiry_policy, timeout_s):
        raise NotApplicable(
            f"the terminus lives by {made.expiry_policy}, {made.timeout} s", Kind.NOT_OFFERED
        )
    return link


@case("core", "3.5.11", "A node that is deleted without links ends with the last of them.")
async def a_node_ends_with_its_last_link(peer: Conversation) -> None:
    session = await connected_session(peer)
    maker = await dynamic_target(session, DELETE_ON_NO_LINKS)
    address = address_of(maker)
    receiver = await session.attach_receiver(address)
    await check_serves(maker, receiver)
    await send_all(maker, message(b"lost"))
    await maker.detach()
    await receiver.detach()
    await check_gone(session, address)


@case("core", "3.5.12", "A node that is deleted without messages ends with the last of them.")
async def a_node_ends_with_its_last_message(peer: Conversation) -> None:
    session = await connected_session(peer)
    maker = await dynamic_target(session, DELETE_ON_NO_MESSAGES)
    address = address_of(maker)
    await send_all(maker, message(b"last"))
    await maker.detach()
    receiver = await session.attach_receiver(address)
    receiver.settle(await receive_one(receiver))
    await peer.expect_error()
    await check_gone(session, address)


@case("core", "3.5.13", "A node that is deleted without links and messages ends with the last.")
async def a_node_ends_with_its_last_link_and_message(peer: Conversation) -> None:
    session = await connected_session(peer)
    maker = await dynamic_target(session, DELETE_ON_NO_LINKS_OR_MESSAGES)
    address = address_of(maker)
    await send_all(maker, message(b"last"))
    await maker.detach()
    receiver = await session.attach_receiver(address)
    must(await take_all(receiver) == [b"last"], "the message", "none")
    await receiver.detach()
    await check_gone(session, address)


@case("core", "3.5.10", "A dynamic source is deleted with its link, and with it what it holds.")
async def a_dynamic_source_ends_with_its_link(peer: Conversation) -> None:
    session = await connected_session(peer)
    source = Source(**wished(DELETE_ON_CLOSE))  # type: ignore[arg-type]
    maker = session.new_receiver(source=source)
    await answered(maker)
    address = address_of(maker)
    sender = await session.attach_sender(address)
    await check_serves(sender, maker)
    await send_all(sender, message(b"lost"))
    await sender.detach()
    await maker.detach()
    await check_gone(session, address)


@case("core", "3.5.6", "A terminus of session-end outlives its link, and ends with the session.")
async def a_terminus_may_live_until_its_session_ends(peer: Conversation) -> None:
    session = await connected_session(peer)
    other = await peer.begin(channel=1)
    maker = await creator(other, SESSION_END)
    address = address_of(maker)
    await send_all(maker, message(b"kept"))
    await maker.detach(closed=False)
    receiver = await session.attach_receiver(address)
    must(await take_all(receiver) == [b"kept"], "the message", "none")
    await receiver.detach()
    sender = await session.attach_sender(address)
    await send_all(sender, message(b"lost"))
    await sender.detach()
    await other.end()
    await check_gone(session, address)


@case("core", "3.5.6", "A terminus with a timeout is there for a link of its name until then.")
async def a_terminus_waits_for_its_link(peer: Conversation) -> None:
    session = await connected_session(peer)
    maker = await creator(session, LINK_DETACH, 1)
    address = address_of(maker)
    await send_all(maker, message(b"kept"))
    await maker.detach(closed=False)
    again = await session.attach_sender(name=maker.name, target=Target(address=address))
    await pass_time(peer, SECOND_MS + 100)
    await send_all(again, message(b"too"))
    found = await take_all(await session.attach_receiver(address))
    must(found == [b"kept", b"too"], "both messages", found)


@case("core", "3.5.6", "A terminus with a timeout is gone once that is over.")
async def a_terminus_waits_no_longer_than_its_timeout(peer: Conversation) -> None:
    session = await connected_session(peer)
    maker = await creator(session, LINK_DETACH, 1)
    address = address_of(maker)
    receiver = await session.attach_receiver(address)
    await check_serves(maker, receiver)
    await receiver.detach()
    await send_all(maker, message(b"lost"))
    await maker.detach(closed=False)
    await pass_time(peer, SECOND_MS + 100)
    await check_gone(session, address)
