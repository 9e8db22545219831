"""AMQP types that Python lacks (core spec 1.6).

None, bool, int (long), float (double), bytes, str, uuid.UUID and list are used as
they are. Every other type has a final class here, so that a decoded value can be
written back with its type. Values of different types are never equal, although
Python says 1 == 1.0 == True.
"""

from __future__ import annotations

import struct
from typing import Final, final


class Integer:
    """An integer of a width that Python does not distinguish from others.

    Raises ValueError if `value` is not within `low` to `high`.
    """

    def __init__(self, value: int, low: int, high: int) -> None:
        if not low <= value <= high:
            raise ValueError(f"{value} is not within {low} to {high}")
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Integer) and type(self) is type(other) and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value})"


@final
class UByte(Integer):
    """ubyte, 1.6.3."""

    def __init__(self, value: int) -> None:
        super().__init__(value, 0, 0xFF)


@final
class UShort(Integer):
    """ushort, 1.6.4."""

    def __init__(self, value: int) -> None:
        super().__init__(value, 0, 0xFFFF)


@final
class UInt(Integer):
    """uint, 1.6.5."""

    def __init__(self, value: int) -> None:
        super().__init__(value, 0, 0xFFFF_FFFF)


@final
class ULong(Integer):
    """ulong, 1.6.6."""

    def __init__(self, value: int) -> None:
        super().__init__(value, 0, 0xFFFF_FFFF_FFFF_FFFF)


@final
class Byte(Integer):
    """byte, 1.6.7."""

    def __init__(self, value: int) -> None:
        super().__init__(value, -0x80, 0x7F)


@final
class Short(Integer):
    """short, 1.6.8."""

    def __init__(self, value: int) -> None:
        super().__init__(value, -0x8000, 0x7FFF)


@final
class Int(Integer):
    """int, 1.6.9."""

    def __init__(self, value: int) -> None:
        super().__init__(value, -0x8000_0000, 0x7FFF_FFFF)


@final
class Timestamp(Integer):
    """Milliseconds since the Unix epoch, 1.6.17. An int: its range is larger than datetime's."""

    def __init__(self, value: int) -> None:
        super().__init__(value, -0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF)


@final
class Char(Integer):
    """One Unicode code point, 1.6.16. An int, not a str: Java clients send lone surrogates."""

    def __init__(self, value: int) -> None:
        super().__init__(value, 0, 0x10FFFF)


@final
class Float:
    """A float of 32 bits, 1.6.11. Equal by its bits, so that NaN equals itself."""

    def __init__(self, value: float) -> None:
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Float) and _float_bits(self.value) == _float_bits(other.value)

    def __hash__(self) -> int:
        return hash(("Float", _float_bits(self.value)))

    def __repr__(self) -> str:
        return f"Float({self.value})"


@final
class Decimal:
    """A decimal32, 64 or 128 (1.6.13 to 1.6.15) as it was received: 4, 8 or 16 opaque bytes.

    Raises ValueError for another number of bytes.
    """

    def __init__(self, raw: bytes) -> None:
        if len(raw) not in (4, 8, 16):
            raise ValueError(f"a decimal has 4, 8 or 16 bytes, not {len(raw)}")
        self.raw: Final = raw

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decimal) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(("Decimal", self.raw))

    def __repr__(self) -> str:
        return f"Decimal({self.raw.hex()})"


@final
class Symbol:
    """A name from a constrained domain, 1.6.21: ASCII."""

    def __init__(self, text: str) -> None:
        self.text: Final = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Symbol) and self.text == other.text

    def __hash__(self) -> int:
        return hash(("Symbol", self.text))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Symbol({self.text!r})"


@final
class Described:
    """A value with a descriptor that says what it means, 1.2."""

    def __init__(self, descriptor: ULong | Symbol, value: object) -> None:
        self.descriptor: Final = descriptor
        self.value: Final = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Described)
            and self.descriptor == other.descriptor
            and same(self.value, other.value)
        )

    def __hash__(self) -> int:
        raise TypeError("described values have no hash")

    def __repr__(self) -> str:
        return f"Described({self.descriptor!r}, {self.value!r})"


@final
class Array:
    """Values of one constructor, 1.6.24.

    Elements without width (null, true, uint0, list0 ...) are not created: twelve
    bytes could ask for four billion of them. Only `zero_width_count` is kept.
    """

    def __init__(
        self,
        code: int,
        values: list[object],
        *,
        descriptor: ULong | Symbol | None = None,
        zero_width_count: int = 0,
    ) -> None:
        self.code: Final = code
        self.values: Final = values
        self.descriptor: Final = descriptor
        self.zero_width_count: Final = zero_width_count

    def __len__(self) -> int:
        return len(self.values) + self.zero_width_count

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Array)
            and self.code == other.code
            and self.descriptor == other.descriptor
            and self.zero_width_count == other.zero_width_count
            and same(self.values, other.values)
        )

    def __hash__(self) -> int:
        raise TypeError("arrays have no hash")

    def __repr__(self) -> str:
        return f"Array(0x{self.code:02x}, {self.values!r}, count={len(self)})"


@final
class Map:
    """Pairs in the order in which they arrived, 1.6.23. The keys 1, 1.0 and True are three keys.

    Raises ValueError if a key occurs twice; TypeError if it is a list, map, array or described.
    """

    def __init__(self, pairs: list[tuple[object, object]]) -> None:
        self.pairs: Final = pairs
        self._index: Final[dict[tuple[str, object], int]] = {}
        for at in range(len(pairs)):
            key = _identity(pairs[at][0])
            if key in self._index:
                raise ValueError(f"the key {pairs[at][0]!r:.100} comes twice")
            self._index[key] = at

    def get(self, key: object) -> object:
        """Return the value of `key`, None if there is none."""
        at = self._index.get(_identity(key))
        return None if at is None else self.pairs[at][1]

    def __contains__(self, key: object) -> bool:
        return _identity(key) in self._index

    def __len__(self) -> int:
        return len(self.pairs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Map) or len(self) != len(other):
            return False
        for i in range(len(self.pairs)):
            ours, theirs = self.pairs[i], other.pairs[i]
            if not same(ours[0], theirs[0]) or not same(ours[1], theirs[1]):
                return False
        return True

    def __hash__(self) -> int:
        raise TypeError("maps have no hash")

    def __repr__(self) -> str:
        return f"Map({self.pairs!r})"


def combined(old: Map, new: Map) -> Map:
    """Return the pairs of both; a key that is in both has its new value."""
    kept = [pair for pair in old.pairs if pair[0] not in new]
    return Map(kept + new.pairs)


def same(one: object, other: object) -> bool:
    """Return whether two values are equal and of one AMQP type, inside lists too."""
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        return all(same(one[i], other[i]) for i in range(len(one)))
    if isinstance(one, float) and isinstance(other, float):
        return _double_bits(one) == _double_bits(other)
    return type(one) is type(other) and one == other


def _identity(key: object) -> tuple[str, object]:
    """Return a map key with its type: Python alone takes 1, 1.0 and True for one key."""
    if isinstance(key, (list, dict, Map, Array, Described)):
        raise TypeError(f"a {type(key).__name__} cannot be the key of a map")
    if isinstance(key, float):
        return "float", _double_bits(key)
    return type(key).__name__, key


def _double_bits(value: float) -> bytes:
    return struct.pack(">d", value)


def _float_bits(value: float) -> bytes:
    return struct.pack(">f", value)
