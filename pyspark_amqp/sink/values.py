"""Arrow's columns as lists of Python values, from which the sink makes messages.

To read an Arrow row costs several times as much as to read its values in such lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyspark_amqp.rows.typed import Unreadable, is_typed, value_of, values_of

Columns = Mapping[str, Sequence[Any]]
"""The rows of a batch, column by column."""


def columns_of(batch: pa.RecordBatch) -> Columns:
    """Return the columns by their names, without those that are null in all rows.

    Times are in µs, since datetime has a smaller range than JMS' times. Entries of maps and lists
    of type V are replaced by their values; a row with an entry that is no value becomes an
    `Unreadable`.
    """
    return {
        name: _listed(array)
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
        if array.null_count < len(array)
    }


def _listed(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_map(kind):
        return _maps(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(array)
    if pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64())
    listed: list[Any] = array.to_pylist()
    if pa.types.is_struct(kind) and any(pa.types.is_nested(field.type) for field in kind):
        rows = [row and {name: _read(value) for name, value in row.items()} for row in listed]
        return [row and _readable(row) for row in rows]
    return listed


def _maps(array: pa.MapArray) -> list[Any]:
    kind = array.type.key_type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        wrong = Unreadable(ValueError(f"the names of a map are {kind}, not texts"))
        return [wrong if is_there else None for is_there in array.is_valid().to_pylist()]
    names, values = array.keys.to_pylist(), _entries(array.items)
    rows = [
        dict(zip(names[begin:end], values[begin:end], strict=False)) if is_there else None
        for begin, end, is_there in _spans(array)
    ]
    return rows if _are_readable(values) else [row and _readable(row) for row in rows]


def _lists(array: pa.ListArray) -> list[Any]:
    values = _entries(array.values)
    rows = [values[begin:end] if is_there else None for begin, end, is_there in _spans(array)]
    return rows if _are_readable(values) else [row and _readable(row) for row in rows]


def _spans(array: pa.MapArray | pa.ListArray) -> Iterable[tuple[int, int, bool]]:
    """Return for each row where its entries begin and end, and whether it is not null."""
    offsets = array.offsets.to_pylist()
    return zip(offsets, offsets[1:], array.is_valid().to_pylist(), strict=False)


def _entries(array: pa.Array) -> list[Any]:
    if is_typed(array.type):
        return values_of(array)
    values: list[Any] = array.to_pylist(maps_as_pydicts="strict")
    return [_read(value) for value in values] if pa.types.is_nested(array.type) else values


def _read(value: object) -> object:
    try:
        return value_of(value) if isinstance(value, dict) else value
    except ValueError as error:
        return Unreadable(error)


def _are_readable(values: Iterable[object]) -> bool:
    return Unreadable not in set(map(type, values))


def _readable(row: dict[str, object] | list[object]) -> object:
    """Return the row, or its first `Unreadable` value if there is one."""
    values = row.values() if isinstance(row, dict) else row
    return next((value for value in values if isinstance(value, Unreadable)), row)


# ---- types of values in a column


def text_in(column: str, value: object) -> str:
    """Return `value`; raise ValueError, which names the column, if it is no text."""
    if isinstance(value, str):
        return value
    raise ValueError(f"{column} is no text")


def whole_in(column: str, value: object) -> int:
    """Return `value`; raise ValueError, which names the column, if it is no whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{column} is no whole number")


def binary_in(column: str, value: object) -> bytes:
    """Return `value`; raise ValueError, which names the column, if it is not binary."""
    if isinstance(value, bytes):
        return value
    raise ValueError(f"{column} is not binary")


def map_in(column: str, value: object) -> dict[str, object]:
    """Return `value`; raise ValueError if it is no map or has an entry that is no value."""
    if isinstance(value, Unreadable):
        raise value.error
    if isinstance(value, dict):
        return value
    raise ValueError(f"{column} is no map")
