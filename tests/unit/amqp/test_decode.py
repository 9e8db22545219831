"""Bytes to values: every encoding is read, and all other bytes raise a fault."""

import math
import uuid
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp import decode
from broker.amqp.decode import encoded_value, take_value
from broker.amqp.errors import DECODE_ERROR, RESOURCE_LIMIT_EXCEEDED, ConnectionFault, Fault
from broker.amqp.limits import DEPTH_MAX
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
    same,
)

# every encoding of 1.6, including the long forms of small values
ENCODINGS: list[tuple[str, str, object]] = [
    ("null", "40", None),
    ("true", "41", True),
    ("false", "42", False),
    ("boolean true", "5601", True),
    ("boolean false", "5600", False),
    ("ubyte", "50ff", UByte(255)),
    ("ushort", "60ffff", UShort(65535)),
    ("uint0", "43", UInt(0)),
    ("smalluint", "52ff", UInt(255)),
    ("uint", "70ffffffff", UInt(2**32 - 1)),
    ("uint of a small value", "7000000001", UInt(1)),
    ("ulong0", "44", ULong(0)),
    ("smallulong", "53ff", ULong(255)),
    ("ulong", "80ffffffffffffffff", ULong(2**64 - 1)),
    ("byte", "5180", Byte(-128)),
    ("short", "618000", Short(-32768)),
    ("smallint", "54ff", Int(-1)),
    ("int", "7180000000", Int(-(2**31))),
    ("smalllong", "5580", -128),
    ("long", "818000000000000000", -(2**63)),
    ("float", "72bf800000", Float(-1.0)),
    ("float, not a number", "727fc00000", Float(math.nan)),
    ("double", "82bff0000000000000", -1.0),
    ("double, infinite", "827ff0000000000000", math.inf),
    ("decimal32", "7422500001", Decimal(bytes.fromhex("22500001"))),
    ("decimal64", "842234000000000001", Decimal(bytes.fromhex("2234000000000001"))),
    ("decimal128", "94" + "01" * 16, Decimal(b"\1" * 16)),
    ("char", "730010ffff", Char(0x10FFFF)),
    ("char that is half of a surrogate pair", "730000d800", Char(0xD800)),
    ("timestamp", "830000000000000001", Timestamp(1)),
    ("timestamp beyond any calendar", "837fffffffffffffff", Timestamp(2**63 - 1)),
    ("uuid", "98" + "00" * 15 + "07", uuid.UUID(int=7)),
    ("vbin8", "a0020001", b"\0\1"),
    ("vbin32", "b0000000020001", b"\0\1"),
    ("str8-utf8", "a104f09f9880", "\U0001f600"),
    ("str32-utf8", "b10000000161", "a"),
    ("string with a zero", "a10100", "\0"),
    ("sym8", "a30161", Symbol("a")),
    ("sym32", "b30000000161", Symbol("a")),
    ("list0", "45", []),
    ("list8", "c003024041", [None, True]),
    ("list8, empty", "c00100", []),
    ("list32", "d000000006000000024041", [None, True]),
    ("map8", "c1050441404243", Map([(True, None), (False, UInt(0))])),
    ("map32", "d100000006000000024142", Map([(True, False)])),
    ("map, empty", "c10100", Map([])),
    (
        "map whose keys python takes for one",
        "c109065501404140500140",
        Map([(1, None), (True, None), (UByte(1), None)]),
    ),
    ("array8", "e00402560100", Array(0x56, [True, False])),
    ("array32", "f00000000700000002560100", Array(0x56, [True, False])),
    ("array, empty", "e00200a3", Array(0xA3, [])),
    ("array of described", "e006010053245007", Array(0x50, [UByte(7)], descriptor=ULong(0x24))),
    ("array of lists", "e00602c001000100", Array(0xC0, [[], []])),
    ("array of maps", "e00401c10100", Array(0xC1, [Map([])])),
    ("array of arrays", "e00501e0020040", Array(0xE0, [Array(0x40, [])])),
    ("described", "00532445", Described(ULong(0x24), [])),
    ("described by a symbol", "00a3016140", Described(Symbol("a"), None)),
    ("described twice", "00530100530240", Described(ULong(1), Described(ULong(2), None))),
]


