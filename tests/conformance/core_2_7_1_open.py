"""Core 2.7.1 and 2.4.1: the contents of open, and the limits that both ends keep afterwards."""

from __future__ import annotations

from typing import Final

from broker.amqp.descriptors import OPEN
from broker.amqp.errors import FRAME_SIZE_TOO_SMALL, FRAMING_ERROR
from broker.amqp.frames import AMQP_HEADER
from broker.amqp.performatives import SENDER, Attach, Begin, Close, End, Flow, Open
from broker.amqp.terminus import Source, Target
from broker.amqp.types import Array, Map, Symbol, UInt, UShort

from .conversation import Conversation
from .frames import Transfer, described, frame, raw_frame
from .harness import case
from .messages import body_of, message, section
from .verdict import Failed, Kind, NotApplicable, require

LARGEST_TRIED: Final = 16 * 1024 * 1024
FRAME_SIZE_MIN: Final = 512

FIELD_TYPES: Final = (str, str, UInt, UShort, UInt, None, None, None, None, Map)
"""The types of the fields of open; None for a multiple field: a symbol or an array of them."""


async def _headers(peer: Conversation) -> None:
    await peer.login()
    peer.send_bytes(AMQP_HEADER)
    await peer.expect_header(AMQP_HEADER)


@case("core", "2.4.1", "The first frame of the server is an open, on channel 0.")
async def first_frame_is_an_open_on_channel_0(peer: Conversation) -> None:
    await _headers(peer)
    peer.send(peer.our_open())
    came = await peer.receive()
    require(isinstance(came.body, Open) and came.channel == 0, "an open on channel 0", came.body)


@case("core", "2.7.1", "The fields of the server's open have the types of the table.")
async def fields_of_open_have_their_types(peer: Conversation) -> None:
    await _headers(peer)
    peer.send(peer.our_open())
    fields = (await peer.receive()).fields()
    require(fields and isinstance(fields[0], str), "a container-id that is a string", fields[:1])
    for held, wanted in zip(fields[1:], FIELD_TYPES[1:], strict=False):
        fits = isinstance(held, wanted) if wanted is not None else _symbols(held)
        require(held is None or fits, f"a field of open as {wanted}", held)


def _symbols(value: object) -> bool:
    values = value.values if isinstance(value, Array) else [value]
    return all(isinstance(each, Symbol) for each in values)


@case("core", "2.7.1", "The server accepts frames of at least 512 bytes.")
async def max_frame_size_is_at_least_512(peer: Conversation) -> None:
    opened = await peer.open()
    require(opened.max_frame_size >= FRAME_SIZE_MIN, "512 at least", int(opened.max_frame_size))


