"""Core 2.8.11: messages whose message-format is not 0, the one of messages made of sections.

No clause says that a broker takes them. One that does must not change what it cannot read, nor
tell a receiver that it is made of sections.
"""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import RELEASED, Accepted
from broker.amqp.performatives import Close, Detach, End

from .conversation import Conversation
from .exchange import bare, receive_one, send_all
from .frames import Disposition, Transfer, described
from .harness import case
from .messages import message
from .session import Receiver, Sender
from .steps import must, received

FOREIGN: Final = 0x434F_4E00
"""A format of nobody: its upper three octets are not those of the format of AMQP."""

LATER_VERSION: Final = 1
"""The format of AMQP messages in a version that is not specified."""

OPAQUE: Final = b"\xff\x00 no section of any kind " * 40
"""A payload of several frames of 512 bytes that is no AMQP message."""

PIECE: Final = 400
"""Bytes of a payload in one frame."""


async def both_ends(peer: Conversation) -> tuple[Sender, Receiver]:
    """Return a sender, and a receiver of small frames, through which a usual message has passed."""
    await peer.open(max_frame_size=512)
    session = await peer.begin()
    sender, receiver = await session.attach_sender(), await session.attach_receiver()
    await send_all(sender, message(b"usual"))
    came = await receive_one(receiver)
    receiver.settle(came)
    must(came.message_format == 0, "message-format 0, as it was sent", came.message_format)
    return sender, receiver


async def is_taken(sender: Sender, payload: bytes, message_format: int) -> bool:
    """Send a message in frames; return whether it is accepted. A refusal must have an error."""
    await sender.credit()
    pieces = [payload[at : at + PIECE] for at in range(0, len(payload), PIECE)]
    sender.transfer(pieces[0], message_format=message_format, more=len(pieces) > 1)
    for number, piece in enumerate(pieces[1:], start=2):
        sender.go_on(piece, more=number < len(pieces))
    peer = sender.session.peer
    came = await peer.receive()
    while not isinstance(came.body, Disposition | Detach | End | Close):
        came = await peer.receive()
    if isinstance(came.body, Disposition):
        return isinstance(came.body.state, Accepted)
    must(came.body.error is not None, "an error", described(came.raw))
    return False


def check_format(came: Transfer, message_format: int) -> None:
    """Check the format that the broker tells of a delivery."""
    told = came.message_format
    must(told == message_format, f"message-format {message_format:#x}, as it was sent", told)


@case(
    "core", "2.8.11", "A message of a foreign format is refused, or comes under it, byte for byte."
)
async def a_foreign_format_is_refused_or_kept(peer: Conversation) -> None:
    sender, receiver = await both_ends(peer)
    if not await is_taken(sender, OPAQUE, FOREIGN):
        return
    came = await receive_one(receiver)
    receiver.settle(came)
    check_format(came, FOREIGN)
    must(came.payload == OPAQUE, f"the {len(OPAQUE)} bytes that were sent", came.payload[:64].hex())


@case("core", "2.8.11", "A message of a foreign format comes again under it, and unchanged.")
async def a_foreign_format_outlives_a_release(peer: Conversation) -> None:
    sender, receiver = await both_ends(peer)
    if not await is_taken(sender, OPAQUE, FOREIGN):
        return
    await send_all(sender, message(b"behind it"))
    for each in await received(receiver, 2):
        receiver.settle(each, RELEASED)
    first, second = await received(receiver, 2)
    check_format(first, FOREIGN)
    must(first.payload == OPAQUE, f"the {len(OPAQUE)} bytes that were sent", first.payload[:64])
    check_format(second, 0)


@case("core", "2.8.11", "A message of a later version of the format is refused, or comes under it.")
async def a_later_version_of_the_format_is_refused_or_kept(peer: Conversation) -> None:
    sender, receiver = await both_ends(peer)
    payload = message(b"of version 1")
    if not await is_taken(sender, payload, LATER_VERSION):
        return
    came = await receive_one(receiver)
    receiver.settle(came)
    check_format(came, LATER_VERSION)
    must(bare(came.payload) == payload, "the message that was sent", came.payload.hex())
