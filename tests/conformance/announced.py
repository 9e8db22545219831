"""Limits that the broker announces: a case that needs more is not applicable, and sends no more.

A broker that refuses what is beyond its own limits keeps the rules. Cases that go beyond one on
purpose say so by `Conversation.goes_beyond_limits`.
"""

from __future__ import annotations

from broker.amqp.frames import AMQP_FRAME, HEAD_SIZE
from broker.amqp.performatives import Attach, Begin, Open

from .verdict import Kind, NotApplicable


def check_frames(data: bytes, remote: Open | None) -> None:
    """Raise NotApplicable if a whole frame in `data` is larger or on a higher channel than allowed.

    What is no whole frame of AMQP, such as a header or malformed bytes, is let pass.
    """
    at = 0
    while remote is not None and at + HEAD_SIZE <= len(data):
        size = int.from_bytes(data[at : at + 4])
        if size < HEAD_SIZE or at + size > len(data) or data[at + 5] != AMQP_FRAME:
            return
        _check("max-frame-size", remote.max_frame_size, f"a frame of {size} bytes", size)
        channel = int.from_bytes(data[at + 6 : at + 8])
        _check("channel-max", remote.channel_max, f"channel {channel}", channel)
        at += size


def check_handle(handle: int, remote: Begin | None) -> None:
    """Raise NotApplicable if `handle` is above the handle-max of the broker's begin."""
    if remote is not None:
        _check("handle-max", remote.handle_max, f"handle {handle}", handle)


def check_message(size: int, remote: Attach | None) -> None:
    """Raise NotApplicable if the broker's attach allows no message of `size` bytes of payload."""
    if remote is not None and remote.max_message_size > 0:
        needed = f"a message of {size} bytes"
        _check("max-message-size", remote.max_message_size, needed, size)


def credit_too_small(granted: int, least: int) -> NotApplicable:
    """Return the verdict on a broker that grants credit, and less than a case needs at once."""
    return NotApplicable(
        f"the broker's credit is {granted}, and the case needs {least} at once", Kind.DID_NOT_HAPPEN
    )


def _check(limit: str, most: int, needed: str, number: int) -> None:
    if number > most:
        raise NotApplicable(
            f"the broker's {limit} is {int(most)}, and the case needs {needed}", Kind.DID_NOT_HAPPEN
        )
