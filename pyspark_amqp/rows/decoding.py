"""Encoded messages as Arrow rows.

A batch is made column by column: each message is decoded once, then every requested column takes
its values from all of them. Nothing else is decoded: the rows have the schema that the user gives.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, cast, final

import pyarrow as pa
import pyarrow.compute as pc

from broker.jms import Destination
from pyspark_amqp.rows.amqp_json import plain_json, text_of
from pyspark_amqp.rows.buffers import Maps
from pyspark_amqp.rows.columns import (
    ID_TYPE,
    LIST_TYPE,
    MAP_TYPE,
    UTC_MICROSECONDS,
    message_columns,
    schema_of,
)
from pyspark_amqp.rows.plain import (
    ID_FIELDS,
    JSON_READERS,
    READERS,
    Decoded,
    Reader,
    is_constant,
)
from pyspark_amqp.rows.typed import lists, map_array, maps

BROKER_COLUMNS: Final = frozenset(
    {"address", "subscription", "position", "enqueuedAt", "amqp", "messageFormat"}
)
"""The columns that are known of a message without decoding it."""

BODY_COLUMNS: Final = frozenset(
    {"bodyType", "bodySection", "bodyText", "bodyBytes", "bodyMap", "bodyList", "bodyJson"}
)

Maker = Callable[[list[Any]], pa.Array]

TOLD: Final = pa.schema(
    [
        ("position", pa.int64()),
        ("enqueuedAt", UTC_MICROSECONDS),
        ("message", pa.binary()),
        ("messageFormat", pa.int64()),
        ("ttlEndsAt", UTC_MICROSECONDS),
    ]
)
"""The broker's facts about messages; all but the message may be null."""


def told_of(
    messages: Sequence[bytes],
    *,
    positions: Sequence[int | None],
    enqueued_us: Sequence[int | None],
    formats: Sequence[int | None] | None = None,
    ttl_ends_us: Sequence[int | None] | None = None,
) -> pa.RecordBatch:
    """Return a batch of TOLD; all lists have the same length.

    Without `formats`, all messages are in AMQP's own format; without `ttl_ends_us`, it is unknown
    when the ttl of any of them ends.
    """
    unknown = [None] * len(messages)
    columns = [positions, enqueued_us, messages, formats or unknown, ttl_ends_us or unknown]
    return pa.record_batch(columns, schema=TOLD)


def _text_maps(maps: list[dict[str, object] | None]) -> list[object]:
    """Return maps as lists of names and texts, null for None."""
    return [
        None if each is None else [(name, text_of(value)) for name, value in each.items()]
        for each in maps
    ]


def _text_lists(lists_: list[list[object] | None]) -> list[object]:
    """Return lists of texts, null for None."""
    return [None if each is None else [text_of(value) for value in each] for each in lists_]


EntriesOrNone = list[dict[str, object] | None]
ItemsOrNone = list[list[object] | None]

STRING_READERS: Final[dict[str, Reader]] = {
    "properties": lambda ms: _text_maps([m.properties for m in ms]),
    "bodyMap": lambda ms: _text_maps(cast(EntriesOrNone, READERS["bodyMap"](ms))),
    "bodyList": lambda ms: _text_lists(cast(ItemsOrNone, READERS["bodyList"](ms))),
}

FORM_READERS: Final[dict[str, dict[str, Reader]]] = {
    "typed": {},
    "json": JSON_READERS,
    "string": STRING_READERS,
}
"""The functions that differ from READERS, by the value of `propertiesAs`."""


def wall_ms() -> int:
    """Return the present time in ms since 1970."""
    return time.time_ns() // 1_000_000


