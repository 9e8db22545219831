"""Steps of several cases: put and take messages, settle ranges, check and fail in words."""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import RECEIVER, Begin, Close, Detach, End, Flow

from .conversation import Conversation
from .frames import Disposition, Frame, Transfer, described
from .messages import body_of, message
from .session import Receiver, Sender, Session
from .verdict import Failed, Kind, NotApplicable

MANY: Final = 100
"""A number of messages that no case exceeds."""

OVERHEAD: Final = 100
"""Bytes that a transfer frame needs at most besides its payload."""


def must(holds: bool, expected: str, got: object) -> None:
    """Fail the case unless `holds`."""
    if not holds:
        raise Failed(expected, str(got))


async def connected_session(peer: Conversation) -> Session:
    """Open the connection; return a session."""
    await peer.open()
    return await peer.begin()


async def put(session: Session, *bodies: bytes) -> None:
    """Send messages to the address of the case; each must be accepted."""
    sender = await session.attach_sender(name=session.peer.name(f"put-{session.free_handle()}"))
    for body in bodies:
        await sender.credit()
        answer = await sender.settled(_send_in_frames(sender, message(body)))
        must(isinstance(answer.state, Accepted), "an accepted message", answer)
    await sender.detach()


def _send_in_frames(sender: Sender, payload: bytes) -> int:
    """Send a message in frames that the broker accepts; return its delivery-id."""
    remote = sender.session.peer.remote_open
    room = (512 if remote is None else min(int(remote.max_frame_size), 65_536)) - OVERHEAD
    delivery_id = sender.transfer(payload[:room], more=len(payload) > room)
    for at in range(room, len(payload), room):
        sender.go_on(payload[at : at + room], more=at + room < len(payload))
    return delivery_id


async def waiting(session: Session, least: int = 0) -> list[bytes]:
    """Consume all messages at the address of the case; return their bodies.

    Wait for `least` messages: a broker may return those of a detached link after a delay.
    """
    receiver = await session.attach_receiver(
        name=session.peer.name(f"waiting-{session.free_handle()}")
    )
    receiver.grant(MANY, drain=True)
    found: list[bytes] = []
    payload = b""
    while receiver.link_credit > 0 or receiver.amid_delivery:
        came = await next_frame(session.peer)
        if isinstance(came.body, Transfer) and came.body.handle == receiver.remote_handle:
            payload += came.body.payload
            if not came.body.more:
                found.append(body_of(payload))
                payload = b""
            if came.body.delivery_id is not None and not came.body.settled:
                receiver.settle(came.body)
    while len(found) < least:
        receiver.grant(1)
        late = await receiver.receive()
        receiver.settle(late)
        found.append(body_of(late.payload))
    await receiver.detach()
    return found


async def next_frame(peer: Conversation, *, but: type[Detach] | None = None) -> Frame:
    """Return the next frame, which must not end a link, session or connection.

    A frame of `but` without an error is allowed: it answers ours.
    """
    came = await peer.receive()
    body = came.body
    if but is not None and isinstance(body, but) and body.error is None:
        return came
    if isinstance(body, Detach | End | Close):
        raise Failed("the conversation to go on", described(came.raw))
    return came


async def expect_harmless(peer: Conversation) -> None:
    """Check that the last frames are accepted, or cause an error that is not the broker's own."""
    peer.send(Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), channel=7)
    came = await peer.receive()
    while not isinstance(came.body, Begin):
        if isinstance(came.body, Detach | End | Close) and came.body.error is not None:
            condition = came.body.error.condition
            must(condition != "amqp:internal-error", "an error that blames us", described(came.raw))
            return
        came = await peer.receive()


async def echo(peer: Conversation, handle: int = -1) -> Flow:
    """Return the flow that answers an echo, for the broker's `handle` if one is given.

    An answer is only a SHOULD: raise NotApplicable if there is none.
    """
    while True:
        try:
            came = await peer.receive()
        except Failed as failed:
            raise NotApplicable(
                f"the broker answers no echo: {failed.got}", Kind.DID_NOT_HAPPEN
            ) from None
        if isinstance(came.body, Flow) and (handle < 0 or came.body.handle == handle):
            return came.body


async def settled_all(sender: Sender, delivery_ids: list[int]) -> list[Disposition]:
    """Return the dispositions that settle all of `delivery_ids`, in any order and ranges."""
    left = set(delivery_ids)
    came: list[Disposition] = []
    while left:
        body = (await next_frame(sender.session.peer)).body
        if isinstance(body, Disposition) and body.role is RECEIVER and body.settled:
            came.append(body)
            left = {each for each in left if not body.covers(each)}
    return came


async def received(receiver: Receiver, count: int) -> list[Transfer]:
    """Grant credit for `count` deliveries; return them, unsettled."""
    receiver.grant(count)
    return [await receiver.receive() for _ in range(count)]


def bodies(deliveries: list[Transfer]) -> list[bytes]:
    return [body_of(each.payload) for each in deliveries]
