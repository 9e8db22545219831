"""Decoding of bytes into values: every encoding of core spec 1.6, whatever the bytes.

All readers take the data and a position, never a memoryview, and `end`, the first
byte that they must not read. Readers without `end` are for the data path: call them only
if the whole value is known to lie within the data, or under an `except IndexError`.
Apart from that IndexError, readers raise only `ConnectionFault`.

`constructors.py` makes hostile bytes harmless. In addition, arrays of elements without
width are not expanded, and `take_value` limits the number of values that it makes.
"""

from __future__ import annotations

import uuid
from typing import Final, final

from librt.strings import read_f32_be, read_f64_be, read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64, mypyc_attr

from broker.amqp.constructors import (
    FORMS,
    NO_CONSTRUCTOR,
    UINT_MAX,
    behind_descriptor,
    cut,
    descriptor_at,
    malformed,
    no_constructor,
    open_body,
    open_compound,
    skip,
    too_deep,
    u16_at,
    u32_at,
)
from broker.amqp.errors import RESOURCE_LIMIT_EXCEEDED, ConnectionFault
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
    "binary_at",
    "bool_at",
    "descriptor_at",
    "encoded_value",
    "malformed",
    "open_body",
    "open_compound",
    "skip",
    "symbol_at",
    "take_bool",
    "take_uint",
    "take_value",
    "text_at",
    "text_of",
    "u16_at",
    "u32_at",
    "uint_at",
    "ulong_at",
]

LONG_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF


def uint_at(data: bytes, at: i64, default: i64) -> i64:
    """Return the unsigned number of up to 32 bits, of any width; `default` for null.

    Raise ConnectionFault for other values.
    """
    code = i64(data[at])
    if code == 0x52:
        return i64(data[at + 1])
    if code == 0x43:
        return 0
    if code == 0x70:
        return u32_at(data, at + 1)
    if code == 0x40:
        return default
    if code == 0x50 or code == 0x53:
        return i64(data[at + 1])
    if code == 0x60:
        return u16_at(data, at + 1)
    if code == 0x44:
        return 0
    if code == 0x80:
        value = read_i64_be(data, at + 1)
        if 0 <= value <= UINT_MAX:
            return value
        raise malformed("a number does not fit 32 bits")
    raise malformed("an unsigned number was expected")


def take_uint(data: bytes, at: i64) -> tuple[i64, i64]:
    """Return the number as `uint_at` does, -1 for null, and the position after it.

    Raises as `uint_at`.
    """
    code = i64(data[at])
    if code == 0x52:
        return i64(data[at + 1]), at + 2
    if code == 0x43:
        return 0, at + 1
    if code == 0x70:
        return u32_at(data, at + 1), at + 5
    if code == 0x40:
        return -1, at + 1
    return uint_at(data, at, -1), at + 1 + i64(FORMS[code])


def ulong_at(data: bytes, at: i64, default: i64) -> i64:
    """Return the unsigned number of any width; `default` for null, 2^63-1 for larger numbers.

    Raise ConnectionFault for other values.
    """
    if data[at] == 0x80:
        value = read_i64_be(data, at + 1)
        return value if value >= 0 else LONG_MAX
    return uint_at(data, at, default)


def bool_at(data: bytes, at: i64, default: bool) -> bool:
    """Return the boolean at `at`, `default` for null. Raise ConnectionFault for other values."""
    code = i64(data[at])
    if code == 0x41:
        return True
    if code == 0x42:
        return False
    if code == 0x40:
        return default
    if code == 0x56:
        value = i64(data[at + 1])
        if value <= 1:
            return value == 1
    raise malformed("a boolean was expected")


def take_bool(data: bytes, at: i64) -> tuple[i64, i64]:
    """Return 1, 0, or -1 for null, and the position after it."""
    code = i64(data[at])
    if code == 0x42:
        return 0, at + 1
    if code == 0x41:
        return 1, at + 1
    if code == 0x40:
        return -1, at + 1
    return (1 if bool_at(data, at, False) else 0), at + 2


def text_at(data: bytes, at: i64, end: i64) -> str | None:
    """Return the string at `at`, None for null. Raise ConnectionFault for anything else."""
    behind = skip(data, at, end)
    code = i64(data[at])
    if code == 0xA1:
        return text_of(data[at + 2 : behind])
    if code == 0xB1:
        return text_of(data[at + 5 : behind])
    if code == 0x40:
        return None
    raise malformed("a string was expected")