@final
class RowMaker:
    """The maker of rows with the columns `names`, from messages of one place.

    `consumer` is the destination of a message that names none. `now_ms` returns the time of
    reading, from which a ttl counts if the broker does not tell when it ends.

    A message that is not a JMS message
    is a row as well, with the broker's facts, its bytes in `amqp` in any case, and the reason in
    `bodyJson`; its `bodyType` is null.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        address: str | None,
        subscription: str | None = None,
        consumer: Destination | None = None,
        include_body: bool = True,
        include_raw: bool = False,
        properties_as: str = "typed",
        now_ms: Callable[[], int] = wall_ms,
    ) -> None:
        self.schema: Final = schema_of(message_columns(properties_as), names)
        # computed once: naming fields and hashing types takes Arrow a tenth of the time of a small
        # batch
        self._types: Final = {field.name: field.type for field in self.schema}
        self._makers: Final = {name: MAKERS.get(kind) for name, kind in self._types.items()}
        self._constants: Final = {"address": address, "subscription": subscription}
        self._readers: Final = READERS | FORM_READERS[properties_as]
        self._include_raw: Final = include_raw
        self._now_ms: Final = now_ms
        self._consumer: Final = consumer
        # bodies are decoded only if a column of theirs is requested
        self._body: Final = include_body and not BODY_COLUMNS.isdisjoint(names)
        self._properties: Final = "properties" in names
        self._decodes: Final = not BROKER_COLUMNS.issuperset(names)

    def batch(self, told: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the messages in `told` (schema TOLD), in their order."""
        decoded = self._decoded(told) if self._decodes else None
        arrays = [self._column(name, told, decoded) for name in self._types]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _decoded(self, told: pa.RecordBatch) -> Decoded:
        as_maps = self._properties and "properties" not in self._readers
        decoded = Decoded(
            consumer=self._consumer,
            properties=self._properties and not as_maps,
            maps=Maps() if as_maps else None,
            body=self._body,
        )
        messages = told.column("message")
        _, offsets, data = messages.buffers()
        first = messages.offset
        ttl_ends_ms = pc.divide(told.column("ttlEndsAt").cast(pa.int64()), 1000).fill_null(0)
        decoded.add(
            b"" if data is None else data.to_pybytes(),
            memoryview(offsets).cast("i")[first : first + len(messages) + 1].tolist(),
            ttl_ends_ms=ttl_ends_ms.to_pylist(),
            now_ms=self._now_ms(),
        )
        return decoded

    def _column(self, name: str, told: pa.RecordBatch, decoded: Decoded | None) -> pa.Array:
        if name in self._constants:
            constant = self._constants[name]
            return pa.repeat(pa.scalar(constant, pa.string()), told.num_rows)
        if name in told.schema.names:
            return told.column(name)
        if name == "amqp":
            return self._raw(told.column("message"), decoded)
        assert decoded is not None
        if name in BODY_COLUMNS and not self._body:
            return pa.nulls(told.num_rows, self._types[name])
        array = self._array(name, decoded)
        if decoded.errors:
            array = _emptied(array, decoded.errors)
            if name == "bodyJson":
                texts = array.to_pylist()
                for at, error in decoded.errors.items():
                    texts[at] = plain_json({"error": error})
                array = pa.array(texts, pa.string())
        return array

    def _array(self, name: str, decoded: Decoded) -> pa.Array:
        """Return one column of all messages."""
        if name == "properties" and decoded.maps is not None:
            return map_array(decoded.maps)
        values = self._readers[name](decoded.messages)
        return _array(values, self._types[name], self._makers[name])

    def _raw(self, messages: pa.Array, decoded: Decoded | None) -> pa.Array:
        """Return all messages if `amqp` is requested, else only those that are not JMS messages."""
        if self._include_raw:
            return messages
        if decoded is None or not decoded.errors:
            return pa.nulls(len(messages), pa.binary())
        places = [at if at in decoded.errors else None for at in range(len(messages))]
        return messages.take(pa.array(places, pa.int64()))


def _emptied(array: pa.Array, without: dict[int, str]) -> pa.Array:
    """Return `array` with nulls at the indexes in `without`."""
    kept = [None if at in without else at for at in range(len(array))]
    return array.take(pa.array(kept, pa.int64()))


def _array(values: list[Any], kind: pa.DataType, make: Maker | None = None) -> pa.Array:
    """Return an array of `values`; fast if all are the same, such as null, as in many columns."""
    if values and is_constant(values):
        if values[0] is None:
            return pa.nulls(len(values), kind)
        if make is None:
            return pa.repeat(pa.scalar(values[0], kind), len(values))
    return pa.array(values, kind) if make is None else make(values)


def _ids(values: list[object]) -> pa.Array:
    """Return identifiers as structs, null for None."""
    children = [_array(ID_FIELDS[field.name](values), field.type) for field in ID_TYPE]
    return pa.StructArray.from_arrays(children, fields=list(ID_TYPE), mask=children[0].is_null())


MAKERS: Final[dict[pa.DataType, Maker]] = {
    ID_TYPE: _ids,
    LIST_TYPE: lists,
    MAP_TYPE: maps,
}
"""The functions that make arrays of values that Arrow does not know."""
