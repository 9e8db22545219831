"""Constructors of encoded values, and the sizes of those values (core spec 1.2, 1.6).

A value is skipped by its own size, so its content costs no time. Two rules make
hostile bytes harmless: depth is counted (compiled recursion has no check of its own),
and a size or a count is believed only if there are enough bytes for it.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from broker.amqp.descriptors import BY_SYMBOL
from broker.amqp.errors import DECODE_ERROR, ConnectionFault
from broker.amqp.limits import DEPTH_MAX

UINT_MAX: Final = 0xFFFF_FFFF

# Entries of FORMS: the number of bytes after a constructor, up to 16, or one of these kinds.
VARIABLE_8: Final = 0x20
VARIABLE_32: Final = 0x21
COMPOUND: Final = 0x22
NO_CONSTRUCTOR: Final = 0xFF

_FORMS: Final[dict[int, int]] = {
    **dict.fromkeys((0x40, 0x41, 0x42, 0x43, 0x44, 0x45), 0),
    **dict.fromkeys((0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56), 1),
    **dict.fromkeys((0x60, 0x61), 2),
    **dict.fromkeys((0x70, 0x71, 0x72, 0x73, 0x74), 4),
    **dict.fromkeys((0x80, 0x81, 0x82, 0x83, 0x84), 8),
    **dict.fromkeys((0x94, 0x98), 16),
    **dict.fromkeys((0xA0, 0xA1, 0xA3), VARIABLE_8),
    **dict.fromkeys((0xB0, 0xB1, 0xB3), VARIABLE_32),
    **dict.fromkeys((0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0), COMPOUND),
}
FORMS: Final = bytes([_FORMS.get(code, NO_CONSTRUCTOR) for code in range(256)])


def malformed(what: str) -> ConnectionFault:
    """Return the fault for data that cannot be decoded."""
    return ConnectionFault(DECODE_ERROR, what)


def u16_at(data: bytes, at: i64) -> i64:
    # read_i16_be is signed: without the mask channel 0xFFFF would be -1
    return i64(read_i16_be(data, at)) & 0xFFFF


def u32_at(data: bytes, at: i64) -> i64:
    return i64(read_i32_be(data, at)) & UINT_MAX


def skip(data: bytes, at: i64, end: i64) -> i64:
    """Return the position after the value at `at`. Sizes are checked, contents are not.

    Raise ConnectionFault if it does not end by `end`, or is nested too deep.
    """
    depth: i64 = 0
    while at < end and data[at] == 0:
        depth += 1
        if depth > DEPTH_MAX:
            raise too_deep()
        at = behind_descriptor(data, at + 1, end)
    if at >= end:
        raise cut()
    form = i64(FORMS[i64(data[at])])
    if form <= 16:
        behind = at + 1 + form
    else:
        behind = _behind_variable(data, at, end, form)
    if behind > end:
        raise cut()
    return behind


def _behind_variable(data: bytes, at: i64, end: i64, form: i64) -> i64:
    """Return the position after a value that states its own size.

    It may be larger than `end`, which the caller checks.
    """
    if form == VARIABLE_8:
        if at + 2 > end:
            raise cut()
        return at + 2 + i64(data[at + 1])
    if form == VARIABLE_32:
        if at + 5 > end:
            raise cut()
        return at + 5 + u32_at(data, at + 1)
    if form == NO_CONSTRUCTOR:
        raise no_constructor(i64(data[at]))
    return open_compound(data, at, end)[2]


def open_compound(data: bytes, at: i64, end: i64) -> tuple[i64, i64, i64]:
    """Return count, first byte and end of the list, map or array at `at`, all checked.

    Raise ConnectionFault if it is malformed, or ends behind `end`.
    """
    return open_body(data, at + 1, end, i64(data[at]))


def open_body(data: bytes, at: i64, end: i64, code: i64) -> tuple[i64, i64, i64]:
    """Like `open_compound`, for the constructor `code` whose size starts at `at`."""
    if code & 0x10:
        first = at + 8
        if first > end:
            raise cut()
        behind = at + 4 + u32_at(data, at)
        count = u32_at(data, at + 4)
    else:
        first = at + 2
        if first > end:
            raise cut()
        behind = at + 1 + i64(data[at])
        count = i64(data[at + 1])
    if behind > end:
        raise cut()
    if behind < first:
        raise malformed("a size leaves no room for the count")
    if code & 0x20:
        # the count of an array cannot be checked yet: its elements may have no width
        if behind == first:
            raise malformed("an array without a constructor")
    else:
        if count > behind - first:
            raise malformed("a count is larger than its bytes allow")
        if code & 1 and count & 1:
            raise malformed("a map has a key without a value")
    return count, first, behind


def behind_descriptor(data: bytes, at: i64, end: i64) -> i64:
    """Return the position after a descriptor without its 0x00: a ulong or a symbol (1.5).

    Raise ConnectionFault if it is neither, or ends behind `end`.
    """
    if at >= end:
        raise cut()
    code = i64(data[at])
    if code == 0x53:
        behind = at + 2
    elif code == 0xA3 or code == 0xB3:
        behind = _behind_variable(data, at, end, i64(FORMS[code]))
    elif code == 0x80:
        behind = at + 9
    elif code == 0x44:
        behind = at + 1
    else:
        raise malformed("a descriptor is neither a ulong nor a symbol")
    if behind > end:
        raise cut()
    return behind


def descriptor_at(data: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """Return the code of the descriptor that starts (with 0x00) at `at`, and the position after it.

    The code is -1 for a symbol that BY_SYMBOL does not have, and for a number from 2^63 on. Raise
    ConnectionFault if there is no descriptor, or it ends behind `end`.
    """
    if at >= end:
        raise cut()
    if data[at] != 0:
        raise malformed("a described value was expected")
    behind = behind_descriptor(data, at + 1, end)
    code = i64(data[at + 1])
    if code == 0x53:
        return i64(data[at + 2]), behind
    if code == 0x80:
        number = read_i64_be(data, at + 2)
        return (number if number >= 0 else -1), behind
    if code == 0x44:
        return 0, behind
    name = data[at + 3 : behind] if code == 0xA3 else data[at + 6 : behind]
    return BY_SYMBOL.get(name, -1), behind


def cut() -> ConnectionFault:
    return malformed("a value is larger than what holds it")


def too_deep() -> ConnectionFault:
    return malformed(f"values are nested more than {DEPTH_MAX} deep")


def no_constructor(code: i64) -> ConnectionFault:
    return malformed(f"0x{int(code):02x} is no constructor")
