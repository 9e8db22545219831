"""The walk over encoded values: widths, sizes, counts, depth, descriptors."""

import pytest
from hypothesis import given

from broker.amqp.constructors import FORMS, descriptor_at, open_compound, skip, u16_at, u32_at
from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.errors import DECODE_ERROR, ConnectionFault
from broker.amqp.limits import DEPTH_MAX
from tests.support.amqp_values import values


@given(values())
def test_a_value_is_skipped_whole(value: object) -> None:
    out = BytesWriter()
    put_value(out, value)
    data = out.getvalue()
    assert skip(b"\x40" + data + b"\x40", 1, 1 + len(data)) == 1 + len(data)


@given(values())
def test_a_value_that_is_cut_is_never_skipped(value: object) -> None:
    out = BytesWriter()
    put_value(out, value)
    data = out.getvalue()
    for end in range(min(len(data), 60)):
        with pytest.raises(ConnectionFault):
            skip(data, 0, end)


MALFORMED = [
    ("nothing", ""),
    ("an undefined constructor without width", "46"),
    ("an undefined constructor of one byte", "5700"),
    ("an undefined constructor of variable width", "a200"),
    ("a constructor of no category", "10"),
    ("a string of more than there is", "a10361"),
    ("a wide string whose size is negative when signed", "b180000000"),
    ("a wide string of the largest size", "b1ffffffff61"),
    ("a wide string whose size is cut", "b1000000"),
    ("a list that has no count", "c000"),
    ("a list whose size is more than there is", "c00301"),
    ("a list of more elements than bytes", "c00202" + "40"),
    ("a list of a count without end", "d000000005ffffffff40"),
    ("a wide list whose size leaves no room for its count", "d00000000300000000"),
    ("a wide list of the largest size", "d0ffffffff00000000"),
    ("a wide list whose head is cut", "d0000000"),
    ("a map of one key and no value", "c1020140"),
    ("a map of more elements than bytes", "c1020440"),
    ("a map of a count without end", "d100000005fffffffe40"),
    ("an array without a constructor", "e00100"),
    ("an array whose size is zero", "e000"),
    ("a wide array without a constructor", "f00000000400000000"),
    ("a descriptor alone", "005324"),
    ("a descriptor that is null", "004040"),
    ("a descriptor that is a list", "004540"),
    ("a descriptor that is a string", "00a1016140"),
    ("a descriptor that is a uint", "00522440"),
    ("a descriptor that is described", "0000532440" + "40"),
    ("a descriptor that is cut", "0080000000"),
    ("a symbol as descriptor, of more than there is", "00a30561"),
    ("a descriptor that is missing", "00"),
]


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, raw in MALFORMED])
@pytest.mark.parametrize("behind", [0, 64], ids=["at the end", "with data behind"])
def test_what_is_malformed_is_a_decode_error(raw: str, behind: int) -> None:
    data = bytes.fromhex(raw)
    with pytest.raises(ConnectionFault) as caught:
        skip(data + bytes(behind), 0, len(data))
    assert caught.value.condition == DECODE_ERROR


@pytest.mark.parametrize("descriptor", ["5301", "44", "a30161"], ids=["number", "zero", "symbol"])
def test_descriptors_are_counted_as_depth(descriptor: str) -> None:
    prefix = bytes.fromhex("00" + descriptor)
    allowed = prefix * DEPTH_MAX + b"\x40"
    assert skip(allowed, 0, len(allowed)) == len(allowed)
    for depth in (DEPTH_MAX + 1, 100_000):
        data = prefix * depth + b"\x40"
        with pytest.raises(ConnectionFault, match="nested more than"):
            skip(data, 0, len(data))


def test_forms_know_every_constructor_of_the_specification() -> None:
    widths = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
    for code, form in enumerate(FORMS):
        if form <= 16:
            assert widths[code >> 4] == form
    assert sum(form != 0xFF for form in FORMS) == 39


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("c0020140", (1, 3, 4), id="list"),
        pytest.param("d0000000050000000140", (1, 9, 10), id="wide list"),
        pytest.param("e00302430000", (2, 3, 5), id="array"),
        pytest.param("f000000005ffffffff43", (2**32 - 1, 9, 10), id="wide array of no width"),
    ],
)
def test_a_compound_is_opened(raw: str, expected: tuple[int, int, int]) -> None:
    data = bytes.fromhex(raw)
    assert open_compound(data, 0, len(data)) == expected


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        pytest.param("005324", 0x24, id="small ulong"),
        pytest.param("00800000000000000024", 0x24, id="ulong"),
        pytest.param("0080000000000000000"[:8] + "24", None, id="ulong, cut"),
        pytest.param("0044", 0, id="ulong 0"),
        pytest.param("00800000468c00000004", 0x468C00000004, id="a vendor's number"),
        pytest.param("0080ffffffffffffffff", -1, id="a number that we cannot count to"),
        pytest.param("00a309616d71703a6f70656e", -1, id="an unknown symbol"),
        pytest.param("00b30000000e616d71703a6f70656e3a6c697374", 0x10, id="a wide symbol"),
        pytest.param("5324", None, id="no descriptor"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_descriptor_is_read(raw: str, code: int | None) -> None:
    data = bytes.fromhex(raw)
    if code is None:
        with pytest.raises(ConnectionFault):
            descriptor_at(data, 0, len(data))
    else:
        assert descriptor_at(data, 0, len(data)) == (code, len(data))


def test_a_symbol_is_compared_whole() -> None:
    """`amqp:data:binaryX` must not pass for `amqp:data:binary`."""
    for name, code in ((b"amqp:data:binary", 0x75), (b"amqp:data:binaryX", -1), (b"amqp:data", -1)):
        data = b"\x00\xa3" + bytes([len(name)]) + name
        assert descriptor_at(data, 0, len(data)) == (code, len(data))


@pytest.mark.parametrize("value", [0, 1, 0x7FFF, 0x8000, 0xFFFF])
def test_sixteen_bits_are_unsigned(value: int) -> None:
    assert u16_at(b"\xaa" + value.to_bytes(2, "big"), 1) == value


@pytest.mark.parametrize("value", [0, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF])
def test_thirty_two_bits_are_unsigned(value: int) -> None:
    assert u32_at(b"\xaa" + value.to_bytes(4, "big"), 1) == value
