"""Described lists, field by field in the order of the specification's tables (1.4).

A composite's `write` and `read` repeat that table; defaults, trailing nulls and
missing fields are dealt with here, once.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

from broker.amqp.decode import (
    binary_at,
    bool_at,
    encoded_value,
    malformed,
    open_compound,
    skip,
    symbol_at,
    take_value,
    text_at,
    uint_at,
    ulong_at,
)
from broker.amqp.encode import (
    BytesWriter,
    put_binary,
    put_bool,
    put_compound,
    put_descriptor,
    put_null,
    put_string,
    put_symbol,
    put_symbols,
    put_ubyte,
    put_uint,
    put_ulong,
    put_ushort,
    put_value,
)
from broker.amqp.errors import INVALID_FIELD, ConnectionFault
from broker.amqp.limits import FIELD_VALUES_MAX
from broker.amqp.types import Array, Map, Symbol


class Performative:
    """Anything that can be the body of a frame (2.7, 5.3.3)."""

    @abstractmethod
    def write(self, out: BytesWriter) -> None:
        """Write it with its descriptor."""


@final
class FieldWriter:
    """Takes the fields of one composite in the order of the spec's table.

    A field that is absent or holds its default counts as null. Nulls are held back
    until a later field needs them as filler, so that none trails.
    """

    def __init__(self) -> None:
        self._out: Final = BytesWriter()
        self._nulls: i64 = 0
        self._count: i64 = 0

    def field(self) -> BytesWriter:
        """Where to write the next field. It must be written."""
        while self._nulls > 0:
            put_null(self._out)
            self._count += 1
            self._nulls -= 1
        self._count += 1
        return self._out

    def skip(self) -> None:
        """Leave the field null."""
        self._nulls += 1

    def boolean(self, value: bool, *, default: bool = False) -> None:
        if value == default:
            self._nulls += 1
        else:
            put_bool(self.field(), value)

    def require_boolean(self, value: bool) -> None:
        put_bool(self.field(), value)

    def ubyte(self, value: i64, default: i64 = -1) -> None:
        if value == default:
            self._nulls += 1
        else:
            put_ubyte(self.field(), value)

    def ushort(self, value: i64, default: i64 = -1) -> None:
        if value == default:
            self._nulls += 1
        else:
            put_ushort(self.field(), value)

    def uint(self, value: i64, default: i64 = -1) -> None:
        if value == default:
            self._nulls += 1
        else:
            put_uint(self.field(), value)

    def ulong(self, value: i64, default: i64 = -1) -> None:
        if value == default:
            self._nulls += 1
        else:
            put_ulong(self.field(), value)

    def symbol(self, text: str | None, default: str | None = None) -> None:
        if text is None or text == default:
            self._nulls += 1
        else:
            put_symbol(self.field(), text)

    def string(self, text: str | None) -> None:
        if text is None:
            self._nulls += 1
        else:
            put_string(self.field(), text)

    def binary(self, value: bytes | None) -> None:
        if value is None:
            self._nulls += 1
        else:
            put_binary(self.field(), value)

    def symbols(self, texts: list[str]) -> None:
        if texts:
            put_symbols(self.field(), texts)
        else:
            self._nulls += 1

    def fields(self, fields: dict[str, object]) -> None:
        """A map with symbols for keys (2.8.13); null where it is empty."""
        if fields:
            pairs: list[tuple[object, object]] = []
            for key, value in fields.items():
                pairs.append((Symbol(key), value))
            put_value(self.field(), Map(pairs))
        else:
            self._nulls += 1

    def raw(self, encoded: bytes | None) -> None:
        """A value that is encoded already."""
        if encoded is None:
            self._nulls += 1
        else:
            self.field().write(encoded)

    def close(self, out: BytesWriter, descriptor: i64) -> None:
        """Write the composite to `out`, in the shortest form."""
        put_descriptor(out, descriptor)
        if self._count == 0:
            out.append(0x45)
        else:
            put_compound(out, 0xC0, self._out, count=self._count)


@mypyc_attr(acyclic=True, free_list_len=1)
@final
class FieldReader:
    """Gives the fields of one composite in the order of the spec's table.

    `at` is behind the descriptor, `end` the end of what holds the composite, `name` its
    name, for the words of a fault. Fields that are not there read as their default.
    `end` is then the position behind the composite.
    """

    def __init__(self, data: bytes, at: i64, end: i64, name: str) -> None:
        self._data: Final = data
        self._name: Final = name
        self._read: i64 = 0
        code = data[at] if at < end else 0
        if code == 0x45:
            self._count: i64 = 0
            self._at: i64 = at + 1
            self.end: i64 = at + 1
        elif code == 0xC0 or code == 0xD0:
            self._count, self._at, self.end = open_compound(data, at, end)
        else:
            raise malformed(f"{name} is not a list")

    def _next(self) -> i64:
        """The position of the next field, known to lie within the list; -1 for null."""
        self._read += 1
        if self._read > self._count:
            return -1
        at = self._at
        self._at = skip(self._data, at, self.end)
        return at if self._data[at] != 0x40 else -1

    def _missing(self, field: str) -> ConnectionFault:
        return ConnectionFault(INVALID_FIELD, f"{self._name} without {field}")

    def skip(self) -> None:
        self._next()

    def boolean(self, default: bool) -> bool:
        at = self._next()
        return default if at < 0 else bool_at(self._data, at, default)

    def require_boolean(self, field: str) -> bool:
        at = self._next()
        if at < 0:
            raise self._missing(field)
        return bool_at(self._data, at, False)

    def uint(self, default: i64) -> i64:
        at = self._next()
        return default if at < 0 else uint_at(self._data, at, default)

    def optional_uint(self) -> i64:
        """-1 where it is absent."""
        at = self._next()
        return -1 if at < 0 else uint_at(self._data, at, -1)

    def require_uint(self, field: str) -> i64:
        at = self._next()
        if at < 0:
            raise self._missing(field)
        return uint_at(self._data, at, -1)

    def ubyte(self, default: i64) -> i64:
        return self._bounded(default, 0xFF)

    def ushort(self, default: i64) -> i64:
        return self._bounded(default, 0xFFFF)

    def _bounded(self, default: i64, most: i64) -> i64:
        value = self.uint(default)
        if value > most:
            raise malformed(f"{self._name}: field {int(self._read)} is larger than {int(most)}")
        return value

    def ulong(self, default: i64) -> i64:
        """Numbers from 2^63 on read as 2^63-1."""
        at = self._next()
        return default if at < 0 else ulong_at(self._data, at, default)

    def require_ulong(self, field: str) -> i64:
        value = self.ulong(-1)
        if value < 0:
            raise self._missing(field)
        return value

    def choice(self, field: str, default: i64, most: i64) -> i64:
        """One of the restricted types (settle modes, durability): 0 to `most`."""
        value = self.uint(default)
        if value > most:
            raise ConnectionFault(INVALID_FIELD, f"{self._name}: {field} is {int(value)}")
        return value

    def symbol(self) -> str | None:
        at = self._next()
        return None if at < 0 else symbol_at(self._data, at, self.end)

    def require_symbol(self, field: str) -> str:
        text = self.symbol()
        if text is None:
            raise self._missing(field)
        return text

    def string(self) -> str | None:
        at = self._next()
        return None if at < 0 else text_at(self._data, at, self.end)

    def require_string(self, field: str) -> str:
        text = self.string()
        if text is None:
            raise self._missing(field)
        return text

    def binary(self) -> bytes | None:
        at = self._next()
        return None if at < 0 else binary_at(self._data, at, self.end)

    def require_binary(self, field: str) -> bytes:
        value = self.binary()
        if value is None:
            raise self._missing(field)
        return value

    def symbols(self) -> list[str]:
        """A `multiple` field (1.5): an array of symbols, one symbol, or nothing."""
        value = self.value()
        if value is None:
            return []
        if isinstance(value, Symbol):
            return [value.text]
        texts: list[str] = []
        for element in self._elements(value):
            if not isinstance(element, Symbol):
                raise self._wrong("symbols")
            texts.append(element.text)
        return texts

    def _elements(self, value: object) -> list[object]:
        if isinstance(value, Array) and value.zero_width_count == 0:
            return value.values
        # not by the letter, but old clients send lists
        if isinstance(value, list):
            return value
        raise self._wrong("symbols")

    def _wrong(self, what: str) -> ConnectionFault:
        return malformed(f"{self._name}: field {int(self._read)} is not of type {what}")

    def fields(self, *, strings: bool = False) -> dict[str, object]:
        """A map with symbols for keys (2.8.13), or `strings` as well; empty where it is absent."""
        fields: dict[str, object] = {}
        value = self.value()
        if value is None:
            return fields
        if not isinstance(value, Map):
            raise self._wrong("map")
        for key, held in value.pairs:
            if isinstance(key, Symbol):
                fields[key.text] = held
            elif strings and isinstance(key, str):
                fields[key] = held
            else:
                raise self._wrong("map with symbols for keys")
        return fields

    def value(self) -> object:
        """The field as the value it is, None where it is absent."""
        at = self._next()
        if at < 0:
            return None
        return take_value(self._data, at, self.end, FIELD_VALUES_MAX)[0]

    def map(self) -> bytes | None:
        """A map as it is encoded, None where it is absent."""
        at = self._next()
        if at < 0:
            return None
        if self._data[at] != 0xC1 and self._data[at] != 0xD1:
            raise self._wrong("map")
        return encoded_value(self._data, at, self.end)

    def composite(self) -> i64:
        """The position of a field that is itself a composite, or -1."""
        return self._next()

    def close(self) -> None:
        """To be called behind the last field of the table: there must be nothing more."""
        if self._count > self._read:
            raise malformed(f"{self._name} has more than its fields")
        if self._at != self.end:
            raise malformed(f"{self._name}: its size does not match its fields")
