"""Described lists, field by field in the order of the specification's tables (1.4).

The `write` method and the `read_` function of a composite repeat its table; defaults,
trailing nulls and missing fields are handled here, once.
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
    """The body of a frame (2.7, 5.3.3)."""

    @abstractmethod
    def write(self, out: BytesWriter) -> None:
        """Write the performative with its descriptor."""


@final
class FieldWriter:
    """A writer for the fields of one composite, called in the order of the specification's table.

    A field that is absent or has its default is null, or false if that is its default: some peers
    tell the two apart, and both take one byte. Either is written only if a later field follows, so
    that the list ends with its last value.
    """

    def __init__(self) -> None:
        self._out: Final = BytesWriter()
        self._left_out: i64 = 0  # fields since the last that was written
        self._falses: i64 = 0  # bit n: field n of these is false
        self._count: i64 = 0

    def field(self) -> BytesWriter:
        """Return the writer for the next field. The caller must write a value to it."""
        if self._left_out > 0:
            self._fill_in()
        self._count += 1
        return self._out

    def _fill_in(self) -> None:
        """Write the fields that were left out before this one."""
        for at in range(self._left_out):
            if self._falses >> at & 1:
                put_bool(self._out, False)
            else:
                put_null(self._out)
        self._count += self._left_out
        self._left_out = 0
        self._falses = 0

    def skip(self) -> None:
        """Leave the next field null."""
        self._left_out += 1

    def boolean(self, value: bool, *, default: bool = False) -> None:
        if value == default:
            if not default:
                self._falses |= i64(1) << self._left_out
            self._left_out += 1
        else:
            put_bool(self.field(), value)

    def require_boolean(self, value: bool) -> None:
        put_bool(self.field(), value)

    def ubyte(self, value: i64, default: i64 = -1) -> None:
        if value == default:
            self._left_out += 1
        else:
            put_ubyte(self.field(), value)

    def ushort(self, value: i64, default: i64 = -1) -> None:
        if value == default:
            self._left_out += 1
        else:
            put_ushort(self.field(), value)

    def uint(self, value: i64, default: i64 = -1) -> None:
        if value == default:
            self._left_out += 1
        else:
            put_uint(self.field(), value)

    def ulong(self, value: i64, default: i64 = -1) -> None:
        if value == default:
            self._left_out += 1
        else:
            put_ulong(self.field(), value)

    def symbol(self, text: str | None, default: str | None = None) -> None:
        if text is None or text == default:
            self._left_out += 1
        else:
            put_symbol(self.field(), text)

    def string(self, text: str | None) -> None:
        if text is None:
            self._left_out += 1
        else:
            put_string(self.field(), text)

    def binary(self, value: bytes | None) -> None:
        if value is None:
            self._left_out += 1
        else:
            put_binary(self.field(), value)

    def symbols(self, texts: list[str]) -> None:
        if texts:
            put_symbols(self.field(), texts)
        else:
            self._left_out += 1

    def fields(self, fields: dict[str, object]) -> None:
        """Write a map with symbols as keys (2.8.13); null if it is empty."""
        if fields:
            pairs: list[tuple[object, object]] = []
            for key, value in fields.items():
                pairs.append((Symbol(key), value))
            put_value(self.field(), Map(pairs))
        else:
            self._left_out += 1

    def raw(self, encoded: bytes | None) -> None:
        """Write a value that is already encoded; null if it is None."""
        if encoded is None:
            self._left_out += 1
        else:
            self.field().write(encoded)

    def close(self, out: BytesWriter, descriptor: i64) -> None:
        """Write the composite to `out`, with its descriptor and in the shortest form."""
        put_descriptor(out, descriptor)
        if self._count == 0:
            out.append(0x45)
        else:
            put_compound(out, 0xC0, self._out, count=self._count)


@mypyc_attr(acyclic=True, free_list_len=1)
@final
class FieldReader:
    """A reader for the fields of one composite, called in the order of the specification's table.

    `at` is the position after the descriptor, `end` the end of the enclosing data, and `name` the
    name of the composite for error texts. Fields that are missing read as their default. The
    attribute `end` is the position after the composite. The constructor and all methods that read a
    field raise ConnectionFault if it has another type, or is cut.
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

    @property
    def field(self) -> int:
        """The index of the field that was read last, or could not be read; 0 is the first."""
        return int(self._read) - 1

    def _next(self) -> i64:
        """Return the position of the next field, known to lie within the list; -1 for null."""
        self._read += 1
        if self._read > self._count:
            return -1
        at = self._at
        self._at = skip(self._data, at, self.end)
        return at if self._data[at] != 0x40 else i64(-1)

    def _missing(self, field: str) -> ConnectionFault:
        return ConnectionFault(INVALID_FIELD, f"{self._name} without {field}")

    def skip(self) -> None:
        self._next()

    def boolean(self, default: bool) -> bool:
        at = self._next()
        return default if at < 0 else bool_at(self._data, at, default)

    def require_boolean(self, field: str) -> bool:
        """Return the boolean. Raise ConnectionFault if the field is missing or no boolean."""
        at = self._next()
        if at < 0:
            raise self._missing(field)
        return bool_at(self._data, at, False)

    def uint(self, default: i64) -> i64:
        at = self._next()
        return default if at < 0 else uint_at(self._data, at, default)

    def optional_uint(self) -> i64:
        """Return the number, -1 if it is absent."""
        at = self._next()
        return i64(-1) if at < 0 else uint_at(self._data, at, -1)

    def require_uint(self, field: str) -> i64:
        """Return the number. Raise ConnectionFault if the field is missing or no uint."""
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
        """Return the number; 2^63 and above read as 2^63-1."""
        at = self._next()
        return default if at < 0 else ulong_at(self._data, at, default)

    def require_ulong(self, field: str) -> i64:
        """Return the number. Raise ConnectionFault if the field is missing or no ulong."""
        value = self.ulong(-1)
        if value < 0:
            raise self._missing(field)
        return value

    def choice(self, field: str, default: i64, most: i64) -> i64:
        """Return a value of a restricted type (settle modes, durability), 0 to `most`.

        Raise ConnectionFault if it is larger.
        """
        value = self.uint(default)
        if value > most:
            raise ConnectionFault(INVALID_FIELD, f"{self._name}: {field} is {int(value)}")
        return value

    def symbol(self) -> str | None:
        at = self._next()
        return None if at < 0 else symbol_at(self._data, at, self.end)

    def require_symbol(self, field: str) -> str:
        """Return the symbol. Raise ConnectionFault if the field is missing or no symbol."""
        text = self.symbol()
        if text is None:
            raise self._missing(field)
        return text

    def string(self) -> str | None:
        at = self._next()
        return None if at < 0 else text_at(self._data, at, self.end)

    def require_string(self, field: str) -> str:
        """Return the string. Raise ConnectionFault if the field is missing or no string."""
        text = self.string()
        if text is None:
            raise self._missing(field)
        return text

    def binary(self) -> bytes | None:
        at = self._next()
        return None if at < 0 else binary_at(self._data, at, self.end)

    def require_binary(self, field: str) -> bytes:
        """Return the bytes. Raise ConnectionFault if the field is missing or no binary."""
        value = self.binary()
        if value is None:
            raise self._missing(field)
        return value

    def symbols(self) -> list[str]:
        """Return the symbols of a `multiple` field (1.5): an array, one symbol, or nothing.

        Raise ConnectionFault if it is something else.
        """
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
        # the specification does not allow lists, but old clients send them
        if isinstance(value, list):
            return value
        raise self._wrong("symbols")

    def _wrong(self, what: str) -> ConnectionFault:
        return malformed(f"{self._name}: field {int(self._read)} is not of type {what}")

    def fields(self, *, strings: bool = False) -> dict[str, object]:
        """Return a map with symbols as keys (2.8.13); empty if it is absent.

        With `strings`, its keys may be strings as well. Raise ConnectionFault if it is something
        else.
        """
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
        """Return the decoded field, None if it is absent."""
        at = self._next()
        if at < 0:
            return None
        return take_value(self._data, at, self.end, FIELD_VALUES_MAX)[0]

    def map(self) -> bytes | None:
        """Return a map in its encoded form, None if it is absent; ConnectionFault if it is none."""
        at = self._next()
        if at < 0:
            return None
        if self._data[at] != 0xC1 and self._data[at] != 0xD1:
            raise self._wrong("map")
        return encoded_value(self._data, at, self.end)

    def composite(self) -> i64:
        """Return the position of a field that is itself a composite; -1 if it is absent."""
        return self._next()

    def close(self) -> None:
        """Raise ConnectionFault if more follows. Call it after the last field of the table."""
        if self._count > self._read:
            raise malformed(f"{self._name} has more than its fields")
        if self._at != self.end:
            raise malformed(f"{self._name}: its size does not match its fields")
