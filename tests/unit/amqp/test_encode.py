"""Values to bytes: the shortest form of every type, and values that cannot be written."""

import uuid
from collections.abc import Callable

import pytest
from hypothesis import given

from broker.amqp import encode
from broker.amqp.decode import take_value
from broker.amqp.encode import BytesWriter, put_symbols, put_value
from broker.amqp.errors import Fault
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
from tests.support.amqp_values import values

# the encodings of 1.6; the shortest if there are several
SHORTEST: list[tuple[str, object, str]] = [
    ("null", None, "40"),
    ("true", True, "41"),
    ("false", False, "42"),
    ("ubyte", UByte(255), "50ff"),
    ("ushort", UShort(1), "600001"),
    ("ushort, largest", UShort(65535), "60ffff"),
    ("uint 0", UInt(0), "43"),
    ("uint of one byte", UInt(255), "52ff"),
    ("uint of four bytes", UInt(256), "7000000100"),
    ("uint, largest", UInt(2**32 - 1), "70ffffffff"),
    ("ulong 0", ULong(0), "44"),
    ("ulong of one byte", ULong(255), "53ff"),
    ("ulong of eight bytes", ULong(256), "800000000000000100"),
    ("ulong, largest", ULong(2**64 - 1), "80ffffffffffffffff"),
    ("byte", Byte(-1), "51ff"),
    ("short", Short(-2), "61fffe"),
    ("int of one byte", Int(-128), "5480"),
    ("int of four bytes", Int(128), "7100000080"),
    ("int, least", Int(-(2**31)), "7180000000"),
    ("long of one byte", 127, "557f"),
    ("long of eight bytes", -129, "81ffffffffffffff7f"),
    ("long, least", -(2**63), "818000000000000000"),
    ("float", Float(0.5), "723f000000"),
    ("double", 1.5, "823ff8000000000000"),
    ("decimal32", Decimal(b"\1\2\3\4"), "7401020304"),
    ("decimal64", Decimal(bytes(8)), "840000000000000000"),
    ("decimal128", Decimal(bytes(16)), "94" + "00" * 16),
    ("char", Char(0x1F600), "730001f600"),
    ("timestamp", Timestamp(-1), "83ffffffffffffffff"),
    ("uuid", uuid.UUID(int=1), "98" + "00" * 15 + "01"),
    ("binary", b"\1\2", "a0020102"),
    ("binary, empty", b"", "a000"),
    ("binary of 255", bytes(255), "a0ff" + "00" * 255),
    ("binary of 256", bytes(256), "b000000100" + "00" * 256),
    ("string", "é", "a102c3a9"),
    ("string of 256 bytes", "é" * 128, "b100000100" + "c3a9" * 128),
    ("symbol", Symbol("a"), "a30161"),
    ("symbol of 256", Symbol("a" * 256), "b300000100" + "61" * 256),
    ("list, empty", [], "45"),
    ("list", [None, True], "c003024041"),
    ("list of 254 bytes", [None] * 254, "c0fffe" + "40" * 254),
    ("list of 255 bytes", [None] * 255, "d000000103000000ff" + "40" * 255),
    ("map", Map([("k", 1)]), "c10602a1016b5501"),
    ("map, empty", Map([]), "c10100"),
    ("dict", {Symbol("k"): None}, "c10502a3016b40"),
    ("described by a number", Described(ULong(0x24), []), "00532445"),
    ("described by a symbol", Described(Symbol("a"), 0), "00a301615500"),
    ("array of symbols", Array(0xA3, [Symbol("a"), Symbol("b")]), "e00602a301610162"),
    ("array of wide symbols", Array(0xB3, [Symbol("a")]), "e00701b30000000161"),
    ("array of nothing", Array(0x40, [], zero_width_count=3), "e0020340"),
    (
        "array of very much nothing",
        Array(0x43, [], zero_width_count=2**32 - 1),
        "f000000005ffffffff43",
    ),
    ("array of described", Array(0x50, [UByte(1)], descriptor=ULong(5)), "e006010053055001"),
    ("array of booleans", Array(0x56, [True, False]), "e00402560100"),
    ("array of lists", Array(0xC0, [[True], []]), "e00702c00201410100"),
    ("array of arrays", Array(0xE0, [Array(0x50, [UByte(1)])]), "e00601e003015001"),
    (
        "array of wide arrays",
        Array(0xF0, [Array(0x50, [UByte(1)])]),
        "e00c01f000000006000000015001",
    ),
    ("array of 256 elements", Array(0x50, [UByte(1)] * 256), "f0000001050000010050" + "01" * 256),
]