def symbol_at(data: bytes, at: i64, end: i64) -> str | None:
    """Return the symbol at `at`, None for null. Raise ConnectionFault for anything else."""
    behind = skip(data, at, end)
    code = i64(data[at])
    if code == 0xA3:
        return _symbol(data[at + 2 : behind])
    if code == 0xB3:
        return _symbol(data[at + 5 : behind])
    if code == 0x40:
        return None
    raise malformed("a symbol was expected")


def binary_at(data: bytes, at: i64, end: i64) -> bytes | None:
    """Return the binary at `at`, None for null. Raise ConnectionFault for anything else."""
    behind = skip(data, at, end)
    code = i64(data[at])
    if code == 0xA0:
        return data[at + 2 : behind]
    if code == 0xB0:
        return data[at + 5 : behind]
    if code == 0x40:
        return None
    raise malformed("a binary was expected")


def encoded_value(data: bytes, at: i64, end: i64) -> bytes:
    """Return the encoded bytes of the value at `at`."""
    return data[at : skip(data, at, end)]


def take_value(data: bytes, at: i64, end: i64, values_max: i64 = LONG_MAX) -> tuple[object, i64]:
    """Return the value at `at`, without loss, and the position after it.

    Raise ConnectionFault if it has more than `values_max` values, counting those in lists and maps.
    """
    reader = _Reader(data, at, end, values_max)
    value = reader.value()
    return value, reader.at


