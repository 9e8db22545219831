"""Core 2.4.3 to 2.4.6: closing, and keeping a silent connection open."""

from __future__ import annotations

import asyncio
from typing import Final

from broker.amqp.descriptors import OPEN
from broker.amqp.frames import AMQP_HEADER, EMPTY_FRAME
from broker.amqp.performatives import Begin, Close, Error, Flow

from .conversation import Conversation
from .core_3_5_terminus import address_of, dynamic_target
from .frames import Empty, described, raw_frame
from .harness import case
from .messages import section
from .steps import connected_session
from .verdict import Failed, Kind, NotApplicable, require

IDLE_MS: Final = 1000
SILENCE_S: Final = 10.0
"""The longest idle time-out of a server, in seconds, for which a case waits."""


@case("core", "2.4.3", "A close is answered with a close, and nothing comes behind it.")
async def close_is_answered(peer: Conversation) -> None:
    await peer.open()
    peer.send(Close())
    await peer.expect(Close, error=None)
    await peer.expect_eof()


@case("core", "2.4.3", "A close ends sessions and links that are still there.")
async def close_ends_sessions_and_links(peer: Conversation) -> None:
    await peer.open()
    session = await peer.begin()
    await session.attach_sender()
    (await session.attach_receiver()).grant(10)
    await peer.close()


@case(
    "core",
    "2.4.3",
    "A close is answered by a close alone, also if links end others by their nodes.",
)
async def links_that_end_with_the_connection_are_not_detached(peer: Conversation) -> None:
    session = await connected_session(peer)
    other = await peer.begin(channel=1)
    address = address_of(await dynamic_target(session))
    (await session.attach_receiver(address)).grant(10)
    await other.attach_sender(address)
    peer.send(Close())
    await peer.expect(Close)
    await peer.expect_eof()


@case("core", "2.4.3", "A close with an error is answered as one without.")
async def close_with_an_error_is_answered(peer: Conversation) -> None:
    await peer.open()
    peer.send(Close(error=Error(condition="amqp:internal-error", description="only a try")))
    await peer.expect(Close)
    await peer.expect_eof()


@case("core", "2.4.3", "A close may come on any channel.")
async def close_on_another_channel_is_answered(peer: Conversation) -> None:
    opened = await peer.open()
    peer.send(Close(), channel=min(5, int(opened.channel_max)))
    await peer.expect(Close, error=None)
    await peer.expect_eof()


@case("core", "2.4.3", "Before the server closes for an error it writes a close with the reason.")
async def reason_is_told_before_closing(peer: Conversation) -> None:
    await peer.open()
    peer.send_raw(section(0x00AA, []))
    await peer.expect_closed()


@case("core", "2.4.3", "A close that goes out with the server's open is on channel 0.")
async def close_with_an_open_is_on_channel_0(peer: Conversation) -> None:
    await peer.login()
    peer.send_bytes(AMQP_HEADER)
    peer.send_raw(section(OPEN, []))
    await peer.expect_header(AMQP_HEADER)
    try:
        came = await peer.receive()
        while not isinstance(came.body, Close):
            came = await peer.receive()
    except Failed as failed:
        raise NotApplicable(
            f"no close came for an open without container-id: {failed}", Kind.DID_NOT_HAPPEN
        ) from None
    require(came.channel == 0, "a close on channel 0", f"channel {came.channel}")


@case("core", "2.4.3", "A close is the last frame: what comes after the client's has no effect.")
async def nothing_is_answered_after_close(peer: Conversation) -> None:
    await peer.open()
    peer.send(Close())
    peer.send(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    await peer.expect(Close)
    await peer.expect_eof()


@case("core", "2.4.6", "After closing for an error the server discards frames until the close.")
async def frames_after_an_error_are_discarded(peer: Conversation) -> None:
    await peer.open()
    peer.send_raw(section(0x00AA, []))
    begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    peer.send(begin, Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, echo=True))
    await peer.expect_closed()


