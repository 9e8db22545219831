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
        kind: readers.get(kind) or (to_json if kind in strangers else _as_it_is) for kind in mine
    }
    return pa.array(
        [by_kind[k](v) if k in by_kind else None for v, k in zip(values, kinds, strict=True)],
        held_as,
    )


def _as_it_is(value: object) -> object:
    return value


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