@pytest.mark.parametrize(
    ("raw", "expected"), [pytest.param(raw, value, id=name) for name, raw, value in ENCODINGS]
)
def test_every_encoding_is_read(raw: str, expected: object) -> None:
    data = bytes.fromhex(raw)
    for before, behind in ((b"", b""), (b"\x45", b"\xff")):
        start = len(before)
        value, end = take_value(before + data + behind, start, start + len(data))
        assert same(value, expected), value
        assert end == start + len(data)
        assert encoded_value(before + data + behind, start, start + len(data)) == data


@pytest.mark.parametrize(
    "raw", [pytest.param(raw, id=name) for name, raw, _ in ENCODINGS if raw != "40"]
)
def test_a_value_that_is_cut_is_a_fault(raw: str) -> None:
    data = bytes.fromhex(raw)
    for end in range(len(data)):
        with pytest.raises(ConnectionFault):
            take_value(data[:end], 0, end)
        with pytest.raises(ConnectionFault):
            take_value(data, 0, end)


MALFORMED = [
    ("boolean of 2", "5602", "a boolean is neither 0 nor 1"),
    ("boolean of 255 in an array", "e0030156ff", "a boolean is neither 0 nor 1"),
    ("char beyond Unicode", "7300110000", "a char is beyond Unicode"),
    ("char that is negative when signed", "73ffffffff", "a char is beyond Unicode"),
    ("string that is not UTF-8", "a101ff", "a string is not UTF-8"),
    ("string in an overlong form", "a102c080", "a string is not UTF-8"),
    ("string with an encoded surrogate", "a103eda080", "a string is not UTF-8"),
    ("string cut within a character", "a101c3", "a string is not UTF-8"),
    ("symbol beyond ASCII", "a302c3a9", "a symbol is not ASCII"),
    ("descriptor symbol beyond ASCII", "00a302c3a940", "a symbol is not ASCII"),
    ("undefined constructor", "5f00", "0x5f is no constructor"),
    ("undefined constructor in a list", "c003015700", "0x57 is no constructor"),
    ("undefined constructor of an array", "e0020057", "0x57 is no constructor"),
    ("list larger than its elements", "c003014040", "a size does not match its content"),
    ("list smaller than its elements", "c00201a10161", "a value is larger than what holds it"),
    ("list whose element goes beyond it", "c00301a1026162", "a value is larger than what holds it"),
    (
        "list of a count without end",
        "d000000005ffffffff40",
        "a count is larger than its bytes allow",
    ),
    ("map of a key without value", "c1020140", "a map has a key without a value"),
    ("map with a key twice", "c1050441404140", "the key True comes twice"),
    (
        "map with not-a-number twice",
        "c11404827ff800000000000040827ff800000000000040",
        "a value is larger than what holds it",
    ),
    ("map whose key is a list", "c103024540", "a list cannot be the key of a map"),
    ("map whose key is a map", "c10502c1010040", "a Map cannot be the key of a map"),
    ("map whose key is an array", "c10602e002004040", "a Array cannot be the key of a map"),
    ("map whose key is described", "c106020053014040", "a Described cannot be the key of a map"),
    (
        "array of a count without end",
        "f000000006ffffffff5600",
        "a count is larger than its bytes allow",
    ),
    ("array larger than its elements", "e00401560101", "a size does not match its content"),
    ("array of no width with bytes behind", "e003024000", "a size does not match its content"),
    ("array of descriptors of descriptors", "e009010053010053025007", "0x00 is no constructor"),
    (
        "array whose descriptor is a list",
        "e0050100455007",
        "a descriptor is neither a ulong nor a symbol",
    ),
    (
        "array whose constructor is cut off by its end",
        "e00301005301",
        "a value is larger than what holds it",
    ),
]


@pytest.mark.parametrize(
    ("raw", "why"), [pytest.param(raw, why, id=name) for name, raw, why in MALFORMED]
)
def test_what_is_malformed_is_a_decode_error(raw: str, why: str) -> None:
    data = bytes.fromhex(raw)
    with pytest.raises(ConnectionFault, match=why) as caught:
        take_value(data + bytes(16), 0, len(data))
    assert caught.value.condition == DECODE_ERROR


