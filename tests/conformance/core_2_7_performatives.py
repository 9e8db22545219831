"""Core 2.7, encoding of performatives: missing fields, wrong types, and every valid form.

Cases with many variants open a connection for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from librt.strings import BytesWriter

from broker.amqp import descriptors
from broker.amqp.encode import put_value
from broker.amqp.performatives import Attach, Begin, End
from broker.amqp.types import Described, Map, Symbol, UByte, UInt, ULong

from .conversation import Conversation
from .frames import Transfer, described, raw_frame
from .harness import case
from .messages import message, section
from .steps import connected_session, expect_harmless, must
from .verdict import Failed

Fields = list[object]

SENDER_HANDLE: Final = 0
RECEIVER_HANDLE: Final = 1

SOURCE: Final = Described(ULong(descriptors.SOURCE), ["conformance"])

BEGIN: Final[Fields] = [None, UInt(0), UInt(100), UInt(100)]
FLOW: Final[Fields] = [UInt(0), UInt(100), UInt(0), UInt(100)]
LINK_FLOW: Final[Fields] = [*FLOW, UInt(RECEIVER_HANDLE), UInt(0), UInt(1)]
TRANSFER: Final[Fields] = [UInt(SENDER_HANDLE), UInt(0), b"tag", UInt(0), True, False]
DISPOSITION: Final[Fields] = [True, UInt(0), None, True]
DETACH: Final[Fields] = [UInt(SENDER_HANDLE), True]

WRONG_UINT: Final = "a string"
WRONG_BOOLEAN: Final = UInt(1)
WRONG_STRING: Final = UInt(1)
WRONG_MAP: Final = "no map"
WRONG_SYMBOLS: Final = UInt(1)
WRONG_COMPOSITE: Final = "not described"


def attach_fields(address: str) -> Fields:
    """Return the fields of a sender's attach on a free handle."""
    target = Described(ULong(descriptors.TARGET), [address])
    return ["n", UInt(9), False, UByte(2), UByte(0), SOURCE, target, None, False, UInt(0)]


def with_field(fields: Fields, place: int, value: object) -> Fields:
    """Return `fields` with another value in one place; fields added before it are null."""
    longer = [*fields, *[None] * (place + 1 - len(fields))]
    return [*longer[:place], value, *longer[place + 1 :]]


async def prepared(peer: Conversation) -> None:
    """Begin a session on channel 0 with a sender on handle 0 and a receiver on handle 1."""
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await session.attach_receiver()
    await sender.credit()


async def expect_blame(peer: Conversation, code: int, fields: object, *, channel: int = 0) -> None:
    """Check that the frame is answered by an error other than amqp:internal-error."""
    await prepared(peer)
    payload = message() if code == descriptors.TRANSFER else b""
    peer.send_raw(section(code, fields) + payload, channel)
    error = await peer.expect_error()
    condition = error.error.condition if error.error else ""
    must(condition != "amqp:internal-error", "an error that blames us", condition)


async def expect_blame_or_service(peer: Conversation, raw: bytes) -> None:
    """Check that the frame is accepted, or answered by an error other than amqp:internal-error."""
    peer.send_bytes(raw)
    await expect_harmless(peer)


async def expect_all_blamed(
    peer: Conversation, code: int, variants: Sequence[tuple[str, object]], *, channel: int = 0
) -> None:
    """Check that each of `variants` is answered by an error, on a connection of its own."""
    for name, fields in variants:
        async with peer.another() as other:
            try:
                await expect_blame(other, code, fields, channel=channel)
            except Failed as failed:
                raise Failed(f"{name}: {failed.expected}", failed.got) from None


def without(fields: Fields, names: str) -> list[tuple[str, object]]:
    """Return variants that lack one of the fields called `names` each ("-" may be absent)."""
    variants: list[tuple[str, object]] = [("without any field", [])]
    for place, name in enumerate(names.split()):
        if name != "-":
            variants.append((f"without {name}", with_field(fields, place, None)))
    return variants


# -- mandatory fields