@mypyc_attr(acyclic=True, free_list_len=1)
@final
class _Reader:
    """The decoder of one value: position, nesting depth, and the number of values still allowed."""

    def __init__(self, data: bytes, at: i64, end: i64, values_max: i64) -> None:
        self._data: Final = data
        self.at: i64 = at
        self._end: i64 = end
        self._left: i64 = values_max
        self._depth: i64 = 0

    def value(self) -> object:
        code = i64(self._data[self._claim(1)])
        if code != 0:
            return self._body(code)
        self._enter()
        descriptor = self._descriptor()
        value = self.value()
        self._depth -= 1
        return Described(descriptor, value)

    def _body(self, code: i64) -> object:
        """Return the value after the constructor `code`. Tests are in the order of frequency."""
        self._left -= 1
        if self._left < 0:
            raise ConnectionFault(RESOURCE_LIMIT_EXCEEDED, "a field has too many values")
        data = self._data
        if code == 0xA1 or code == 0xB1:
            return text_of(self._variable(code))
        if code == 0xA3 or code == 0xB3:
            return Symbol(_symbol(self._variable(code)))
        if code == 0x40:
            return None
        if code == 0x41:
            return True
        if code == 0x42:
            return False
        if code == 0x52:
            return UInt(data[self._claim(1)])
        if code == 0x43:
            return UInt(0)
        if code == 0x70:
            return UInt(int(u32_at(data, self._claim(4))))
        if code == 0x53:
            return ULong(data[self._claim(1)])
        if code == 0x44:
            return ULong(0)
        if code == 0x55:
            return _signed(data[self._claim(1)])
        if code == 0x81:
            return int(read_i64_be(data, self._claim(8)))
        if code == 0x80:
            at = self._claim(8)
            return ULong(int.from_bytes(data[at : at + 8], "big"))
        if code == 0x50:
            return UByte(data[self._claim(1)])
        if code == 0x51:
            return Byte(_signed(data[self._claim(1)]))
        if code == 0x54:
            return Int(_signed(data[self._claim(1)]))
        if code == 0x71:
            return Int(int(read_i32_be(data, self._claim(4))))
        if code == 0xC1 or code == 0xD1:
            return self._map(code)
        if code == 0xC0 or code == 0xD0:
            return self._list(code)
        if code == 0x45:
            return []
        if code == 0xE0 or code == 0xF0:
            return self._array(code)
        if code == 0xA0 or code == 0xB0:
            return self._variable(code)
        if code == 0x83:
            return Timestamp(int(read_i64_be(data, self._claim(8))))
        if code == 0x56:
            return self._boolean()
        if code == 0x60:
            return UShort(int(u16_at(data, self._claim(2))))
        if code == 0x61:
            return Short(int(read_i16_be(data, self._claim(2))))
        if code == 0x72:
            return Float(read_f32_be(data, self._claim(4)))
        if code == 0x82:
            return read_f64_be(data, self._claim(8))
        if code == 0x73:
            return self._char()
        if code == 0x98:
            at = self._claim(16)
            return uuid.UUID(bytes=data[at : at + 16])
        if code == 0x74 or code == 0x84 or code == 0x94:
            return self._decimal(i64(FORMS[code]))
        raise no_constructor(code)

    def _claim(self, width: i64) -> i64:
        """Return the position of the next `width` bytes, and advance past them."""
        at = self.at
        if width > self._end - at:
            raise cut()
        self.at = at + width
        return at

    def _variable(self, code: i64) -> bytes:
        if code & 0x10:
            size = u32_at(self._data, self._claim(4))
        else:
            size = i64(self._data[self._claim(1)])
        at = self._claim(size)
        return self._data[at : at + size]

    def _boolean(self) -> bool:
        value = self._data[self._claim(1)]
        if value > 1:
            raise malformed("a boolean is neither 0 nor 1")
        return value == 1

    def _char(self) -> Char:
        value = u32_at(self._data, self._claim(4))
        if value > 0x10FFFF:
            raise malformed("a char is beyond Unicode")
        return Char(int(value))

    def _decimal(self, width: i64) -> Decimal:
        at = self._claim(width)
        return Decimal(self._data[at : at + width])

    def _descriptor(self) -> ULong | Symbol:
        at = self.at
        self.at = behind_descriptor(self._data, at, self._end)
        code = self._data[at]
        if code == 0x53:
            return ULong(self._data[at + 1])
        if code == 0x44:
            return ULong(0)
        if code == 0x80:
            return ULong(int.from_bytes(self._data[at + 1 : at + 9], "big"))
        return Symbol(_symbol(self._data[at + (2 if code == 0xA3 else 5) : self.at]))

    def _open(self, code: i64) -> tuple[i64, i64]:
        """Enter the list, map or array whose constructor was read; return count and outer end."""
        outer = self._end
        count, self.at, self._end = open_body(self._data, self.at, outer, code)
        self._enter()
        return count, outer

    def _close(self, outer: i64) -> None:
        if self.at != self._end:
            raise malformed("a size does not match its content")
        self._end = outer
        self._depth -= 1

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise too_deep()

    def _list(self, code: i64) -> list[object]:
        count, outer = self._open(code)
        values = [self.value() for _ in range(count)]
        self._close(outer)
        return values

    def _map(self, code: i64) -> Map:
        count, outer = self._open(code)
        pairs: list[tuple[object, object]] = []
        for _ in range(count >> 1):
            key = self.value()
            pairs.append((key, self.value()))
        self._close(outer)
        try:
            return Map(pairs)
        except (ValueError, TypeError) as error:
            raise malformed(str(error)) from error

    def _array(self, code: i64) -> Array:
        """Return the array after the constructor `code`.

        Descriptors of descriptors are legal here (1.5) but unknown in practice: malformed.
        """
        count, outer = self._open(code)
        descriptor: ULong | Symbol | None = None
        element = i64(self._data[self._claim(1)])
        if element == 0:
            descriptor = self._descriptor()
            element = i64(self._data[self._claim(1)])
        form = i64(FORMS[element])
        if form == NO_CONSTRUCTOR:
            raise no_constructor(element)
        values: list[object] = []
        zero_width: i64 = 0
        if form == 0:
            zero_width = count
        elif count > self._end - self.at:
            raise malformed("a count is larger than its bytes allow")
        else:
            values = [self._body(element) for _ in range(count)]
        self._close(outer)
        return Array(int(element), values, descriptor=descriptor, zero_width_count=int(zero_width))


def _signed(value: int) -> int:
    return value if value < 0x80 else value - 0x100


def text_of(raw: bytes) -> str:
    """Return the bytes of a string as text. Raise ConnectionFault if they are not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise malformed("a string is not UTF-8") from None


def _symbol(raw: bytes) -> str:
    try:
        return raw.decode("ascii")
    except UnicodeDecodeError:
        raise malformed("a symbol is not ASCII") from None