def encoded(value: object) -> bytes:
    out = BytesWriter()
    put_value(out, value)
    return out.getvalue()


ELEMENTS: list[tuple[str, int, object, str]] = [
    ("strings", 0xA1, "é", "02c3a9"),
    ("wide strings", 0xB1, "é", "00000002c3a9"),
    ("binaries", 0xA0, b"a", "0161"),
    ("wide binaries", 0xB0, b"a", "0000000161"),
    ("small longs", 0x55, -1, "ff"),
    ("longs", 0x81, -1, "ff" * 8),
    ("small ulongs", 0x53, ULong(255), "ff"),
    ("ulongs", 0x80, ULong(2**64 - 1), "ff" * 8),
    ("small uints", 0x52, UInt(255), "ff"),
    ("uints", 0x70, UInt(2**32 - 1), "ff" * 4),
    ("small ints", 0x54, Int(-1), "ff"),
    ("ints", 0x71, Int(-2), "fffffffe"),
    ("ubytes", 0x50, UByte(255), "ff"),
    ("bytes", 0x51, Byte(-1), "ff"),
    ("ushorts", 0x60, UShort(65535), "ffff"),
    ("shorts", 0x61, Short(-2), "fffe"),
    ("chars", 0x73, Char(0x1F600), "0001f600"),
    ("timestamps", 0x83, Timestamp(-1), "ff" * 8),
    ("floats", 0x72, Float(1.0), "3f800000"),
    ("doubles", 0x82, 1.0, "3ff0000000000000"),
    ("uuids", 0x98, uuid.UUID(int=1), "00" * 15 + "01"),
    ("decimal32s", 0x74, Decimal(b"\1\2\3\4"), "01020304"),
    ("decimal64s", 0x84, Decimal(b"\1" * 8), "01" * 8),
    ("decimal128s", 0x94, Decimal(b"\1" * 16), "01" * 16),
    ("long lists", 0xD0, [True], "000000050000000141"),
    ("maps", 0xC1, Map([("k", 1)]), "0602a1016b5501"),
]


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [pytest.param(code, value, raw, id=name) for name, code, value, raw in ELEMENTS],
)
def test_an_element_takes_the_form_of_its_array(code: int, value: object, expected: str) -> None:
    size = len(expected) + 2  # two elements; `expected` has two hex digits per byte
    raw = f"e0{size:02x}02{code:02x}{expected}{expected}"
    data = encoded(Array(code, [value, value]))
    assert data.hex() == raw
    read, behind = take_value(data, 0, len(data))
    assert behind == len(data)
    assert same(read, Array(code, [value, value]))


@pytest.mark.parametrize(
    ("value", "expected"), [pytest.param(value, raw, id=name) for name, value, raw in SHORTEST]
)
def test_a_value_takes_its_shortest_form(value: object, expected: str) -> None:
    assert encoded(value).hex() == expected


@given(values())
def test_what_was_written_is_read_as_the_same(value: object) -> None:
    data = encoded(value)
    read, behind = take_value(data, 0, len(data))
    assert same(read, value)
    assert behind == len(data)


@given(values(), values())
def test_a_value_ends_where_its_neighbour_starts(one: object, other: object) -> None:
    data = encoded(one) + encoded(other)
    read, middle = take_value(data, 0, len(data))
    assert same(read, one)
    assert same(take_value(data, middle, len(data))[0], other)