@case("core", "2.7.2", "A begin without next-outgoing-id or a window is an error.")
async def begin_without_a_mandatory_field_is_an_error(peer: Conversation) -> None:
    names = "- next-outgoing-id incoming-window outgoing-window"
    await expect_all_blamed(peer, descriptors.BEGIN, without(BEGIN, names), channel=3)


@case("core", "2.7.3", "An attach without name, handle or role is an error.")
async def attach_without_a_mandatory_field_is_an_error(peer: Conversation) -> None:
    fields = attach_fields(peer.address)
    await expect_all_blamed(peer, descriptors.ATTACH, without(fields, "name handle role"))


@case("core", "2.7.4", "A flow without a window or next-outgoing-id is an error.")
async def flow_without_a_mandatory_field_is_an_error(peer: Conversation) -> None:
    names = "- incoming-window next-outgoing-id outgoing-window"
    await expect_all_blamed(peer, descriptors.FLOW, without(FLOW, names))


@case("core", "2.7.5", "A transfer without handle is an error.")
async def transfer_without_handle_is_an_error(peer: Conversation) -> None:
    await expect_all_blamed(peer, descriptors.TRANSFER, without(TRANSFER, "handle"))


@case("core", "2.7.6", "A disposition without role or first is an error.")
async def disposition_without_a_mandatory_field_is_an_error(peer: Conversation) -> None:
    await expect_all_blamed(peer, descriptors.DISPOSITION, without(DISPOSITION, "role first"))


@case("core", "2.7.7", "A detach without handle is an error.")
async def detach_without_handle_is_an_error(peer: Conversation) -> None:
    await expect_all_blamed(peer, descriptors.DETACH, without(DETACH, "handle"))


# -- fields of a wrong type


def mistyped(fields: Fields, wrongs: str, values: dict[str, object]) -> list[tuple[str, object]]:
    """Return variants with one field of a wrong type each; `wrongs` has a letter per field."""
    return [
        (f"field {place + 1} {values[letter]!r}", with_field(fields, place, values[letter]))
        for place, letter in enumerate(wrongs)
        if letter != "-"
    ]


WRONG: Final[dict[str, object]] = {
    "u": WRONG_UINT,
    "b": WRONG_BOOLEAN,
    "s": WRONG_STRING,
    "m": WRONG_MAP,
    "y": WRONG_SYMBOLS,
    "c": WRONG_COMPOSITE,
}
"""A wrong value for a field of each kind: number, boolean, string, map, symbols, composite."""


@case("reliability", "C10", "A begin with any field of a wrong type is an error.")
async def begin_with_a_wrong_type_is_an_error(peer: Conversation) -> None:
    variants = mistyped(BEGIN, "uuuuuyym", WRONG)
    await expect_all_blamed(peer, descriptors.BEGIN, variants, channel=3)


@case("reliability", "C10", "An attach with any field of a wrong type is an error.")
async def attach_with_a_wrong_type_is_an_error(peer: Conversation) -> None:
    variants = mistyped(attach_fields(peer.address), "subuuccmbuuyym", WRONG)
    await expect_all_blamed(peer, descriptors.ATTACH, variants)


@case("reliability", "C10", "A flow with any field of a wrong type is an error.")
async def flow_with_a_wrong_type_is_an_error(peer: Conversation) -> None:
    await expect_all_blamed(peer, descriptors.FLOW, mistyped(LINK_FLOW, "uuuuuuuubbm", WRONG))


@case("reliability", "C10", "A transfer with any field of a wrong type is an error.")
async def transfer_with_a_wrong_type_is_an_error(peer: Conversation) -> None:
    variants = mistyped(TRANSFER, "uusubbucbbb", WRONG)
    await expect_all_blamed(peer, descriptors.TRANSFER, variants)


@case("reliability", "C10", "A disposition with any field of a wrong type is an error.")
async def disposition_with_a_wrong_type_is_an_error(peer: Conversation) -> None:
    variants = mistyped(DISPOSITION, "buubcb", WRONG)
    await expect_all_blamed(peer, descriptors.DISPOSITION, variants)


