"""Encoding of values into bytes, always in the shortest form (core spec 1.6).

`put_<type>` is for callers that know the type, `put_value` for the others. The tests for
types are ordered by how often a type occurs. A value that has no encoding (a number out
of range, an unknown class) is a bug of the broker: ValueError or TypeError.

`BytesWriter` comes from mypyc's run-time library; the engine imports it from here, so
that it can be replaced in one place.
"""

from __future__ import annotations

import uuid
from typing import Final, final

from librt.strings import (
    BytesWriter,
    write_f32_be,
    write_f64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64

from broker.amqp.errors import INTERNAL_ERROR, ConnectionFault
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
)

__all__ = [
    "BytesWriter",
    "put_binary",
    "put_bool",
    "put_byte",
    "put_char",
    "put_compound",
    "put_descriptor",
    "put_double",
    "put_float",
    "put_int",
    "put_long",
    "put_null",
    "put_short",
    "put_string",
    "put_symbol",
    "put_symbols",
    "put_timestamp",
    "put_u16",
    "put_u32",
    "put_ubyte",
    "put_uint",
    "put_ulong",
    "put_ushort",
    "put_uuid",
    "put_value",
]

NULL: Final = 0x40
TRUE: Final = 0x41
FALSE: Final = 0x42


def put_u16(out: BytesWriter, value: i64) -> None:
    """Write two bytes, big-endian, without a constructor."""
    write_i16_be(out, i16(value if value < 0x8000 else value - 0x1_0000))


def put_u32(out: BytesWriter, value: i64) -> None:
    """Write four bytes, big-endian, without a constructor."""
    write_i32_be(out, i32(value if value < 0x8000_0000 else value - 0x1_0000_0000))


def put_null(out: BytesWriter) -> None:
    out.append(NULL)


def put_bool(out: BytesWriter, value: bool) -> None:
    out.append(TRUE if value else FALSE)


def put_ubyte(out: BytesWriter, value: i64) -> None:
    out.append(0x50)
    out.append(int(value))


def put_ushort(out: BytesWriter, value: i64) -> None:
    out.append(0x60)
    put_u16(out, value)


def put_uint(out: BytesWriter, value: i64) -> None:
    if value == 0:
        out.append(0x43)
    elif value <= 0xFF:
        out.append(0x52)
        out.append(int(value))
    else:
        out.append(0x70)
        put_u32(out, value)


def put_ulong(out: BytesWriter, value: i64) -> None:
    """Write a ulong below 2^63; the engine itself never writes a larger one."""
    if value == 0:
        out.append(0x44)
    elif value <= 0xFF:
        out.append(0x53)
        out.append(int(value))
    else:
        out.append(0x80)
        write_i64_be(out, value)


def put_byte(out: BytesWriter, value: i64) -> None:
    out.append(0x51)
    out.append(int(value & 0xFF))


def put_short(out: BytesWriter, value: i64) -> None:
    out.append(0x61)
    write_i16_be(out, i16(value))


def put_int(out: BytesWriter, value: i64) -> None:
    if -128 <= value <= 127:
        out.append(0x54)
        out.append(int(value & 0xFF))
    else:
        out.append(0x71)
        write_i32_be(out, i32(value))


def put_long(out: BytesWriter, value: i64) -> None:
    if -128 <= value <= 127:
        out.append(0x55)
        out.append(int(value & 0xFF))
    else:
        out.append(0x81)
        write_i64_be(out, value)


def put_float(out: BytesWriter, value: float) -> None:
    out.append(0x72)
    write_f32_be(out, value)


def put_double(out: BytesWriter, value: float) -> None:
    out.append(0x82)
    write_f64_be(out, value)


def put_char(out: BytesWriter, code_point: i64) -> None:
    out.append(0x73)
    put_u32(out, code_point)


def put_timestamp(out: BytesWriter, milliseconds: i64) -> None:
    out.append(0x83)
    write_i64_be(out, milliseconds)


def put_uuid(out: BytesWriter, value: uuid.UUID) -> None:
    out.append(0x98)
    out.write(value.bytes)


def put_binary(out: BytesWriter, value: bytes) -> None:
    _put_variable(out, 0xA0, value)


def put_string(out: BytesWriter, value: str) -> None:
    _put_variable(out, 0xA1, value.encode("utf-8"))


def put_symbol(out: BytesWriter, text: str) -> None:
    _put_variable(out, 0xA3, text.encode("ascii"))


def put_descriptor(out: BytesWriter, code: i64) -> None:
    """Write the start of a described value; the caller must write the value after it."""
    out.append(0x00)
    put_ulong(out, code)


def put_symbols(out: BytesWriter, texts: list[str]) -> None:
    """Write a `multiple` field (1.5), always as an array, the form that every client reads."""
    raw: list[bytes] = []
    code: i64 = 0xA3
    for text in texts:
        symbol = text.encode("ascii")
        if len(symbol) > 0xFF:
            code = 0xB3
        raw.append(symbol)
    content = BytesWriter()
    content.append(int(code))
    for symbol in raw:
        _put_variable_body(content, code, symbol)
    put_compound(out, 0xE0, content, count=len(raw))