TYPED: list[tuple[Callable[[BytesWriter, int], None], int, str]] = [
    (encode.put_ubyte, 255, "50ff"),
    (encode.put_ushort, 0x8000, "608000"),
    (encode.put_uint, 0x8000_0000, "7080000000"),
    (encode.put_ulong, 2**63 - 1, "807fffffffffffffff"),
    (encode.put_byte, -128, "5180"),
    (encode.put_short, -32768, "618000"),
    (encode.put_int, 127, "547f"),
    (encode.put_long, -128, "5580"),
    (encode.put_char, 0x41, "7300000041"),
    (encode.put_timestamp, 1, "830000000000000001"),
    (encode.put_u16, 65535, "ffff"),
    (encode.put_u32, 2**32 - 1, "ffffffff"),
    (encode.put_descriptor, 0x24, "005324"),
]


@pytest.mark.parametrize(
    ("put", "value", "expected"), [pytest.param(*case, id=case[0].__name__) for case in TYPED]
)
def test_a_number_whose_type_is_known(
    put: Callable[[BytesWriter, int], None], value: int, expected: str
) -> None:
    out = BytesWriter()
    put(out, value)
    assert out.getvalue().hex() == expected


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(["a"], "e00401a30161", id="one symbol is an array, too"),
        pytest.param(["a", "b" * 256], None, id="one of them is long: all are wide"),
        pytest.param([], "e00200a3", id="none"),
    ],
)
def test_a_multiple_field(texts: list[str], expected: str | None) -> None:
    out = BytesWriter()
    put_symbols(out, texts)
    data = out.getvalue()
    if expected is not None:
        assert data.hex() == expected
    array, _ = take_value(data, 0, len(data))
    assert isinstance(array, Array)
    assert array.values == [Symbol(text) for text in texts]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        pytest.param(2**63, ValueError, id="an integer beyond long"),
        pytest.param(-(2**63) - 1, ValueError, id="an integer below long"),
        pytest.param(object(), TypeError, id="a class without a type"),
        pytest.param((1,), TypeError, id="a tuple"),
        pytest.param(Symbol("é"), ValueError, id="a symbol beyond ASCII"),
        pytest.param("\ud800", ValueError, id="a lone surrogate"),
        pytest.param(Array(0x50, [UInt(1)]), ValueError, id="an element of another type"),
        pytest.param(Array(0xA3, [Symbol("a" * 256)]), ValueError, id="an element too long"),
        pytest.param(Array(0xC0, [[None] * 255]), ValueError, id="an element list too long"),
        pytest.param(Array(0x52, [UInt(256)]), OverflowError, id="an element too large"),
        pytest.param(Array(0x40, [None]), TypeError, id="an element without width"),
        pytest.param(Array(0x50, [Described(ULong(1), 1)]), TypeError, id="a described element"),
    ],
)
def test_what_has_no_encoding_is_a_mistake_of_ours(value: object, problem: type[Exception]) -> None:
    with pytest.raises(problem):
        encoded(value)


def nested(depth: int, kind: str) -> object:
    value: object = True
    for _ in range(depth):
        if kind == "list":
            value = [value]
        elif kind == "map":
            value = Map([(1, value)])
        elif kind == "array":
            value = Array(0xF0, [value]) if isinstance(value, Array) else Array(0x56, [value])
        else:
            value = Described(ULong(1), value)
    return value


@pytest.mark.parametrize("kind", ["list", "map", "array", "described"])
def test_depth_is_bounded_in_writing(kind: str) -> None:
    assert encoded(nested(DEPTH_MAX, kind))
    for depth in (DEPTH_MAX + 1, 900):
        with pytest.raises(Fault, match="too deep"):
            encoded(nested(depth, kind))


@pytest.mark.parametrize("code", ["45", "c00100"])
def test_what_is_read_at_full_depth_is_written_again(code: str) -> None:
    """The shortest form of an empty list does not count as a level in reading."""
    described = bytes.fromhex("005301")
    data = described * DEPTH_MAX + bytes.fromhex(code)
    if code != "45":
        data = data[len(described) :]
    value, _ = take_value(data, 0, len(data))
    assert encoded(value)[-1:] == b"\x45"