@case("reliability", "C10", "A detach or an end with any field of a wrong type is an error.")
async def detach_and_end_with_a_wrong_type_are_errors(peer: Conversation) -> None:
    await expect_all_blamed(peer, descriptors.DETACH, mistyped(DETACH, "ubc", WRONG))
    await expect_all_blamed(peer, descriptors.END, mistyped([], "c", WRONG))


@case("reliability", "C10", "A performative that is no list is an error.")
async def performative_that_is_no_list_is_an_error(peer: Conversation) -> None:
    for code in (
        descriptors.BEGIN,
        descriptors.ATTACH,
        descriptors.FLOW,
        descriptors.TRANSFER,
        descriptors.DISPOSITION,
        descriptors.DETACH,
        descriptors.END,
    ):
        variants = [
            ("a map", Map([(Symbol("handle"), UInt(0))])),
            ("a number", UInt(0)),
            ("null", None),
        ]
        channel = 3 if code == descriptors.BEGIN else 0
        await expect_all_blamed(peer, code, variants, channel=channel)


@case("reliability", "C10", "A frame whose body is no known performative is an error.")
async def unknown_performative_is_an_error(peer: Conversation) -> None:
    for name, body in (
        ("an unknown descriptor", section(0x1F, [])),
        ("a source", section(descriptors.SOURCE, [])),
        ("a list", b"\x45"),
        ("a string", b"\xa1\x01x"),
        ("half a descriptor", b"\x00"),
    ):
        async with peer.another() as other:
            await prepared(other)
            other.send_raw(body)
            try:
                error = await other.expect_error()
            except Failed as failed:
                raise Failed(f"{name}: {failed.expected}", failed.got) from None
            condition = error.error.condition if error.error else ""
            must(condition != "amqp:internal-error", f"{name}: an error that blames us", condition)


@case("reliability", "C10", "A snd-settle-mode above 2 or a rcv-settle-mode above 1 is an error.")
async def unknown_settle_modes_are_errors(peer: Conversation) -> None:
    fields = attach_fields(peer.address)
    variants: list[tuple[str, object]] = [
        ("snd-settle-mode 3", with_field(fields, 3, UByte(3))),
        ("rcv-settle-mode 2", with_field(fields, 4, UByte(2))),
    ]
    await expect_all_blamed(peer, descriptors.ATTACH, variants)


# -- frames that may be an error, but must do no other harm


@case("reliability", "C10", "Fields beyond those of a performative are an error, or let pass.")
async def more_fields_than_there_are_do_no_harm(peer: Conversation) -> None:
    for code, fields, count in (
        (descriptors.FLOW, FLOW, 11),
        (descriptors.TRANSFER, TRANSFER, 11),
        (descriptors.DISPOSITION, DISPOSITION, 6),
    ):
        async with peer.another() as other:
            await prepared(other)
            more = with_field(fields, count, "one more")
            payload = message() if code == descriptors.TRANSFER else b""
            await expect_blame_or_service(other, raw_frame(section(code, more) + payload))


@case("reliability", "C2", "Numbers of a flow at the ends of their range do no harm.")
async def extreme_numbers_in_a_flow_do_no_harm(peer: Conversation) -> None:
    for place in (0, 1, 2, 3, 5, 6, 7):
        for number in (0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF):
            async with peer.another() as other:
                await prepared(other)
                fields = with_field(LINK_FLOW, place, UInt(number))
                await expect_blame_or_service(other, raw_frame(section(descriptors.FLOW, fields)))


@case("reliability", "C10", "An error without a condition in a detach or end does no harm.")
async def error_without_a_condition_does_no_harm(peer: Conversation) -> None:
    error = Described(ULong(descriptors.ERROR), [None, "nobody knows"])
    for code, fields in (
        (descriptors.DETACH, [UInt(SENDER_HANDLE), True, error]),
        (descriptors.END, [error]),
    ):
        async with peer.another() as other:
            await prepared(other)
            await expect_blame_or_service(other, raw_frame(section(code, fields)))


