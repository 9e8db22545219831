"""Values of JMS' types as Arrow's struct V, and back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

import pyarrow as pa

from broker.amqp.encode import BytesWriter
from broker.amqp.types import (
    Byte,
    Char,
    Decimal,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from pyspark_amqp.rows.amqp_json import from_json
from pyspark_amqp.rows.buffers import HELD, JSON, TRUE, TYPES, Maps, Values
from pyspark_amqp.rows.columns import LIST_TYPE, MAP_TYPE, V_TYPE

BYTES_MAX: Final = 0x7FFF_FFFF
"""Maximum bytes of all texts in an Arrow array."""


def _among(types: Sequence[int]) -> pa.BooleanArray:
    """Return for each type number whether it is in `types`."""
    return pa.array([number in types for number in range(len(TYPES))])


_NAMES: Final = pa.array(TYPES, pa.string())
_IS_TRUE: Final = _among([TRUE])
_HAVE: Final = {name: _among(types) for name, types in HELD.items()}


def struct_array(values: Values) -> pa.StructArray:
    """Return the values as an array of V."""
    types = _array(pa.uint8(), values.types)
    buffers = {
        "boolean": [_IS_TRUE.take(types).buffers()[1]],
        "long": [_buffer(values.longs)],
        "double": [_buffer(values.doubles)],
        "string": [_buffer(values.string_offsets), _buffer(values.strings)],
        "binary": [_buffer(values.binary_offsets), _buffer(values.binaries)],
    }
    named, *fields = V_TYPE
    children = [_NAMES.take(types), *(_field(f, types, buffers[f.name]) for f in fields)]
    return pa.StructArray.from_arrays(children, fields=[named, *fields])


def _field(field: pa.Field, types: pa.Array, buffers: list[pa.Buffer]) -> pa.Array:
    """Return one field of V for all values, null for values whose type does not use the field."""
    present = types.buffers()[1].to_pybytes()
    if not any(number in present for number in HELD[field.name]):
        return pa.nulls(len(types), field.type)
    valid = _HAVE[field.name].take(types).buffers()[1]
    return pa.Array.from_buffers(field.type, len(types), [valid, *buffers])


def _array(kind: pa.DataType, numbers: BytesWriter) -> pa.Array:
    buffer = _buffer(numbers)
    return pa.Array.from_buffers(kind, buffer.size * 8 // kind.bit_width, [None, buffer])


def _buffer(written: BytesWriter) -> pa.Buffer:
    if len(written) > BYTES_MAX:
        raise ValueError(f"{len(written)} bytes are more than a column can hold")
    return pa.py_buffer(written.getvalue())


def map_array(given: Maps, *, none: Sequence[bool] | None = None) -> pa.MapArray:
    """Return the maps as an array of maps of V; rows that `none` marks are null."""
    return pa.MapArray.from_arrays(
        _array(pa.int32(), given.offsets),
        pa.array(given.names, pa.string()).take(_array(pa.int32(), given.keys)),
        struct_array(given.values),
        type=MAP_TYPE,
        mask=None if none is None else pa.array(none, pa.bool_()),
    )


def maps(entries: Sequence[dict[str, object] | None]) -> pa.MapArray:
    """Return the dicts as an array of maps of V, null for None."""
    given = Maps()
    for each in entries:
        given.add(each or {})
        given.close()
    return map_array(given, none=[each is None for each in entries])


def lists(rows: Sequence[list[object] | None]) -> pa.ListArray:
    """Return the lists as an array of lists of V, null for None."""
    values = Values()
    for row in rows:
        for value in row or ():
            values.add(value)
    return pa.ListArray.from_arrays(
        pa.array(accumulate((len(row or ()) for row in rows), initial=0), pa.int32()),
        struct_array(values),
        type=LIST_TYPE,
        mask=pa.array([row is None for row in rows], pa.bool_()),
    )


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
    """A placeholder for an invalid value: code that needs the value raises `error`."""

    def __init__(self, error: ValueError) -> None:
        self.error: Final = error


def values_of(array: pa.StructArray) -> list[object]:
    """Return the values of an array of V; an `Unreadable` stands for each invalid one."""
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
    """Return whether `kind` is a struct with all fields of V."""
    return pa.types.is_struct(kind) and set(V_TYPE.names) <= {field.name for field in kind}


def value_of(struct: dict[str, object] | None) -> object:
    """Return the value of a V, given as a dict of its fields; None for None.

    Raise ValueError if it is invalid.
    """
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
    if kind == TYPES[JSON]:
        return from_json(str(_held(struct, "string")))
    raise ValueError(f"type is none of {', '.join([*dict.fromkeys(TYPES)])}")


def _held(struct: dict[str, object], field: str) -> object:
    value = struct.get(field)
    if value is None:
        raise ValueError(f"{field} is null")
    return value