@pytest.mark.parametrize("code", [0x40, 0x41, 0x42, 0x43, 0x44, 0x45])
@pytest.mark.parametrize("descriptor", ["", "005324", "00a30161"])
def test_elements_without_width_are_not_unfolded(code: int, descriptor: str) -> None:
    content = bytes.fromhex(descriptor) + bytes([code])
    data = b"\xf0" + (len(content) + 4).to_bytes(4, "big") + b"\xff" * 4 + content
    value, end = take_value(data, 0, len(data))
    assert isinstance(value, Array)
    assert (value.values, len(value), end) == ([], 2**32 - 1, len(data))


def test_arrays_of_arrays_without_width_are_not_unfolded() -> None:
    inner = b"\x00\x00\x00\x05\xff\xff\xff\xff\x40"
    data = b"\xf0" + (5 + 4 * len(inner)).to_bytes(4, "big") + b"\0\0\0\4\xf0" + 4 * inner
    value, _ = take_value(data, 0, len(data))
    assert value == Array(0xF0, [Array(0x40, [], zero_width_count=2**32 - 1)] * 4)


def nested(depth: int, kind: str) -> bytes:
    """Return a value of `depth` levels of one kind, built without recursion."""
    data = b"\x40"
    if kind == "described":
        return b"\x00\x53\x01" * depth + data
    if kind == "array":
        data = b"\x00\x00\x00\x05\x00\x00\x00\x00\x40"
        for _ in range(depth - 1):
            data = (len(data) + 5).to_bytes(4, "big") + b"\0\0\0\1\xf0" + data
        return b"\xf0" + data
    for _ in range(depth):
        if kind == "list":
            data = b"\xd0" + (len(data) + 4).to_bytes(4, "big") + b"\0\0\0\1" + data
        else:
            data = b"\xd1" + (len(data) + 5).to_bytes(4, "big") + b"\0\0\0\2\x41" + data
    return data


def heads_only(depth: int, kind: str) -> bytes:
    """Return the heads of `depth` nested values, with sizes that claim contents which are missing.

    A million levels cost too much to build from within, as `nested` does.
    """
    head = {"list": 9, "map": 10, "array": 9, "described": 3}[kind]
    if kind == "described":
        return nested(depth, kind)
    out = bytearray(b"\xf0" if kind == "array" else b"")
    for left in range(depth, 0, -1):
        size = left * head
        if kind == "list":
            out += b"\xd0" + (size - 5).to_bytes(4, "big") + b"\0\0\0\1"
        elif kind == "map":
            out += b"\xd1" + (size - 5).to_bytes(4, "big") + b"\0\0\0\2\x41"
        else:
            out += (size - 4).to_bytes(4, "big") + b"\0\0\0\1\xf0"
    return bytes(out) + bytes(16)


KINDS = ["list", "map", "array", "described"]


@pytest.mark.parametrize("kind", KINDS)
def test_depth_is_bounded(kind: str) -> None:
    for depth in (1, DEPTH_MAX - 1, DEPTH_MAX):
        data = nested(depth, kind)
        assert take_value(data, 0, len(data))[1] == len(data)
    data = nested(DEPTH_MAX + 1, kind)
    with pytest.raises(ConnectionFault, match="nested more than"):
        take_value(data, 0, len(data))


@pytest.mark.parametrize("kind", KINDS)
def test_very_great_depth_is_harmless(kind: str) -> None:
    data = heads_only(100_000, kind)
    with pytest.raises(ConnectionFault, match="nested more than"):
        take_value(data, 0, len(data))


def test_depth_counts_all_kinds_together() -> None:
    level = b"\x00\x53\x01"
    inner = nested(DEPTH_MAX - 4, "list")
    data = level * 4 + inner
    assert take_value(data, 0, len(data))[1] == len(data)
    data = level * 5 + inner
    with pytest.raises(ConnectionFault, match="nested more than"):
        take_value(data, 0, len(data))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("c00b0a" + "45" * 10, id="a list of empty lists"),
        pytest.param("e00c0a50" + "01" * 10, id="an array"),
        pytest.param("c1150a" + "520152025203520452055206520752085209520a", id="a map"),
    ],
)
def test_a_value_may_contain_only_so_many(raw: str) -> None:
    data = bytes.fromhex(raw)
    assert take_value(data, 0, len(data), 11)[1] == len(data)
    with pytest.raises(ConnectionFault) as caught:
        take_value(data, 0, len(data), 10)
    assert caught.value.condition == RESOURCE_LIMIT_EXCEEDED