@case(
    "core",
    "2.7.1",
    "An open with a max-frame-size below 512 is refused by frame-size-too-small, or taken as 512.",
)
async def max_frame_size_below_the_minimum_is_not_kept_to(peer: Conversation) -> None:
    await _headers(peer)
    peer.send(peer.our_open(max_frame_size=16))
    await peer.expect(Open)
    peer.send(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    came = (await peer.receive()).body
    if isinstance(came, Close):
        told = "none" if came.error is None else came.error.condition
        require(told == FRAME_SIZE_TOO_SMALL, FRAME_SIZE_TOO_SMALL, told)
        return
    require(isinstance(came, Begin), "a close, or a begin", came)


@case("core", "2.4.1", "An open of exactly 512 bytes is accepted.")
async def open_of_512_bytes_is_accepted(peer: Conversation) -> None:
    await _headers(peer)
    spare = FRAME_SIZE_MIN - len(frame(peer.our_open(hostname="x" * 256)))
    peer.send(peer.our_open(hostname="x" * (256 + spare)))
    await peer.expect(Open)


@case("core", "2.4.1", "A frame other than open cannot be the first: it is not served.")
async def begin_before_open_is_not_served(peer: Conversation) -> None:
    await _headers(peer)
    peer.send(Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    peer.send(peer.our_open())
    try:
        came = await peer.receive()
    except Failed as failed:
        if failed.is_end:
            return
        raise
    require(isinstance(came.body, Open), "an open, or the end of the stream", came.body)
    await _refused_or_ignored(peer)


async def _refused_or_ignored(peer: Conversation) -> None:
    """Check that the last frame was refused by a close with an error, or had no effect.

    The specification calls it illegal, but does not define the reaction.
    """
    begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    peer.send(begin, channel=1)
    came = await peer.receive()
    if isinstance(came.body, Close):
        require(came.body.error is not None, "a close with an error", "one without")
        return
    ours = isinstance(came.body, Begin) and came.body.remote_channel == 1
    require(ours, "a close with an error, or no effect", described(came.raw))


@case("core", "2.4.1", "Open is sent on channel 0 only: close.")
async def open_on_another_channel_is_refused(peer: Conversation) -> None:
    await _headers(peer)
    peer.send(peer.our_open(), channel=1)
    await peer.expect_closed(or_eof=True)


@case("core", "2.4.6", "Once opened, a second open is refused, or has no effect.")
async def second_open_is_not_answered(peer: Conversation) -> None:
    await peer.open()
    peer.send(peer.our_open())
    await _refused_or_ignored(peer)


@case("core", "2.7.1", "An open without container-id, which is mandatory, is refused.")
async def open_without_container_id_is_refused(peer: Conversation) -> None:
    await _headers(peer)
    peer.send_raw(section(OPEN, [None, "localhost"]))
    await peer.expect_closed(or_eof=True)


@case("core", "2.7.1", "An open whose container-id is not a string is refused.")
async def container_id_of_a_wrong_type_is_refused(peer: Conversation) -> None:
    await _headers(peer)
    peer.send_raw(section(OPEN, [UInt(7)]))
    await peer.expect_closed(or_eof=True)


@case("core", "2.7.1", "An open whose max-frame-size is a string is refused.")
async def max_frame_size_of_a_wrong_type_is_refused(peer: Conversation) -> None:
    await _headers(peer)
    peer.send_raw(section(OPEN, [peer.name("client"), None, "large"]))
    await peer.expect_closed(or_eof=True)


@case("core", "2.7.1", "An open with a container-id alone is enough.")
async def open_with_a_container_id_alone_is_accepted(peer: Conversation) -> None:
    await _headers(peer)
    peer.send_raw(section(OPEN, [peer.name("client")]))
    await peer.expect(Open)
    await peer.begin()


@case("core", "2.7.1", "Capabilities and properties that nobody knows do no harm.")
async def unknown_capabilities_and_properties_are_ignored(peer: Conversation) -> None:
    await peer.open(
        desired_capabilities=["conformance:unknown"],
        offered_capabilities=["conformance:unknown"],
        properties={"conformance:unknown": [1, "two", Map([("three", None)])]},
    )
    await peer.begin()


@case("core", "2.7.1", "A frame larger than the server's max-frame-size: framing-error, close.")
async def oversized_frame_is_refused(peer: Conversation) -> None:
    opened = await peer.open()
    if opened.max_frame_size >= 2**32 - 1:
        raise NotApplicable("the broker sets no limit to frames", Kind.DID_NOT_HAPPEN)
    await peer.begin()
    peer.send_bytes(raw_frame(bytes(56), size=int(opened.max_frame_size) + 1))
    await peer.expect_closed(FRAMING_ERROR)


@case("core", "2.7.1", "A frame of exactly the server's max-frame-size is accepted.")
async def frame_of_the_largest_size_is_accepted(peer: Conversation) -> None:
    size = int((await peer.open()).max_frame_size)
    if size > LARGEST_TRIED:
        raise NotApplicable(
            f"no frame of {size} bytes is made for this, 16 MiB at most", Kind.DID_NOT_HAPPEN
        )
    session = await peer.begin()
    sender = await session.attach_sender()
    await sender.credit()
    delivery_id = session.new_delivery_id()
    overhead = len(frame(Transfer(handle=sender.handle, delivery_id=delivery_id)))
    overhead += len(message(bytes(256))) - 256
    payload = message(bytes(size - overhead))
    session.transfer(Transfer(handle=sender.handle, delivery_id=delivery_id, payload=payload))
    await sender.settled(delivery_id)


@case("core", "2.7.1", "The server sends no frame larger than the client's max-frame-size.")
async def frames_of_the_server_fit_the_client(peer: Conversation) -> None:
    await peer.open(max_frame_size=FRAME_SIZE_MIN)
    session = await peer.begin()
    sender = await session.attach_sender()
    body = bytes(range(256)) * 16
    delivered = message(body)
    await sender.credit()
    sender.transfer(delivered[:400], more=True)
    for at in range(400, len(delivered), 400):
        sender.go_on(delivered[at : at + 400], more=at + 400 < len(delivered))
    await sender.settled(0)
    receiver = await session.attach_receiver()
    receiver.grant(1)
    payload, more = b"", True
    while more:
        came = await peer.receive()
        require(len(came.raw) <= FRAME_SIZE_MIN, "frames of 512 bytes at most", len(came.raw))
        if isinstance(came.body, Transfer):
            payload, more = payload + came.body.payload, came.body.more
    require(body_of(payload) == body, "the message that was sent", f"{len(payload)} other bytes")


@case("core", "2.7.1", "A channel beyond the server's channel-max: framing-error, close.")
async def channel_beyond_the_limit_is_refused(peer: Conversation) -> None:
    opened = await peer.open()
    if opened.channel_max == 0xFFFF:
        raise NotApplicable("the broker sets no limit to channels", Kind.DID_NOT_HAPPEN)
    begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    peer.goes_beyond_limits = True
    peer.send(begin, channel=int(opened.channel_max) + 1)
    await peer.expect_closed(FRAMING_ERROR)


@case("core", "2.7.1", "An empty frame on a channel beyond channel-max: framing-error, close.")
async def empty_frame_beyond_the_limit_is_refused(peer: Conversation) -> None:
    opened = await peer.open()
    if opened.channel_max == 0xFFFF:
        raise NotApplicable("the broker sets no limit to channels", Kind.DID_NOT_HAPPEN)
    peer.goes_beyond_limits = True
    peer.send_bytes(raw_frame(b"", int(opened.channel_max) + 1))
    await peer.expect_closed(FRAMING_ERROR)


@case("core", "2.7.1", "The highest channel that the server allows can be used.")
async def highest_channel_can_be_used(peer: Conversation) -> None:
    opened = await peer.open()
    await peer.begin(int(opened.channel_max))


@case("core", "2.7.1", "The server uses no channel beyond the client's channel-max.")
async def channels_of_the_server_fit_the_client(peer: Conversation) -> None:
    opened = await peer.open(channel_max=0)
    channel = min(3, int(opened.channel_max))
    session = await peer.begin(channel)
    require(
        session.remote_channel == 0, "a begin on channel 0", f"channel {session.remote_channel}"
    )
    await session.attach_sender()
    await session.end()


@case("core", "2.4.2", "Header, open, begin and attach may come in one piece.")
async def connection_may_be_opened_in_one_piece(peer: Conversation) -> None:
    await peer.login()
    begin = Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10)
    attach = Attach(
        name="early",
        handle=0,
        role=SENDER,
        source=Source(address="conformance"),
        target=Target(address=peer.address, capabilities=["queue"]),
        initial_delivery_count=0,
    )
    peer.send_bytes(AMQP_HEADER + frame(peer.our_open()) + frame(begin) + frame(attach))
    await peer.expect_header(AMQP_HEADER)
    await peer.expect(Open)
    await peer.expect(Begin, remote_channel=0)
    await peer.expect(Attach, name="early")


@case("core", "2.4.2", "Header, open and close in one piece are all answered.")
async def open_and_close_in_one_piece_are_answered(peer: Conversation) -> None:
    await peer.login()
    peer.send_bytes(AMQP_HEADER + frame(peer.our_open()) + frame(Close()))
    await peer.expect_header(AMQP_HEADER)
    await peer.expect(Open)
    await peer.expect(Close, error=None)
    await peer.expect_eof()


@case("core", "2.5.5", "A frame for a session that was never begun is refused, or has no effect.")
async def frame_for_an_unknown_channel_is_not_answered(peer: Conversation) -> None:
    await peer.open()
    peer.send(Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, echo=True))
    await _refused_or_ignored(peer)


@case("core", "2.5.5", "An end of a session that was never begun is refused, or has no effect.")
async def end_of_an_unknown_session_is_not_answered(peer: Conversation) -> None:
    await peer.open()
    peer.send(End())
    await _refused_or_ignored(peer)
