"""Fields of described lists: nulls, defaults, missing ones, wrong types, trailing bytes."""

from collections.abc import Callable

import pytest

from broker.amqp.composite import FieldReader, FieldWriter
from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.errors import (
    DECODE_ERROR,
    INVALID_FIELD,
    RESOURCE_LIMIT_EXCEEDED,
    ConnectionFault,
)
from broker.amqp.limits import FIELD_VALUES_MAX
from broker.amqp.types import Symbol, UInt

DESCRIPTOR = 0x13


def written(write: Callable[[FieldWriter], None]) -> str:
    """Return in hex what `write` writes into an empty composite, without the descriptor."""
    out = BytesWriter()
    fields = FieldWriter()
    write(fields)
    fields.close(out, DESCRIPTOR)
    data = out.getvalue().hex()
    assert data.startswith("005313")
    return data[6:]


def reader(raw: str) -> FieldReader:
    data = bytes.fromhex(raw)
    return FieldReader(data, 0, len(data), "thing")


def nulls_alone(fields: FieldWriter) -> None:
    fields.skip()
    fields.skip()


def nulls_in_front_of_a_field(fields: FieldWriter) -> None:
    fields.skip()
    fields.skip()
    fields.uint(1)


def a_null_behind_a_field(fields: FieldWriter) -> None:
    fields.uint(1)
    fields.skip()


def a_false_in_front_of_a_field(fields: FieldWriter) -> None:
    fields.skip()
    fields.boolean(False)
    fields.skip()
    fields.uint(1)


def a_false_alone(fields: FieldWriter) -> None:
    fields.uint(1)
    fields.boolean(False)


def a_true_that_is_the_default(fields: FieldWriter) -> None:
    fields.boolean(True, default=True)
    fields.uint(1)


def falses_twice(fields: FieldWriter) -> None:
    fields.boolean(False)
    fields.uint(1)
    fields.skip()
    fields.uint(2)


def nulls_between_fields(fields: FieldWriter) -> None:
    fields.uint(1)
    fields.skip()
    fields.uint(7, 7)
    fields.uint(2)


WRITTEN: list[tuple[str, Callable[[FieldWriter], None], str]] = [
    ("nothing", lambda _: None, "45"),
    ("nulls alone", nulls_alone, "45"),
    ("nulls in front of a field", nulls_in_front_of_a_field, "c0050340405201"),
    ("a trailing null is left out", a_null_behind_a_field, "c003015201"),
    ("nulls and a default between fields", nulls_between_fields, "c00704520140405202"),
    ("a false in front of a field", a_false_in_front_of_a_field, "c006044042405201"),
    ("a trailing false is left out", a_false_alone, "c003015201"),
    ("a true that is the default is a null", a_true_that_is_the_default, "c00402405201"),
    ("falses are those of their own gap", falses_twice, "c00704425201405202"),
    ("an absent uint", lambda f: f.uint(-1), "45"),
    ("an absent ushort", lambda f: f.ushort(-1), "45"),
    ("an absent ubyte", lambda f: f.ubyte(-1), "45"),
    ("an absent ulong", lambda f: f.ulong(-1), "45"),
    ("a uint of zero is no default", lambda f: f.uint(0), "c0020143"),
    ("a ushort of zero is no default", lambda f: f.ushort(0), "c00401600000"),
    ("a ubyte of zero is no default", lambda f: f.ubyte(0), "c003015000"),
    ("a ulong of zero is no default", lambda f: f.ulong(0), "c0020144"),
    ("a uint that holds its default", lambda f: f.uint(7, 7), "45"),
    ("a uint other than its default", lambda f: f.uint(7, 8), "c003015207"),
    ("a ushort that holds its default", lambda f: f.ushort(8, 8), "45"),
    ("a ushort other than its default", lambda f: f.ushort(8, 9), "c00401600008"),
    ("a boolean that holds its default", lambda f: f.boolean(False), "45"),
    ("a boolean other than its default", lambda f: f.boolean(False, default=True), "c0020142"),
    ("a boolean that must be there", lambda f: f.require_boolean(False), "c0020142"),
    ("a symbol that holds its default", lambda f: f.symbol("a", "a"), "45"),
    ("a symbol", lambda f: f.symbol("a", "b"), "c00401a30161"),
    ("an absent symbol", lambda f: f.symbol(None), "45"),
    ("an absent string", lambda f: f.string(None), "45"),
    ("an absent binary", lambda f: f.binary(None), "45"),
    ("an empty string", lambda f: f.string(""), "c00301a100"),
    ("an empty binary", lambda f: f.binary(b""), "c00301a000"),
    ("no symbols", lambda f: f.symbols([]), "45"),
    ("one symbol is an array, too", lambda f: f.symbols(["a"]), "c00701e00401a30161"),
    ("no map", lambda f: f.fields({}), "45"),
    ("a map", lambda f: f.fields({"k": None}), "c00801c10502a3016b40"),
    ("nothing that is encoded", lambda f: f.raw(None), "45"),
    ("what is encoded already", lambda f: f.raw(b"\x52\x01"), "c003015201"),
    ("a field of 253 bytes", lambda f: f.binary(bytes(251)), "c0fe01a0fb" + "00" * 251),
    ("a field of 255 bytes", lambda f: f.binary(bytes(253)), "d00000010300000001a0fd" + "00" * 253),
]


