"""Core 2.3: the format of frames, and the answers to bytes that are no frames."""

from __future__ import annotations

from typing import Final

from broker.amqp.descriptors import BEGIN
from broker.amqp.performatives import Begin
from broker.amqp.types import Described, UInt, ULong

from .conversation import Conversation
from .frames import frame, raw_frame
from .harness import case
from .messages import section

BEGIN_FIELDS: Final[list[object]] = [None, UInt(0), UInt(10), UInt(10)]
BEGIN_BODY: Final = section(BEGIN, BEGIN_FIELDS)


async def _refused_bytes(peer: Conversation, data: bytes) -> None:
    await peer.open()
    peer.send_bytes(data)
    await peer.expect_closed()


@case("core", "2.3.1", "A frame whose size is less than its header is malformed: close.")
async def frame_smaller_than_its_header_is_refused(peer: Conversation) -> None:
    await _refused_bytes(peer, raw_frame(b"", size=7))


@case("core", "2.3.1", "A frame of size zero is malformed: close.")
async def frame_of_size_zero_is_refused(peer: Conversation) -> None:
    await _refused_bytes(peer, raw_frame(b"", size=0))


@case("core", "2.3.1", "A data offset of less than two words is malformed: close.")
async def data_offset_within_the_header_is_refused(peer: Conversation) -> None:
    await _refused_bytes(peer, raw_frame(BEGIN_BODY, doff=1))


@case("core", "2.3.1", "A data offset of zero is malformed: close.")
async def data_offset_of_zero_is_refused(peer: Conversation) -> None:
    await _refused_bytes(peer, raw_frame(BEGIN_BODY, doff=0))


@case("core", "2.3.1", "A data offset behind the end of the frame is malformed: close.")
async def data_offset_behind_the_frame_is_refused(peer: Conversation) -> None:
    await _refused_bytes(peer, raw_frame(b"", size=8, doff=3))


@case("core", "2.3.1", "The extended header of an AMQP frame is ignored.")
async def extended_header_is_ignored(peer: Conversation) -> None:
    await peer.open()
    peer.send_bytes(raw_frame(b"\xff" * 8 + BEGIN_BODY, doff=4))
    await peer.expect(Begin, remote_channel=0)


@case("core", "2.3.1", "An extended header as long as can be (255 words) is ignored.")
async def longest_extended_header_is_ignored(peer: Conversation) -> None:
    await peer.open()
    peer.send_bytes(raw_frame(b"\x00" * (255 * 4 - 8) + BEGIN_BODY, doff=255))
    await peer.expect(Begin, remote_channel=0)


@case("core", "2.3.1", "Frames may come in any pieces.")
async def frames_may_come_in_pieces(peer: Conversation) -> None:
    await peer.open()
    for byte in frame(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)):
        peer.send_bytes(bytes([byte]))
        await peer.drain()
    await peer.expect(Begin, remote_channel=0)


@case("core", "2.3.1", "Several frames may come at once.")
async def frames_may_come_together(peer: Conversation) -> None:
    await peer.open()
    begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    peer.send_bytes(frame(begin) + frame(begin, 1) + frame(begin, 2))
    await peer.expect(Begin, remote_channel=0)
    await peer.expect(Begin, remote_channel=1)
    await peer.expect(Begin, remote_channel=2)


@case("core", "2.3.2", "A frame body is one of the performatives: an unknown one is refused.")
async def unknown_performative_is_refused(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()
    peer.send_raw(section(0x00AA, []))
    await peer.expect_error()


@case("core", "2.3.2", "A frame body that is not a described value is refused.")
async def body_without_a_descriptor_is_refused(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()
    peer.send_raw(b"\x45")
    await peer.expect_error()


@case("core", "2.3.2", "A frame body that is cut off is refused.")
async def body_that_is_cut_off_is_refused(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()
    peer.send_raw(BEGIN_BODY[:-2], channel=1)
    await peer.expect_error()


@case("core", "2.3.2", "A performative that is not a list is refused.")
async def performative_that_is_no_list_is_refused(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()
    peer.send_raw(b"\x00\x53\x11\xa1\x01x", channel=1)
    await peer.expect_error()


@case("core", "2.3.2", "A performative within another descriptor is refused.")
async def described_performative_is_refused(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()
    peer.send_raw(section(0x00AA, Described(ULong(BEGIN), BEGIN_FIELDS)), channel=1)
    await peer.expect_error()
