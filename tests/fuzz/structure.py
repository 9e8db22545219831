"""Encoded values as trees, which can be changed and encoded again with correct sizes.

The decoder is separate from the broker's: inputs made by its codec could not show its errors.
"""

from __future__ import annotations

from typing import Final

DEPTH_MAX: Final = 40

WIDTHS: Final = {4: 0, 5: 1, 6: 2, 7: 4, 8: 8, 9: 16}


class Value:
    """A value; `head` is the data before the children: a descriptor with its 0x00, or nothing.

    `code` is 0 for described values, 0xC0 and 0xC1 for lists and maps, and -1 for all others, which
    `head` contains completely.
    """

    def __init__(self, head: bytes, code: int = -1, children: list[Value] | None = None) -> None:
        self.head = head
        self.code = code
        self.children = children if children is not None else []

    def encoded(self) -> bytes:
        content = b"".join(child.encoded() for child in self.children)
        if self.code <= 0:
            return self.head + content
        size, count = len(content), len(self.children)
        if size < 0xFF and count <= 0xFF:
            return bytes([self.code, size + 1, count]) + content
        return bytes([self.code | 0x10]) + (size + 4).to_bytes(4) + count.to_bytes(4) + content

    def families(self) -> list[list[Value]]:
        """Return the children of each value in this one that has any, starting with this one."""
        found = [self.children] if self.children else []
        for child in self.children:
            found += child.families()
        return found


def values_of(data: bytes) -> tuple[list[Value], bytes]:
    """Return the values with which `data` starts, and the rest, which is none."""
    values: list[Value] = []
    at = 0
    try:
        while at < len(data):
            value, at = _value(data, at, 0)
            values.append(value)
    except (IndexError, KeyError):
        pass
    return values, data[at:]


def _value(data: bytes, at: int, depth: int) -> tuple[Value, int]:
    """Return a value and the index behind it.

    Raise IndexError if `data` ends within the value, KeyError if it is no value.
    """
    code = data[at]
    if depth > DEPTH_MAX:
        raise KeyError(depth)
    if code == 0:
        _, behind = _value(data, at + 1, DEPTH_MAX)
        child, end = _value(data, behind, depth + 1)
        return Value(data[at:behind], 0, [child]), end
    wide = code & 0x10
    if code & 0xEF in (0xC0, 0xC1):
        return _compound(data, at, depth)
    if code >= 0xA0:
        size = int.from_bytes(data[at + 1 : at + 5]) + 5 if wide else data[at + 1] + 2
    else:
        size = 1 + WIDTHS[code >> 4]
    if at + size > len(data):
        raise IndexError(at)
    return Value(data[at : at + size]), at + size


def _compound(data: bytes, at: int, depth: int) -> tuple[Value, int]:
    code = data[at] & 0xEF
    if data[at] & 0x10:
        end, first = at + 5 + int.from_bytes(data[at + 1 : at + 5]), at + 9
    else:
        end, first = at + 2 + data[at + 1], at + 3
    if end > len(data):
        raise IndexError(at)
    children: list[Value] = []
    while first < end:
        child, first = _value(data, first, depth + 1)
        children.append(child)
    return Value(b"", code, children), end
