"""Core 2.2: protocol headers and version negotiation."""

from __future__ import annotations

from typing import Final

from broker.amqp.frames import AMQP_HEADER, SASL_HEADER, TLS_HEADER

from .conversation import Conversation
from .frames import Header
from .harness import case
from .verdict import require

VERSION: Final = b"\x01\x00\x00"


async def _expect_refusal(peer: Conversation, asked: bytes) -> None:
    """Check for a header of a known version, other than `asked`, and the end of the stream."""
    header = (await peer.expect(Header)).data
    require(
        header[:4] == b"AMQP" and header[4] in (0, 2, 3) and header[5:] == VERSION,
        "a header of version 1.0.0 with a known protocol id",
        header.hex(" "),
    )
    require(header != asked, "another header than the one that is refused", header.hex(" "))
    await peer.expect_eof()


@case("core", "2.2", "A header that is supported is answered with the same header.")
async def supported_header_is_answered_with_itself(peer: Conversation) -> None:
    peer.send_bytes(SASL_HEADER)
    await peer.expect_header(SASL_HEADER)


@case(
    "core", "2.2", "The AMQP header without a security layer is answered, or refused with SASL's."
)
async def amqp_header_first_is_answered_or_refused(peer: Conversation) -> None:
    peer.send_bytes(AMQP_HEADER)
    header = (await peer.expect(Header)).data
    if header == AMQP_HEADER:
        return
    require(header in (SASL_HEADER, TLS_HEADER), "the header of a security layer", header.hex(" "))
    await peer.expect_eof()


@case("core", "2.2", "A version that is not supported is answered with one that is, then closed.")
async def unknown_version_is_answered_with_a_header(peer: Conversation) -> None:
    asked = b"AMQP\x00\x09\x09\x09"
    peer.send_bytes(asked)
    await _expect_refusal(peer, asked)


@case("core", "2.2", "A version lower than any that is supported is refused with a header, too.")
async def lower_version_is_answered_with_a_header(peer: Conversation) -> None:
    asked = b"AMQP\x03\x00\x01\x00"
    peer.send_bytes(asked)
    await _expect_refusal(peer, asked)


@case("core", "2.2", "A revision that is not supported is answered with one that is, then closed.")
async def unknown_revision_is_answered_with_a_header(peer: Conversation) -> None:
    asked = b"AMQP\x00\x01\x00\x07"
    peer.send_bytes(asked)
    await _expect_refusal(peer, asked)


@case("core", "2.2", "Bytes that are no protocol header are answered with one, then closed.")
async def unreadable_header_is_answered_with_a_header(peer: Conversation) -> None:
    peer.send_bytes(b"AMQX\x00\x01\x00\x00")
    await _expect_refusal(peer, b"")


@case(
    "core", "2.2", "A protocol id that is not acceptable is answered with one that is, then closed."
)
async def unknown_protocol_id_is_answered_with_a_header(peer: Conversation) -> None:
    asked = b"AMQP\x07\x01\x00\x00"
    peer.send_bytes(asked)
    await _expect_refusal(peer, asked)


@case("core", "2.2", "The header that a refused client is told is one that the server supports.")
async def the_header_of_a_refusal_is_supported(peer: Conversation) -> None:
    peer.send_bytes(b"AMQP\x00\x09\x09\x09")
    told = (await peer.expect(Header)).data
    async with peer.another() as second:
        second.send_bytes(told)
        await second.expect_header(told)


@case("core", "2.2", "A protocol header may come in pieces.")
async def a_header_may_come_in_pieces(peer: Conversation) -> None:
    for byte in SASL_HEADER:
        peer.send_bytes(bytes([byte]))
        await peer.drain()
    await peer.expect_header(SASL_HEADER)


@case("core", "2.2", "The AMQP header after the security layer is answered with itself.")
async def amqp_header_after_sasl_is_answered(peer: Conversation) -> None:
    await peer.login()
    peer.send_bytes(AMQP_HEADER)
    await peer.expect_header(AMQP_HEADER)


@case("core", "2.2", "A version that is not supported is refused after the security layer, too.")
async def unknown_version_after_sasl_is_refused(peer: Conversation) -> None:
    await peer.login()
    asked = b"AMQP\x00\x01\x02\x03"
    peer.send_bytes(asked)
    await _expect_refusal(peer, asked)