@case("reliability", "C10", "A disposition with a state that nobody knows does no harm.")
async def unknown_state_does_no_harm(peer: Conversation) -> None:
    for state in (Described(ULong(0x99), []), Described(Symbol("x:unknown:list"), [])):
        async with peer.another() as other:
            await prepared(other)
            fields = with_field(DISPOSITION, 4, state)
            raw = raw_frame(section(descriptors.DISPOSITION, fields))
            await expect_blame_or_service(other, raw)


@case("reliability", "C10", "A sender's attach without initial-delivery-count does no harm.")
async def attach_without_initial_delivery_count_does_no_harm(peer: Conversation) -> None:
    await prepared(peer)
    fields = with_field(attach_fields(peer.address), 9, None)
    await expect_blame_or_service(peer, raw_frame(section(descriptors.ATTACH, fields)))


# -- equivalent encodings


@case("core", "1.3", "A performative may be described by its symbol.")
async def symbolic_descriptors_are_understood(peer: Conversation) -> None:
    await peer.open()
    session = peer.new_session(0)
    await peer.expect(Begin)
    out = Described(Symbol("amqp:begin:list"), BEGIN)
    peer.send_raw(_encoded(out), channel=1)
    await peer.expect(Begin, remote_channel=1)
    peer.send_raw(_encoded(Described(Symbol("amqp:end:list"), [])), channel=session.channel)
    await peer.expect(End, error=None)


@case("core", "1.6", "Numbers and lists may be written longer than they need be.")
async def wide_encodings_are_understood(peer: Conversation) -> None:
    await peer.open()
    zero, hundred = b"\x70" + bytes(4), b"\x70" + (100).to_bytes(4)
    fields = b"\x40" + zero + hundred + hundred
    wide = b"\xd0" + (len(fields) + 4).to_bytes(4) + (4).to_bytes(4) + fields
    peer.send_raw(b"\x00\x80" + descriptors.BEGIN.to_bytes(8) + wide, channel=1)
    await peer.expect(Begin, remote_channel=1)


@case("core", "1.4", "Fields that are left out and fields that are null mean the same.")
async def trailing_nulls_mean_nothing(peer: Conversation) -> None:
    await peer.open()
    peer.send_raw(section(descriptors.BEGIN, [*BEGIN, None, None, None, None]), channel=1)
    await peer.expect(Begin, remote_channel=1)
    peer.send_raw(section(descriptors.END, [None]), channel=1)
    await peer.expect(End, error=None)


@case("core", "1.6.22", "An end is an empty list in every one of its forms.")
async def empty_lists_have_three_forms(peer: Conversation) -> None:
    await peer.open()
    for form in (b"\x45", b"\xc0\x01\x00", b"\xd0\x00\x00\x00\x04\x00\x00\x00\x00"):
        await peer.begin()
        peer.send_raw(b"\x00\x53\x17" + form)
        await peer.expect(End, error=None)
        peer.sessions.clear()


def _encoded(value: Described) -> bytes:
    out = BytesWriter()
    put_value(out, value)
    return out.getvalue()


INCOMPLETE_UNSETTLED: Final = 8
SETTLED: Final = 4
"""The numbers of these fields in attach and transfer."""


@case(
    "own",
    "flags",
    "An attach and a first transfer say false where that is what a flag means, not null.",
)
async def flags_that_are_false_say_so(peer: Conversation) -> None:
    session = await connected_session(peer)
    sender = await session.attach_sender()
    await sender.send(message(b"1"))
    receiver = session.new_receiver()
    attach = await peer.receive()
    must(isinstance(attach.body, Attach), "an attach", described(attach.raw))
    fields = attach.fields()
    given = fields[INCOMPLETE_UNSETTLED] if len(fields) > INCOMPLETE_UNSETTLED else None
    must(given is False, "incomplete-unsettled=false", given)
    receiver.grant(1)
    transfer = await peer.receive()
    must(isinstance(transfer.body, Transfer), "a transfer", described(transfer.raw))
    told = transfer.fields()[SETTLED]
    must(told is False, "settled=false", told)