@pytest.mark.parametrize(
    ("write", "expected"), [pytest.param(write, raw, id=name) for name, write, raw in WRITTEN]
)
def test_fields_are_written(write: Callable[[FieldWriter], None], expected: str) -> None:
    assert written(write) == expected


READ: list[tuple[str, Callable[[FieldReader], object], str, object]] = [
    ("uint", lambda f: f.uint(9), "5207", 7),
    ("required uint", lambda f: f.require_uint("x"), "43", 0),
    ("optional uint", lambda f: f.optional_uint(), "7000000100", 256),
    ("ubyte", lambda f: f.ubyte(9), "50ff", 255),
    ("ushort", lambda f: f.ushort(9), "60ffff", 65535),
    ("ulong", lambda f: f.ulong(9), "8000000000ffffffff", 2**32 - 1),
    ("choice", lambda f: f.choice("x", 0, 2), "5002", 2),
    ("boolean", lambda f: f.boolean(False), "5601", True),
    ("required boolean", lambda f: f.require_boolean("x"), "42", False),
    ("symbol", lambda f: f.symbol(), "a30161", "a"),
    ("required symbol", lambda f: f.require_symbol("x"), "b30000000161", "a"),
    ("string", lambda f: f.string(), "a102c3a9", "é"),
    ("required string", lambda f: f.require_string("x"), "a100", ""),
    ("binary", lambda f: f.binary(), "a00161", b"a"),
    ("required ulong", lambda f: f.require_ulong("x"), "44", 0),
    ("required binary", lambda f: f.require_binary("x"), "b000000000", b""),
    ("symbols in an array", lambda f: f.symbols(), "e00602a301610162", ["a", "b"]),
    ("symbols in a wide array", lambda f: f.symbols(), "f00000000a00000001b30000000161", ["a"]),
    ("one symbol of many", lambda f: f.symbols(), "a30161", ["a"]),
    ("symbols in a list", lambda f: f.symbols(), "c00702a30161a30162", ["a", "b"]),
    ("no symbols in an empty list", lambda f: f.symbols(), "45", []),
    ("a map", lambda f: f.fields(), "c10602a3016b5201", {"k": UInt(1)}),
    ("a map with strings", lambda f: f.fields(strings=True), "c10602a1016b5201", {"k": UInt(1)}),
    ("an encoded map", lambda f: f.map(), "c10100", b"\xc1\x01\x00"),
    ("a position", lambda f: f.composite(), "00532445", 3),
]

DEFAULTS: dict[str, object] = {
    "uint": 9,
    "optional uint": -1,
    "ubyte": 9,
    "ushort": 9,
    "ulong": 9,
    "choice": 0,
    "boolean": False,
    "symbol": None,
    "string": None,
    "binary": None,
    "symbols in an array": [],
    "a map": {},
    "an encoded map": None,
    "a position": -1,
}


@pytest.mark.parametrize(
    ("read", "raw", "expected"), [pytest.param(r, raw, v, id=name) for name, r, raw, v in READ]
)
def test_a_field_is_read(read: Callable[[FieldReader], object], raw: str, expected: object) -> None:
    field = bytes.fromhex(raw)
    fields = reader(f"c0{len(field) + 1:02x}01{raw}")
    assert read(fields) == expected
    fields.close()
    assert fields.end == len(field) + 3


