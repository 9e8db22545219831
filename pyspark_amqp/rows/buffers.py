"""Values of JMS' types, and maps of them, in the buffers of Arrow's struct V.

The code runs for each value, so it is compiled (pyproject.toml); `typed.py` makes Arrow's arrays of
the buffers. Besides JMS' own types, V has those that other senders put into properties: unsigned
numbers, timestamps, UUIDs, symbols and decimals by AMQP's names, and anything else as JSON.
"""

from __future__ import annotations

import uuid
from typing import Final, final

from librt.strings import read_f64_be, read_i64_be, write_f64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from broker.amqp.decode import open_compound, skip, take_value, text_at, text_of
from broker.amqp.encode import BytesWriter
from broker.amqp.types import (
    Byte,
    Char,
    Decimal,
    Float,
    Int,
    Integer,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from broker.jms.errors import MappingError
from pyspark_amqp.rows.amqp_json import SURROGATES, to_json

# numbers of the types in V's field `type`; a type has two if its values are held in two ways
NULL: Final = 0
FALSE: Final = 1
TRUE: Final = 2
LONG: Final = 3
FLOAT: Final = 4
DOUBLE: Final = 5
STRING: Final = 6
BINARY: Final = 7
CHAR: Final = 8
SURROGATE: Final = 9
ULONG: Final = 10
UUID: Final = 11
SYMBOL: Final = 12
DECIMAL: Final = 13
JSON: Final = 14
BYTE: Final = 15
SHORT: Final = 16
INT: Final = 17
UBYTE: Final = 18
USHORT: Final = 19
UINT: Final = 20
TIMESTAMP: Final = 21

TYPES: Final = (
    *("null", "boolean", "boolean", "long", "float", "double", "string", "binary"),
    *("char", "char", "ulong", "uuid", "symbol", "decimal", "json"),
    *("byte", "short", "int", "ubyte", "ushort", "uint", "timestamp"),
)
"""The names of these types, by their numbers."""

NUMBERS: Final[dict[type[object], int]] = {
    Byte: BYTE,
    Short: SHORT,
    Int: INT,
    UByte: UBYTE,
    UShort: USHORT,
    UInt: UINT,
    Timestamp: TIMESTAMP,
}
"""The numbers of the classes whose values are held as a number."""

HELD: Final = {
    "boolean": (FALSE, TRUE),
    "long": (LONG, CHAR, SURROGATE, *NUMBERS.values()),
    "double": (FLOAT, DOUBLE),
    "string": (STRING, CHAR, ULONG, UUID, SYMBOL, JSON),
    "binary": (BINARY, DECIMAL),
}
"""The types that have a value in a field of V, by field; it is null for all others."""


@final
class Values:
    """Values in the order of their addition: their types, and an entry for each in every field.

    Numbers are little-endian, as on the machines for which Arrow is made.
    """

    def __init__(self) -> None:
        self.types: Final = BytesWriter()
        self.longs: Final = BytesWriter()
        self.doubles: Final = BytesWriter()
        self.strings: Final = BytesWriter()
        self.string_offsets: Final = BytesWriter()
        self.binaries: Final = BytesWriter()
        self.binary_offsets: Final = BytesWriter()
        write_i32_le(self.string_offsets, 0)
        write_i32_le(self.binary_offsets, 0)

    def take(self, data: bytes, at: i64, end: i64) -> i64:
        """Add the value that is encoded at `at`; return the position behind it.

        Types that senders use most create no object: they are copied from one buffer into the
        other.
        """
        behind = skip(data, at, end)
        code = i64(data[at])
        if code == 0xA1:
            raw = data[at + 2 : behind]
            text_of(raw)
            self._put(STRING, text=raw)
        elif code == 0x81:
            self._put(LONG, number=read_i64_be(data, at + 1))
        elif code == 0x82:
            self._put(DOUBLE, ratio=read_f64_be(data, at + 1))
        elif code == 0x41:
            self._put(TRUE)
        elif code == 0x42:
            self._put(FALSE)
        else:
            self.add(take_value(data, at, end)[0])
        return behind

    def add(self, value: object) -> None:
        """Add a value of a class that the codec decodes to."""
        if value is None:
            self._put(NULL)
        elif isinstance(value, str):
            self._put(STRING, text=value.encode())
        elif isinstance(value, bool):
            self._put(TRUE if value else FALSE)
        elif isinstance(value, int):
            self._put(LONG, number=value)
        elif isinstance(value, float):
            self._put(DOUBLE, ratio=value)
        elif isinstance(value, Float):
            self._put(FLOAT, ratio=value.value)
        elif isinstance(value, bytes):
            self._put(BINARY, raw=value)
        elif isinstance(value, Decimal):
            self._put(DECIMAL, raw=value.raw)
        elif isinstance(value, Char):
            self._add_char(value.value)
        elif isinstance(value, ULong):
            # up to 2^64, so no BIGINT
            self._put(ULONG, text=str(value.value).encode())
        elif isinstance(value, Integer):
            self._put(NUMBERS[type(value)], number=value.value)
        elif isinstance(value, uuid.UUID):
            self._put(UUID, text=str(value).encode())
        elif isinstance(value, Symbol):
            self._put(SYMBOL, text=value.text.encode())
        else:
            self._put(JSON, text=to_json(value).encode())

    def _add_char(self, code: int) -> None:
        """Add a char. A lone surrogate, which Java has and UTF-8 has not, is a code point alone."""
        if code in SURROGATES:
            self._put(SURROGATE, number=code)
        else:
            self._put(CHAR, number=code, text=chr(code).encode())

    def _put(
        self, kind: i64, *, number: i64 = 0, ratio: float = 0.0, text: bytes = b"", raw: bytes = b""
    ) -> None:
        self.types.append(int(kind))
        write_i64_le(self.longs, number)
        write_f64_le(self.doubles, ratio)
        self.strings.write(text)
        write_i32_le(self.string_offsets, i32(len(self.strings)))
        self.binaries.write(raw)
        write_i32_le(self.binary_offsets, i32(len(self.binaries)))


@final
class Maps:
    """Maps of values by names, one behind the other. Names repeat, so each is decoded once."""

    def __init__(self) -> None:
        self.values: Final = Values()
        self.names: Final[list[str]] = []
        # for each entry, the number of its name
        self.keys: Final = BytesWriter()
        self.offsets: Final = BytesWriter()
        self._count = 0
        self._numbers: Final[dict[str, int]] = {}
        self._encoded: Final[dict[bytes, int]] = {}
        # by the number of a name, the last map that has it
        self._seen: Final[list[int]] = []
        write_i32_le(self.offsets, 0)

    def close(self) -> None:
        """End the current map: further entries belong to the next one."""
        self._count += 1
        write_i32_le(self.offsets, i32(len(self.keys) // 4))

    def add(self, entries: dict[str, object]) -> None:
        """Add entries to the current map."""
        for name, value in entries.items():
            self.values.add(value)
            write_i32_le(self.keys, i32(self._number(name)))

    def take(self, data: bytes, at: i64, end: i64) -> None:
        """Add the entries of the map that is encoded at `at`; -1 means that there is none.

        Raise MappingError, or a Fault of the codec, if the map is malformed.
        """
        if at < 0:
            return
        count, at, end = open_compound(data, at, end)
        while count > 0:
            behind = skip(data, at, end)
            encoded = data[at:behind]
            number = self._encoded.get(encoded, -1)
            if number < 0:
                number = self._number(text_at(data, at, end))
                self._encoded[encoded] = number
            if self._seen[number] == self._count:
                raise MappingError("a property has no name, or that of another")
            self._seen[number] = self._count
            at = self.values.take(data, behind, end)
            write_i32_le(self.keys, i32(number))
            count -= 2

    def _number(self, name: str | None) -> int:
        if name is None:
            raise MappingError("a property has no name, or that of another")
        number = self._numbers.get(name, -1)
        if number < 0:
            number = len(self.names)
            self.names.append(name)
            self._numbers[name] = number
            self._seen.append(-1)
        return number