@given(st.binary(max_size=64))
def test_any_bytes_are_a_value_or_a_fault(data: bytes) -> None:
    for reader in (take_value, encoded_value, decode.skip, decode.descriptor_at):
        with suppress(Fault):
            reader(data, 0, len(data))


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("43", 0),
        ("5207", 7),
        ("70ffffffff", 2**32 - 1),
        ("7080000000", 2**31),
        ("44", 0),
        ("5307", 7),
        ("800000000000000007", 7),
        ("8000000000ffffffff", 2**32 - 1),
        ("5007", 7),
        ("60ffff", 65535),
        ("40", -1),
    ],
)
def test_an_unsigned_number_of_any_width(raw: str, value: int) -> None:
    data = b"\xff" + bytes.fromhex(raw)
    assert decode.uint_at(data, 1, -1) == value
    assert decode.ulong_at(data, 1, -1) == value
    assert decode.take_uint(data, 1) == (value, len(data))


@pytest.mark.parametrize(
    "raw", ["41", "5407", "7100000007", "a10137", "800000000100000000", "80ffffffffffffffff", "56"]
)
def test_what_is_no_number_of_32_bits(raw: str) -> None:
    data = bytes.fromhex(raw)
    with pytest.raises(ConnectionFault):
        decode.uint_at(data, 0, -1)
    with pytest.raises(ConnectionFault):
        decode.take_uint(data, 0)


def test_a_number_of_64_bits_is_cut_to_what_we_count_to() -> None:
    assert decode.ulong_at(bytes.fromhex("807fffffffffffffff"), 0, -1) == 2**63 - 1
    assert decode.ulong_at(bytes.fromhex("80ffffffffffffffff"), 0, -1) == 2**63 - 1


@pytest.mark.parametrize(("raw", "value"), [("41", 1), ("42", 0), ("5601", 1), ("5600", 0)])
def test_a_boolean(raw: str, value: int) -> None:
    data = bytes.fromhex(raw)
    assert decode.bool_at(data, 0, False) is bool(value)
    assert decode.take_bool(data, 0) == (value, len(data))


def test_an_absent_boolean_is_its_default() -> None:
    assert decode.bool_at(b"\x40", 0, True) is True
    assert decode.bool_at(b"\x40", 0, False) is False
    assert decode.take_bool(b"\x40", 0) == (-1, 1)


@pytest.mark.parametrize("raw", ["43", "5602", "a10141"])
def test_what_is_no_boolean(raw: str) -> None:
    data = bytes.fromhex(raw)
    with pytest.raises(ConnectionFault, match="boolean"):
        decode.bool_at(data, 0, False)
    with pytest.raises(ConnectionFault, match="boolean"):
        decode.take_bool(data, 0)


TEXT_READERS: list[tuple[Callable[[bytes, int, int], object], dict[str, object]]] = [
    (decode.text_at, {"a10161": "a", "b10000000161": "a", "40": None}),
    (decode.symbol_at, {"a30161": "a", "b30000000161": "a", "40": None}),
    (decode.binary_at, {"a00161": b"a", "b00000000161": b"a", "40": None}),
]


@pytest.mark.parametrize(
    ("reader", "cases"), [pytest.param(*case, id=case[0].__name__) for case in TEXT_READERS]
)
def test_a_text_of_one_type_alone(
    reader: Callable[[bytes, int, int], object], cases: dict[str, object]
) -> None:
    for raw, expected in cases.items():
        data = bytes.fromhex(raw)
        assert reader(data, 0, len(data)) == expected
    others = {raw for _, all_cases in TEXT_READERS for raw in all_cases} - cases.keys()
    for raw in [*others, "43", "c00100", "a105"]:
        data = bytes.fromhex(raw)
        with pytest.raises(ConnectionFault):
            reader(data, 0, len(data))
