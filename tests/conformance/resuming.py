"""Steps of the cases on resuming deliveries: links that are detached, and that come back."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from broker.amqp.decode import take_value
from broker.amqp.encode import put_binary, put_compound, put_null
from broker.amqp.outcomes import Accepted, State
from broker.amqp.performatives import RCV_SECOND, Attach
from broker.amqp.terminus import CONNECTION_CLOSE, LINK_DETACH, Source, Target
from broker.amqp.types import Map

from .conversation import Conversation
from .exchange import unless_not_offered
from .frames import Transfer
from .messages import message
from .session import Receiver, Sender, Session
from .steps import connected_session, must, put, received, waiting
from .verdict import Kind, NotApplicable

NOTHING_KEPT: Final = "the broker keeps nothing unsettled of a link that is detached"


def unsettled_map(states: dict[bytes, State | None]) -> bytes:
    """Return the encoded map of these states by their tags."""
    content = BytesWriter()
    for tag, state in states.items():
        put_binary(content, tag)
        if state is None:
            put_null(content)
        else:
            state.write(content)
    out = BytesWriter()
    put_compound(out, 0xC1, content, count=2 * len(states))
    return out.getvalue()


def source_of(peer: Conversation, policy: str = CONNECTION_CLOSE, timeout_s: int = 60) -> Source:
    """Return a source that outlives its link, and even its connection."""
    return Source(
        address=peer.address, expiry_policy=policy, timeout=timeout_s, capabilities=["queue"]
    )


def target_of(peer: Conversation) -> Target:
    """Return a target that outlives its link, and even its connection."""
    return Target(
        address=peer.address, expiry_policy=CONNECTION_CLOSE, timeout=60, capabilities=["queue"]
    )


async def detached(link: Receiver | Sender) -> None:
    """Detach a link without closing it; NotApplicable if the broker closes it."""
    if (await link.detach(closed=False)).closed:
        raise NotApplicable("the broker closes a link that is detached", Kind.NOT_OFFERED)


async def holding(
    peer: Conversation, count: int, *, source: Source | None = None
) -> tuple[Receiver, list[Transfer]]:
    """Return a link that is detached, and the deliveries that it has left unsettled.

    NotApplicable if the broker's attach tells that its source does not outlive a detach.
    """
    session = await connected_session(peer)
    await put(session, *[b"%d" % number for number in range(count)])
    receiver = await session.attach_receiver(source=source or source_of(peer))
    granted = None if receiver.remote_attach is None else receiver.remote_attach.source
    if granted is not None and granted.expiry_policy == LINK_DETACH and granted.timeout <= 0:
        raise NotApplicable("the broker says that its source ends with the link", Kind.NOT_OFFERED)
    deliveries = await received(receiver, count)
    await detached(receiver)
    return receiver, deliveries


def tag_of(delivery: Transfer) -> bytes:
    assert delivery.tag is not None
    return delivery.tag


async def come_back(
    former: Receiver | Sender,
    states: dict[bytes, State | None] | None,
    *,
    kept: int | None = 1,
    session: Session | None = None,
    incomplete: bool = False,
) -> Receiver | Sender:
    """Attach a link of the same name again, with a map of these states.

    Raise NotApplicable if the broker refuses the link as not-implemented, and unless its map has
    `kept` deliveries at least; None demands no map.
    """
    fields: dict[str, object] = {
        "name": former.name,
        "source": former.attach.source,
        "target": former.attach.target,
        "rcv_settle_mode": former.attach.rcv_settle_mode,
        "unsettled": None if states is None else unsettled_map(states),
        "incomplete_unsettled": incomplete,
    }
    session = session or former.session
    again: Receiver | Sender
    if isinstance(former, Receiver):
        again = session.new_receiver(**fields)
    else:
        again = session.new_sender(**fields)
    attach = await unless_not_offered(again)
    if kept is not None and (attach.unsettled is None or len(tags_in(attach)) < kept):
        raise NotApplicable(NOTHING_KEPT, Kind.NOT_OFFERED)
    return again


def tags_in(attach: Attach) -> list[bytes]:
    """Return the tags in the map of an attach: binaries of up to 255 bytes, each with its state."""
    if attach.unsettled is None:
        return []
    value, _ = take_value(attach.unsettled, 0, len(attach.unsettled))
    assert isinstance(value, Map)
    return [key for key, _ in value.pairs if isinstance(key, bytes)]


def check_map(link: Receiver | Sender, *tags: bytes) -> None:
    """Check that the map has exactly these tags, of a broker that has shown that it keeps some."""
    assert link.remote_attach is not None
    found = tags_in(link.remote_attach)
    must(sorted(found) == sorted(tags), f"a map of {sorted(tags)!r}", found)


async def receiver_back(
    former: Receiver, states: dict[bytes, State | None] | None, *, kept: int | None = 1
) -> Receiver:
    again = await come_back(former, states, kept=kept)
    assert isinstance(again, Receiver)
    return again


async def sender_back(
    former: Sender, states: dict[bytes, State | None] | None, *, kept: int | None = 1
) -> Sender:
    again = await come_back(former, states, kept=kept)
    assert isinstance(again, Sender)
    return again


async def sent(peer: Conversation, *tags: bytes, session: Session | None = None) -> Sender:
    """Return a link that settles second and is detached; it has sent a message for each tag.

    It is a link of `session`, by default of the first one of a new connection.
    """
    session = session or await connected_session(peer)
    sender = await session.attach_sender(target=target_of(peer), rcv_settle_mode=RCV_SECOND)
    attach = sender.remote_attach
    assert attach is not None
    if attach.rcv_settle_mode != RCV_SECOND:
        raise NotApplicable("the broker does not agree to settle second", Kind.NOT_OFFERED)
    await sender.credit(len(tags))
    for tag in tags:
        told = await sender.send(message(tag), tag=tag)
        must(isinstance(told.state, Accepted), "accepted", told)
        must(not told.settled, "an outcome that waits for our settlement", told)
    await detached(sender)
    return sender


async def after_all(link: Receiver | Sender, *expected: bytes) -> None:
    """Close the link; check that these messages are in the queue, in any order."""
    await link.detach()
    found = await waiting(link.session, len(expected))
    must(sorted(found) == sorted(expected), f"{len(expected)} messages: {expected!r}", found)
