"""Values of JMS' types as Arrow's struct V, column by column, and back.

Besides JMS' own types V has those that other senders put into properties: unsigned numbers,
timestamps, UUIDs, symbols and decimals by AMQP's names, and anything else as JSON.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

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
from pipeline.amqp_json import from_json, to_json
from pipeline.columns import LIST_TYPE, MAP_TYPE, V_TYPE

NAMES: Final[dict[type[object], str]] = {
    type(None): "null",
    bool: "boolean",
    Byte: "byte",
    Short: "short",
    Int: "int",
    int: "long",
    Float: "float",
    float: "double",
    str: "string",
    Char: "char",
    bytes: "binary",
    UByte: "ubyte",
    UShort: "ushort",
    UInt: "uint",
    ULong: "ulong",
    Timestamp: "timestamp",
    uuid.UUID: "uuid",
    Symbol: "symbol",
    Decimal: "decimal",
}
OTHERS: Final = "json"

SURROGATES: Final = range(0xD800, 0xE000)


def _of_integer(value: Integer) -> int:
    return value.value


def _text_of_char(value: Char) -> str | None:
    """None for a lone surrogate, which Java has and UTF-8 has not: the code point is in `long`."""
    return None if value.value in SURROGATES else chr(value.value)


_Read = Callable[..., object]

# by field of the struct: how a value of a class is held there; None where it is as it is
_FIELDS: Final[dict[str, tuple[pa.DataType, dict[type[object], _Read | None]]]] = {
    "boolean": (pa.bool_(), {bool: None}),
    "long": (
        pa.int64(),
        {
            int: None,
            Byte: _of_integer,
            Short: _of_integer,
            Int: _of_integer,
            UByte: _of_integer,
            UShort: _of_integer,
            UInt: _of_integer,
            Timestamp: _of_integer,
            Char: _of_integer,
        },
    ),
    "double": (pa.float64(), {float: None, Float: lambda value: value.value}),
    "string": (
        pa.string(),
        {
            str: None,
            Char: _text_of_char,
            # up to 2^64, so no BIGINT
            ULong: lambda value: str(value.value),
            uuid.UUID: str,
            Symbol: str,
        },
    ),
    "binary": (pa.binary(), {bytes: None, Decimal: lambda value: value.raw}),
}


def structs(values: Sequence[object]) -> pa.StructArray:
    """The values, a V each."""
    kinds = [value.__class__ for value in values]
    present = set(kinds)
    names = pa.array([NAMES.get(kind, OTHERS) for kind in kinds], pa.string())
    children = [
        _child(values, kinds, present, held_as, readers, is_text=field == "string")
        for field, (held_as, readers) in _FIELDS.items()
    ]
    return pa.StructArray.from_arrays([names, *children], fields=list(V_TYPE))


def _child(
    values: Sequence[object],
    kinds: Sequence[type[object]],
    present: set[type[object]],
    held_as: pa.DataType,
    readers: dict[type[object], _Read | None],
    *,
    is_text: bool,
) -> pa.Array:
    strangers = present - NAMES.keys() if is_text else set()
    mine = present & readers.keys() | strangers
    if not mine:
        return pa.nulls(len(values), held_as)
    if len(mine) == 1 and not strangers:
        [only] = mine
        read = readers[only]
        if read is None:
            held = [v if k is only else None for v, k in zip(values, kinds, strict=True)]
        else:
            held = [read(v) if k is only else None for v, k in zip(values, kinds, strict=True)]
        return pa.array(held, held_as)
    by_kind: dict[type[object], _Read] = {
        kind: readers.get(kind) or to_json
        for kind in mine
        if readers.get(kind) or kind in strangers
    }
    # most values are of the class that is held as it is: no call for those
    plain = next((kind for kind in mine if kind not in by_kind), None)
    held = [
        v if k is plain else (by_kind[k](v) if k in by_kind else None)
        for v, k in zip(values, kinds, strict=True)
    ]
    return pa.array(held, held_as)


def maps(entries: Sequence[dict[str, object] | None]) -> pa.MapArray:
    """A map of V for each dict, null for None."""
    offsets = _offsets(entries)
    keys = pa.array([key for each in entries if each for key in each], pa.string())
    items = structs([value for each in entries if each for value in each.values()])
    return pa.MapArray.from_arrays(offsets, keys, items, type=MAP_TYPE)


def lists(rows: Sequence[list[object] | None]) -> pa.ListArray:
    """A list of V for each, null for None."""
    offsets = _offsets(rows)
    values = structs([value for each in rows if each for value in each])
    return pa.ListArray.from_arrays(offsets, values, type=LIST_TYPE)


def _offsets(rows: Sequence[dict[str, object] | list[object] | None]) -> pa.Array:
    """Where each begins, null for one that is none itself, and where the last ends."""
    offsets: list[int | None] = []
    at = 0
    for row in rows:
        if row is None:
            offsets.append(None)
        else:
            offsets.append(at)
            at += len(row)
    offsets.append(at)
    return pa.array(offsets, pa.int32())


_CLASSES: Final[dict[str, Callable[..., object]]] = {
    "byte": Byte,
    "short": Short,
    "int": Int,
    "ubyte": UByte,
    "ushort": UShort,
    "uint": UInt,
    "timestamp": Timestamp,
}
_HELD_IN: Final = {
    "boolean": "boolean",
    "long": "long",
    "double": "double",
    "string": "string",
    "binary": "binary",
}


class Unreadable:
    """In place of a value that is none: whoever wants it raises the error."""

    def __init__(self, error: ValueError) -> None:
        self.error: Final = error


def values_of(array: pa.StructArray) -> list[object]:
    """The values of an array of V, field by field; an `Unreadable` for what is none."""
    kinds = array.field("type").to_pylist()
    if array.null_count:
        kinds = [kind if ok else "null" for kind, ok in zip(kinds, _valid(array), strict=True)]
    present = set(kinds)
    held: dict[object, list[object]] = {
        kind: array.field(field).to_pylist()
        for kind, field in (*_HELD_IN.items(), *dict.fromkeys(_CLASSES, "long").items())
        if kind in present
    }
    values: list[object]
    if present <= _HELD_IN.keys():
        values = [held[kind][at] for at, kind in enumerate(kinds)]
        if None not in values:
            return values
    values = []
    append = values.append
    for at, kind in enumerate(kinds):
        value = held[kind][at] if kind in held else None
        if value is not None and kind in _HELD_IN:
            append(value)
        elif kind == "null":
            append(None)
        else:
            append(_careful(array, at, kind, value))
    return values


def _valid(array: pa.Array) -> list[bool]:
    valid: list[bool] = array.is_valid().to_pylist()
    return valid


def _careful(array: pa.StructArray, at: int, kind: object, value: object) -> object:
    try:
        if value is not None:
            return _CLASSES[str(kind)](value)
        return value_of(array[at].as_py())
    except ValueError as error:
        return Unreadable(error)


def is_typed(kind: pa.DataType) -> bool:
    """Whether it is V, or enough of it."""
    return pa.types.is_struct(kind) and set(V_TYPE.names) <= {field.name for field in kind}


def value_of(struct: dict[str, object] | None) -> object:
    """The value that a V (as a dict of its fields) is; ValueError where it is none."""
    if struct is None:
        return None
    kind = struct.get("type")
    try:
        return _value(str(kind), struct)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{struct!r:.200} is no value of type {kind}: {error}") from None


def _value(kind: str, struct: dict[str, object]) -> object:
    if kind in _HELD_IN:
        return _held(struct, _HELD_IN[kind])
    if kind in _CLASSES:
        return _CLASSES[kind](_held(struct, "long"))
    if kind == "null":
        return None
    if kind == "float":
        number = _held(struct, "double")
        assert isinstance(number, float)
        return Float(number)
    if kind == "char":
        code = struct.get("long")
        return Char(ord(str(_held(struct, "string"))) if code is None else int(str(code)))
    if kind == "ulong":
        return ULong(int(str(_held(struct, "string"))))
    if kind == "uuid":
        return uuid.UUID(str(_held(struct, "string")))
    if kind == "symbol":
        return Symbol(str(_held(struct, "string")))
    if kind == "decimal":
        raw = _held(struct, "binary")
        assert isinstance(raw, bytes)
        return Decimal(raw)
    if kind == OTHERS:
        return from_json(str(_held(struct, "string")))
    raise ValueError(f"type is none of {', '.join([*NAMES.values(), OTHERS])}")


def _held(struct: dict[str, object], field: str) -> object:
    value = struct.get(field)
    if value is None:
        raise ValueError(f"{field} is null")
    return value