def put_value(out: BytesWriter, value: object) -> None:
    """Write any value; a dict is written as a map.

    Raise ConnectionFault if it is nested deeper than DEPTH_MAX.
    """
    _Encoder().value(out, value)


@final
class _Encoder:
    """The encoder of one value; it counts the nesting depth."""

    def __init__(self) -> None:
        self._depth: i64 = 0

    def value(self, out: BytesWriter, value: object) -> None:
        if value is None:
            out.append(NULL)
        elif isinstance(value, bool):
            out.append(TRUE if value else FALSE)
        elif isinstance(value, str):
            put_string(out, value)
        elif isinstance(value, Symbol):
            put_symbol(out, value.text)
        elif isinstance(value, int):
            put_long(out, _i64(value))
        elif isinstance(value, UInt):
            put_uint(out, value.value)
        elif isinstance(value, ULong):
            put_ulong_object(out, value)
        elif isinstance(value, UByte):
            put_ubyte(out, value.value)
        elif isinstance(value, UShort):
            put_ushort(out, value.value)
        elif isinstance(value, bytes):
            put_binary(out, value)
        elif isinstance(value, float):
            put_double(out, value)
        elif isinstance(value, Int):
            put_int(out, value.value)
        elif isinstance(value, Byte):
            put_byte(out, value.value)
        elif isinstance(value, Short):
            put_short(out, value.value)
        elif isinstance(value, Timestamp):
            put_timestamp(out, value.value)
        elif isinstance(value, Float):
            put_float(out, value.value)
        elif isinstance(value, Char):
            put_char(out, value.value)
        elif isinstance(value, uuid.UUID):
            put_uuid(out, value)
        elif isinstance(value, Decimal):
            out.append(_decimal_code(value))
            out.write(value.raw)
        else:
            self._nested(out, value)

    def _nested(self, out: BytesWriter, value: object) -> None:
        if isinstance(value, list) and not value:
            out.append(0x45)  # empty: a reader counts no depth for it either
            return
        self._enter()
        if isinstance(value, list):
            put_compound(out, 0xC0, self._items(value), count=len(value))
        elif isinstance(value, Map):
            put_compound(out, 0xC1, self._pairs(value.pairs), count=2 * len(value))
        elif isinstance(value, dict):
            put_compound(out, 0xC1, self._pairs(list(value.items())), count=2 * len(value))
        elif isinstance(value, Described):
            out.append(0x00)
            self.value(out, value.descriptor)
            self.value(out, value.value)
        elif isinstance(value, Array):
            self.array(out, value)
        else:
            raise TypeError(f"no AMQP type for {type(value).__name__}")
        self._depth -= 1

    def _items(self, values: list[object]) -> BytesWriter:
        content = BytesWriter()
        for value in values:
            self.value(content, value)
        return content

    def _pairs(self, pairs: list[tuple[object, object]]) -> BytesWriter:
        content = BytesWriter()
        for key, value in pairs:
            self.value(content, key)
            self.value(content, value)
        return content

    def array(self, out: BytesWriter, value: Array) -> None:
        content = BytesWriter()
        if value.descriptor is not None:
            content.append(0x00)
            self.value(content, value.descriptor)
        content.append(value.code)
        for element in value.values:
            self._element(content, value.code, element)
        put_compound(out, 0xE0, content, count=len(value))

    def _element(self, out: BytesWriter, code: i64, value: object) -> None:
        """Write a value without its constructor, in the form that the array's constructor sets."""
        if isinstance(value, Symbol):
            _put_variable_body(out, _one_of(code, 0xA3, 0xB3), value.text.encode("ascii"))
        elif isinstance(value, str):
            _put_variable_body(out, _one_of(code, 0xA1, 0xB1), value.encode("utf-8"))
        elif isinstance(value, bytes):
            _put_variable_body(out, _one_of(code, 0xA0, 0xB0), value)
        elif isinstance(value, bool):
            _one_of(code, 0x56, 0x56)
            out.append(1 if value else 0)
        elif isinstance(value, int):
            _put_integer_body(out, _one_of(code, 0x55, 0x81), value)
        elif isinstance(value, ULong):
            _put_integer_body(out, _one_of(code, 0x53, 0x80), value.value)
        elif isinstance(value, UInt):
            _put_integer_body(out, _one_of(code, 0x52, 0x70), value.value)
        elif isinstance(value, Int):
            _put_integer_body(out, _one_of(code, 0x54, 0x71), value.value)
        elif isinstance(value, UByte):
            _put_integer_body(out, _one_of(code, 0x50, 0x50), value.value)
        elif isinstance(value, Byte):
            _put_integer_body(out, _one_of(code, 0x51, 0x51), value.value)
        elif isinstance(value, UShort):
            _put_integer_body(out, _one_of(code, 0x60, 0x60), value.value)
        elif isinstance(value, Short):
            _put_integer_body(out, _one_of(code, 0x61, 0x61), value.value)
        elif isinstance(value, Char):
            _put_integer_body(out, _one_of(code, 0x73, 0x73), value.value)
        elif isinstance(value, Timestamp):
            _put_integer_body(out, _one_of(code, 0x83, 0x83), value.value)
        elif isinstance(value, Float):
            _one_of(code, 0x72, 0x72)
            write_f32_be(out, value.value)
        elif isinstance(value, float):
            _one_of(code, 0x82, 0x82)
            write_f64_be(out, value)
        elif isinstance(value, uuid.UUID):
            _one_of(code, 0x98, 0x98)
            out.write(value.bytes)
        elif isinstance(value, Decimal):
            _one_of(code, _decimal_code(value), _decimal_code(value))
            out.write(value.raw)
        else:
            self._nested_element(out, code, value)

    def _nested_element(self, out: BytesWriter, code: i64, value: object) -> None:
        self._enter()
        if isinstance(value, list):
            count, content = len(value), self._items(value)
            code = _one_of(code, 0xC0, 0xD0)
        elif isinstance(value, Map):
            count, content = 2 * len(value), self._pairs(value.pairs)
            code = _one_of(code, 0xC1, 0xD1)
        elif isinstance(value, Array):
            # encode the whole array, then drop its constructor, size and count
            count, content = len(value), BytesWriter()
            self.array(content, value)
            raw = content.getvalue()
            content = BytesWriter()
            content.write(raw[3:] if raw[0] == 0xE0 else raw[9:])
            code = _one_of(code, 0xE0, 0xF0)
        else:
            raise TypeError(f"a {type(value).__name__} cannot be the element of an array")
        _put_compound_body(out, code, content, count=count)
        self._depth -= 1

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ConnectionFault(INTERNAL_ERROR, "a value to be written is nested too deep")


