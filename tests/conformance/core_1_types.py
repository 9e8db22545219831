"""Core part 1: every valid encoding is understood, and no invalid one is."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from broker.amqp.descriptors import BEGIN
from broker.amqp.frames import AMQP_HEADER
from broker.amqp.performatives import Begin, Close
from broker.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

from .conversation import Conversation
from .frames import described
from .harness import case
from .messages import section
from .verdict import Failed, Kind, NotApplicable

EVERY_TYPE: Final[dict[str, object]] = {
    "null": None,
    "boolean": True,
    "ubyte": UByte(255),
    "ushort": UShort(65535),
    "uint": UInt(2**32 - 1),
    "ulong": ULong(2**64 - 1),
    "byte": Byte(-128),
    "short": Short(-32768),
    "int": Int(-(2**31)),
    "long": -(2**63),
    "float": Float(1.5),
    "double": -2.5,
    "decimal32": Decimal(bytes(4)),
    "decimal64": Decimal(bytes(8)),
    "decimal128": Decimal(bytes(16)),
    "char": Char(0x1F600),
    "timestamp": Timestamp(-1),
    "binary": b"\x00\xff",
    "string": "täxt",
    "symbol": Symbol("symbol"),
    "list": [1, [2, []]],
    "map": Map([(Symbol("key"), Map([(1, "one")]))]),
    "array": Array(0x71, [Int(1), Int(2)]),
    "described": Described(Symbol("conformance:unknown"), "value"),
    "described by a number": Described(ULong(2**60), [None]),
}

DEEP_BYTES: Final = 9_000
"""Bytes of about a thousand lists, each within another."""

DESCRIPTORS: Final[dict[str, bytes]] = {
    "smallulong": b"\x00\x53\x11",
    "ulong": b"\x00\x80" + (0x11).to_bytes(8),
    "sym8": b"\x00\xa3\x0famqp:begin:list",
    "sym32": b"\x00\xb3\x00\x00\x00\x0famqp:begin:list",
}

NULL: Final = b"\x40"
FIELDS: Final = (NULL, b"\x43", b"\x52\x0a", b"\x70\x00\x00\x00\x0a")
"""The fields of a begin: null, then a uint in each of its encodings."""


def list8(*fields: bytes) -> bytes:
    """Return a list of encoded fields, with sizes of 8 bits."""
    content = b"".join(fields)
    return b"\xc0" + bytes([len(content) + 1, len(fields)]) + content


def list32(*fields: bytes) -> bytes:
    """Return a list of encoded fields, with sizes of 32 bits."""
    content = b"".join(fields)
    return b"\xd0" + (len(content) + 4).to_bytes(4) + len(fields).to_bytes(4) + content


def begin_of(*fields: bytes) -> bytes:
    """Return the body of a begin with these encoded fields."""
    return b"\x00\x53\x11" + list8(*fields)


async def _begun(peer: Conversation, *bodies: bytes) -> None:
    """Check that each of `bodies` is understood as a begin."""
    await peer.open()
    for channel, body in enumerate(bodies):
        peer.send_raw(body, channel)
        await peer.expect(Begin, remote_channel=channel)


async def _malformed(peer: Conversation, body: bytes) -> None:
    """Check that a begin which cannot be decoded is refused with an error."""
    await peer.open()
    peer.send_raw(body)
    came = await peer.receive()
    if isinstance(came.body, Close) and came.body.error is not None:
        return
    raise Failed("a close with an error", described(came.raw))


async def _malformed_property(peer: Conversation, value: bytes) -> None:
    """Check that a begin with an invalid value in its properties is refused."""
    pairs = b"\x02\xa3\x03key" + value
    properties = b"\xc1" + bytes([len(pairs)]) + pairs
    await _malformed(peer, begin_of(*FIELDS, NULL, NULL, NULL, properties))


@case("core", "1.2", "A descriptor may be a number or a symbol, in any of their encodings.")
async def descriptors_have_any_form(peer: Conversation) -> None:
    await _begun(peer, *(form + list8(*FIELDS) for form in DESCRIPTORS.values()))


@case("core", "1.3", "Every encoding of uint is the same number.")
async def integers_have_any_form(peer: Conversation) -> None:
    sevens = (b"\x52\x07", b"\x70\x00\x00\x00\x07")
    zeros = (b"\x43", b"\x52\x00", b"\x70\x00\x00\x00\x00")
    await _begun(peer, *(begin_of(NULL, form, form, form) for form in sevens + zeros))


@case("core", "1.6.22", "A list may be a list8 or a list32.")
async def lists_have_any_form(peer: Conversation) -> None:
    await _begun(peer, begin_of(*FIELDS), b"\x00\x53\x11" + list32(*FIELDS))


@case("core", "1.4", "Null fields at the end of a composite may be there or not.")
async def trailing_nulls_may_be_written(peer: Conversation) -> None:
    await _begun(peer, begin_of(*FIELDS), begin_of(*FIELDS, NULL, NULL, NULL, NULL))


@case("core", "1.4", "A field that holds its default is as good as one that is null.")
async def defaults_may_be_written(peer: Conversation) -> None:
    fields: list[object] = [None, UInt(0), UInt(1), UInt(1), UInt(2**32 - 1)]
    await _begun(peer, section(BEGIN, fields[:4]), section(BEGIN, fields))


@case("core", "1.4", "A mandatory field that is null is refused.")
async def mandatory_field_must_not_be_null(peer: Conversation) -> None:
    await _malformed(peer, section(BEGIN, [None, None, UInt(1), UInt(1)]))


@case("core", "1.4", "A mandatory field that is left out is refused.")
async def mandatory_field_must_not_be_left_out(peer: Conversation) -> None:
    await _malformed(peer, section(BEGIN, [None, UInt(0)]))


@case("core", "1.4", "A field of another type than the table's is refused.")
async def field_must_have_its_type(peer: Conversation) -> None:
    await _malformed(peer, section(BEGIN, [None, "0", UInt(1), UInt(1)]))


@case("core", "1.4", "A multiple field is one symbol, an array of them, or null.")
async def multiple_fields_have_any_form(peer: Conversation) -> None:
    begin: list[object] = [None, UInt(0), UInt(1), UInt(1), None]
    one, many = Symbol("conformance:one"), Array(0xA3, [Symbol("one"), Symbol("two")])
    empty = Array(0xA3, [])
    await _begun(peer, *(section(BEGIN, [*begin, each]) for each in (one, many, empty, None)))


@case("core", "1.1", "Values of every type pass through the properties of a performative.")
async def values_of_every_type_are_understood(peer: Conversation) -> None:
    await peer.open(properties={Symbol(name).text: held for name, held in EVERY_TYPE.items()})
    await peer.begin()


@case("core", "1.6.2", "A boolean is one byte with a constructor of its own, or two bytes.")
async def booleans_have_any_form(peer: Conversation) -> None:
    await peer.open()
    await peer.begin()
    for drain in (b"\x42", b"\x56\x00", NULL):
        fields = (b"\x43", b"\x52\x0a", b"\x43", b"\x52\x0a", NULL, NULL, NULL, NULL, drain)
        peer.send_raw(b"\x00\x53\x13" + list8(*fields))
    await peer.expect_nothing()


@case("core", "1.6.2", "A boolean byte other than 0 and 1 is malformed.")
async def boolean_of_two_is_refused(peer: Conversation) -> None:
    await _malformed_property(peer, b"\x56\x02")


@case("core", "1.6.20", "A string that is not UTF-8 is malformed.")
async def string_must_be_utf_8(peer: Conversation) -> None:
    await peer.login()
    peer.send_bytes(AMQP_HEADER)
    await peer.expect_header(AMQP_HEADER)
    peer.send_raw(b"\x00\x53\x10" + list8(b"\xa1\x02\xc3\x28"))
    await peer.expect_closed(or_eof=True)


@case("core", "1.6.23", "A map with an odd number of items is malformed.")
async def map_with_an_odd_count_is_refused(peer: Conversation) -> None:
    await _malformed_property(peer, b"\xc1\x03\x01\x54\x01")


@case("core", "1.6.23", "A map with the same key twice is malformed.")
async def map_with_a_key_twice_is_refused(peer: Conversation) -> None:
    pairs = b"\xa3\x01k\x40" * 2
    await _malformed_property(peer, b"\xc1" + bytes([len(pairs) + 1]) + b"\x04" + pairs)


@case("core", "1.2", "A constructor that is not defined is malformed.")
async def unknown_constructor_is_refused(peer: Conversation) -> None:
    await _malformed_property(peer, b"\x5f\x00")


@case("core", "1.6.22", "A list whose size is more than what is there is malformed.")
async def list_larger_than_its_frame_is_refused(peer: Conversation) -> None:
    await _malformed(peer, b"\x00\x53\x11\xc0\x7f" + list8(*FIELDS)[2:])


@case("core", "1.6.22", "A list with fewer items than it counts is malformed.")
async def list_with_too_few_items_is_refused(peer: Conversation) -> None:
    body = begin_of(*FIELDS)
    await _malformed(peer, body[:5] + b"\x07" + body[6:])


@case("core", "1.6.19", "A binary longer than what is there is malformed.")
async def binary_longer_than_its_frame_is_refused(peer: Conversation) -> None:
    await _malformed_property(peer, b"\xb0\x7f\xff\xff\xff")


@case("core", "1.6.24", "An array that counts more elements than its size can hold is malformed.")
async def array_larger_than_its_size_is_refused(peer: Conversation) -> None:
    await _malformed_property(peer, b"\xf0\x00\x00\x00\x09\xff\xff\xff\xff\x71\x00\x00\x00\x01")


@case("core", "1.6.22", "Lists within lists, a thousand deep, do no harm to others.")
async def deep_nesting_does_no_harm(peer: Conversation) -> None:
    opened = await peer.open()
    value = b"\x45"
    while len(value) < DEEP_BYTES:
        value = list32(value)
    body = b"\x00\x53\x11" + list32(*FIELDS, NULL, value)
    if len(body) + 8 > opened.max_frame_size:
        raise NotApplicable(
            f"the broker takes no frame of {len(body) + 8} bytes", Kind.DID_NOT_HAPPEN
        )
    peer.send_raw(body)
    with suppress(Failed):  # closed without an error? only the other connections matter here
        await peer.receive()
    async with peer.another() as second:
        await second.open()
        await second.begin()
        await second.close()