@case("core", "2.4.5", "Empty frames are accepted on any channel, begun or not.")
async def empty_frames_are_accepted_on_any_channel(peer: Conversation) -> None:
    opened = await peer.open()
    peer.send_bytes(EMPTY_FRAME)
    peer.send_bytes(raw_frame(b"", min(9, int(opened.channel_max))))
    session = await peer.begin()
    peer.send_bytes(EMPTY_FRAME)
    await session.end()
    await peer.close()


@case("core", "2.4.5", "A frame comes within the client's idle-time-out, or it is refused.")
async def silence_ends_within_the_idle_time_out(peer: Conversation) -> None:
    await _open_idle(peer, IDLE_MS)
    for _ in range(3):
        try:
            came = await peer.receive_any(timeout_s=IDLE_MS / 1000 * 1.1)
        except Failed as failed:
            raise Failed(f"a frame every {IDLE_MS} ms", failed.got) from None
        if isinstance(came.body, Close):
            return


async def _open_idle(peer: Conversation, idle_time_out: int) -> None:
    opened = await peer.open(idle_time_out=idle_time_out)
    peer.remote_open = opened


@case("core", "2.4.5", "What keeps a connection alive is an empty frame on channel 0, or a flow.")
async def keepalives_are_empty_frames(peer: Conversation) -> None:
    await _open_idle(peer, IDLE_MS)
    try:
        came = await peer.receive_any(timeout_s=IDLE_MS / 1000 * 2)
    except Failed as failed:
        raise NotApplicable(f"no keepalive came: {failed.got}", Kind.DID_NOT_HAPPEN) from None
    if isinstance(came.body, Close):
        raise NotApplicable("the broker refuses an idle-time-out of a second", Kind.NOT_OFFERED)
    if not isinstance(came.body, Empty | Flow):
        raise Failed("an empty frame or a flow", described(came.raw))


@case("core", "2.7.1", "An idle-time-out of zero is none.")
async def idle_time_out_of_zero_is_none(peer: Conversation) -> None:
    await _open_idle(peer, 0)
    await peer.begin()
    await peer.close()


@case("core", "2.4.5", "Beyond its idle-time-out the server closes with a reason (SHOULD).")
async def silent_client_is_told_why_it_is_closed(peer: Conversation) -> None:
    patience_s = _patience_s(int((await peer.open()).idle_time_out))
    try:
        came = await peer.receive_any(timeout_s=patience_s)
        while not isinstance(came.body, Close):
            came = await peer.receive_any(timeout_s=patience_s)
    except Failed as failed:
        raise Failed("a close with an error", failed.got) from None
    if came.body.error is None:
        raise Failed("a close with an error", described(came.raw))
    peer.send(Close())
    await peer.expect_eof()


@case("core", "2.4.5", "Empty frames alone keep a connection alive.")
async def empty_frames_keep_a_connection_alive(peer: Conversation) -> None:
    idle_ms = int((await peer.open()).idle_time_out)
    silence_s = _patience_s(idle_ms)
    # three frames, each just before the server's idle-time-out, span more than twice that time
    for _ in range(3):
        try:
            async with asyncio.timeout(idle_ms / 1000 * 0.9):
                came = await peer.receive_any(timeout_s=silence_s)
        except TimeoutError:
            peer.send_bytes(EMPTY_FRAME)
            continue
        if not isinstance(came.body, Empty):
            raise Failed("a connection that stays open", described(came.raw))
    await peer.close()


def _patience_s(idle_time_out_ms: int) -> float:
    """Return the seconds of silence after which the server must have closed, with a margin.

    That is twice the idle-time-out that it announces (2.4.5), and two seconds. Raise NotApplicable
    without an idle-time-out, or with too long a one.
    """
    if idle_time_out_ms <= 0:
        raise NotApplicable("the broker names no idle-time-out", Kind.NOT_OFFERED)
    if idle_time_out_ms / 1000 > SILENCE_S:
        raise NotApplicable(
            f"an idle-time-out of {idle_time_out_ms} ms is not waited for", Kind.DID_NOT_HAPPEN
        )
    return idle_time_out_ms / 1000 * 2 + 2