def put_ulong_object(out: BytesWriter, value: ULong) -> None:
    """Write any ulong; those from 2^63 on do not fit the engine's signed 64-bit numbers."""
    number = value.value
    put_ulong(out, number) if number <= 0xFF else _put_wide_ulong(out, number)


def _put_wide_ulong(out: BytesWriter, number: int) -> None:
    out.append(0x80)
    out.write(number.to_bytes(8, "big"))


def _i64(value: int) -> i64:
    if not -0x8000_0000_0000_0000 <= value <= 0x7FFF_FFFF_FFFF_FFFF:
        raise ValueError(f"{value} does not fit a long")
    return i64(value)


def _one_of(code: i64, narrow: i64, wide: i64) -> i64:
    if code != narrow and code != wide:
        raise ValueError(f"an element does not fit the array's constructor 0x{int(code):02x}")
    return code


def _decimal_code(value: Decimal) -> int:
    size = len(value.raw)
    return 0x74 if size == 4 else 0x84 if size == 8 else 0x94


def _put_integer_body(out: BytesWriter, code: i64, value: int) -> None:
    """Write an integer as wide as its constructor says.

    Raise OverflowError if it does not fit.
    """
    kind = code >> 4
    width = 1 if kind == 5 else 2 if kind == 6 else 4 if kind == 7 else 8
    signed = code & 0xF not in (0, 2, 3) or code == 0x83
    out.write(value.to_bytes(width, "big", signed=signed))


def _put_variable(out: BytesWriter, code: i64, raw: bytes) -> None:
    if len(raw) > 0xFF:
        code |= 0x10
    out.append(int(code))
    _put_variable_body(out, code, raw)


def _put_variable_body(out: BytesWriter, code: i64, raw: bytes) -> None:
    size = i64(len(raw))
    if code & 0x10:
        put_u32(out, size)
    elif size <= 0xFF:
        out.append(int(size))
    else:
        raise ValueError("an element is too long for the array's constructor")
    out.write(raw)


def put_compound(out: BytesWriter, code: i64, content: BytesWriter, *, count: i64) -> None:
    """Write a list, map or array with the encoded elements `content`.

    `code` is the narrow form of its constructor; the wide form is chosen if it is needed.
    """
    if len(content) >= 0xFF or count > 0xFF:
        code |= 0x10
    out.append(int(code))
    _put_compound_body(out, code, content, count=count)


def _put_compound_body(out: BytesWriter, code: i64, content: BytesWriter, *, count: i64) -> None:
    size = len(content)
    if code & 0x10:
        put_u32(out, size + 4)
        put_u32(out, count)
    elif size < 0xFF and count <= 0xFF:
        out.append(int(size + 1))
        out.append(int(count))
    else:
        raise ValueError("an element is too long for the array's constructor")
    out.write(content.getvalue())