@pytest.mark.parametrize(("name", "read"), [pytest.param(n, r, id=n) for n, r, _, _ in READ])
def test_an_absent_field_is_its_default_or_a_fault(
    name: str, read: Callable[[FieldReader], object]
) -> None:
    for raw in ("45", "c00100", "c0020140", "d00000000400000000"):
        fields = reader(raw)
        if name.startswith("required"):
            with pytest.raises(ConnectionFault, match="thing without x") as caught:
                read(fields)
            assert caught.value.condition == INVALID_FIELD
        elif name in DEFAULTS:
            assert read(fields) == DEFAULTS[name]
            fields.close()


# pairs of the values below and the fields for which their type is the right one
RIGHT = {
    ("a10161", "string"),
    ("41", "boolean"),
    ("c10100", "a map"),
    ("c10100", "a map with strings"),
    ("c10100", "an encoded map"),
}


@pytest.mark.parametrize(
    ("name", "read"),
    [pytest.param(n, r, id=n) for n, r, _, _ in READ if n != "a position"],
)
def test_a_field_of_the_wrong_type_is_a_fault(
    name: str, read: Callable[[FieldReader], object]
) -> None:
    for wrong in ("a10161", "41", "5401", "c10100", "e0020240"):
        if (wrong, name.removeprefix("required ")) not in RIGHT:
            field = bytes.fromhex(wrong)
            with pytest.raises(ConnectionFault):
                read(reader(f"c0{len(field) + 1:02x}01{wrong}"))


BEYOND: list[tuple[str, Callable[[FieldReader], object], str, str]] = [
    ("an ubyte of 256", lambda f: f.ubyte(0), "7000000100", DECODE_ERROR),
    ("an ushort of 65536", lambda f: f.ushort(0), "7000010000", DECODE_ERROR),
    ("an uint of 33 bits", lambda f: f.uint(0), "800000000100000000", DECODE_ERROR),
    ("a choice that is none", lambda f: f.choice("mode", 0, 2), "5003", INVALID_FIELD),
    ("a map with a string for a key", lambda f: f.fields(), "c10502a1016b40", DECODE_ERROR),
    ("a map with a number as key", lambda f: f.fields(strings=True), "c10402540140", DECODE_ERROR),
    ("a map with a key twice", lambda f: f.fields(), "c10904a3016b40a3016b40", DECODE_ERROR),
    ("strings where symbols must be", lambda f: f.symbols(), "e00401a10161", DECODE_ERROR),
    (
        "four billion symbols of no width",
        lambda f: f.symbols(),
        "f000000005ffffffff40",
        DECODE_ERROR,
    ),
]


@pytest.mark.parametrize(
    ("read", "raw", "condition"), [pytest.param(r, raw, c, id=name) for name, r, raw, c in BEYOND]
)
def test_a_field_beyond_what_it_may_hold(
    read: Callable[[FieldReader], object], raw: str, condition: str
) -> None:
    field = bytes.fromhex(raw)
    with pytest.raises(ConnectionFault) as caught:
        read(reader(f"c0{len(field) + 1:02x}01{raw}"))
    assert caught.value.condition == condition


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("", id="nothing"),
        pytest.param("40", id="null"),
        pytest.param("c10100", id="a map"),
        pytest.param("e0020040", id="an array"),
        pytest.param("a000", id="a binary"),
        pytest.param("c005", id="a list that is cut"),
        pytest.param("c0020340", id="a list of more fields than bytes"),
    ],
)
def test_what_is_no_list_of_fields(raw: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        reader(raw)
    assert caught.value.condition == DECODE_ERROR


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param("c003024040", "has more than its fields", id="a field too many"),
        pytest.param("c003014041", "its size does not match", id="bytes behind the fields"),
    ],
)
def test_nothing_may_be_behind_the_last_field(raw: str, why: str) -> None:
    fields = reader(raw)
    fields.skip()
    with pytest.raises(ConnectionFault, match=why):
        fields.close()


def test_a_field_that_reaches_beyond_the_list_is_a_fault() -> None:
    data = bytes.fromhex("c00301a1056162") + b"more"
    fields = FieldReader(data, 0, len(data), "thing")
    with pytest.raises(ConnectionFault):
        fields.string()


def test_a_field_holds_only_so_many_values() -> None:
    out = BytesWriter()
    put_value(out, [{Symbol("k"): [[] for _ in range(FIELD_VALUES_MAX)]}])
    data = out.getvalue()
    fields = FieldReader(data, 0, len(data), "thing")
    with pytest.raises(ConnectionFault) as caught:
        fields.fields()
    assert caught.value.condition == RESOURCE_LIMIT_EXCEEDED
