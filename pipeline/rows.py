"""Encoded messages as rows of Arrow.

A batch is made column by column: each message is decoded once, then every column that is wanted
takes what is its own from all of them. What nobody wants is not decoded: the schema that a user
gives is what the rows have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

import pyarrow as pa

from broker.amqp.types import ULong
from broker.jms import (
    BytesBody,
    Destination,
    JmsMessage,
    MapBody,
    MappingError,
    NoBody,
    ObjectBody,
    SerializedBody,
    StreamBody,
    TextBody,
    decode,
)
from broker.jms.ids import correlation_id_value, message_id_value
from pipeline.amqp_json import annotations_json, plain_json, to_json
from pipeline.columns import ID_TYPE, UTC_MICROSECONDS, message_columns, schema_of
from pipeline.typed import lists, maps

BROKER_COLUMNS: Final = frozenset({"address", "subscription", "position", "enqueuedAt", "amqp"})
"""What is known of a message without decoding it."""

BODY_COLUMNS: Final = frozenset(
    {"bodyType", "bodySection", "bodyText", "bodyBytes", "bodyMap", "bodyList", "bodyJson"}
)

MICROSECONDS_MAX: Final = 0x7FFF_FFFF_FFFF_FFFF

UNREADABLE: Final = JmsMessage(NoBody())
"""In place of what is no message to JMS; its columns are emptied afterwards."""


@final
class Told:
    """What the broker told of some messages: all lists are of one length.

    `positions` and `enqueued` (microseconds) may be Arrow's own; `raw` are the messages where
    they came as an array.
    """

    def __init__(
        self,
        messages: Sequence[bytes],
        positions: Sequence[int | None] | pa.Array,
        enqueued: Sequence[int | None] | pa.Array,
        raw: pa.Array | None = None,
    ) -> None:
        self.raw: Final = raw
        self.messages: Final = messages
        self.positions: Final = positions
        self.enqueued: Final = enqueued


@final
class _Decoded:
    """Some messages as JMS has them, each `None` where the mapping has none for it."""

    def __init__(
        self,
        told: Told,
        *,
        now_ms: Sequence[int],
        consumer: Destination | None,
        properties: bool,
        body: bool,
    ) -> None:
        self.errors: Final[dict[int, str]] = {}
        self.messages: Final[list[JmsMessage]] = []
        append = self.messages.append
        for at, (data, now) in enumerate(zip(told.messages, now_ms, strict=True)):
            try:
                append(
                    decode(data, now_ms=now, consumer=consumer, properties=properties, body=body)
                )
            except MappingError as error:
                self.errors[at] = str(error)
                append(UNREADABLE)


@final
class RowMaker:
    """Makes rows of the columns `names`, of messages from one place.

    `consumer` is where a message that says no destination has come from. A message that is none to
    JMS is a row as well: what the broker knows of it, `amqp` with its
    bytes in any case, and the reason in `bodyJson`; `bodyType` is null.
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
    ) -> None:
        self.schema: Final = schema_of(message_columns(properties_as), names)
        self._constants: Final = {"address": address, "subscription": subscription}
        self._as_json: Final = properties_as == "json"
        self._include_raw: Final = include_raw
        self._consumer: Final = consumer
        # a column that is asked for by its name alone is meant
        self._body: Final = include_body and not BODY_COLUMNS.isdisjoint(names)
        self._properties: Final = "properties" in names
        self._decodes: Final = not BROKER_COLUMNS.issuperset(names)

    def batch(self, told: Told) -> pa.RecordBatch:
        """The rows of those messages, in their order."""
        if self._decodes:
            now_ms = [0 if at is None else at // 1000 for at in _plain_numbers(told.enqueued)]
            decoded = _Decoded(
                told,
                now_ms=now_ms,
                consumer=self._consumer,
                properties=self._properties,
                body=self._body,
            )
        else:
            decoded = None
        arrays = [self._column(field, told, decoded) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _column(self, field: pa.Field, told: Told, decoded: _Decoded | None) -> pa.Array:
        name = field.name
        count = len(told.messages)
        if name in self._constants:
            constant = self._constants[name]
            return pa.repeat(pa.scalar(constant, pa.string()), count)
        if name == "position":
            return _as_array(told.positions, pa.int64())
        if name == "enqueuedAt":
            return _as_array(told.enqueued, UTC_MICROSECONDS)
        if name == "amqp":
            return self._raw(told, decoded)
        assert decoded is not None
        if name in BODY_COLUMNS and not self._body:
            return pa.nulls(count, field.type)
        array = self._reader(name)(decoded.messages)
        if decoded.errors:
            array = _emptied(array, decoded.errors)
            if name == "bodyJson":
                texts = array.to_pylist()
                for at, error in decoded.errors.items():
                    texts[at] = plain_json({"error": error})
                array = pa.array(texts, pa.string())
        return array

    def _raw(self, told: Told, decoded: _Decoded | None) -> pa.Array:
        if self._include_raw:
            return pa.array(told.messages, pa.binary()) if told.raw is None else told.raw
        kept: list[bytes | None] = [None] * len(told.messages)
        if decoded is not None:
            for at in decoded.errors:
                kept[at] = told.messages[at]
        return pa.array(kept, pa.binary())

    def _reader(self, name: str) -> Callable[[Sequence[JmsMessage]], pa.Array]:
        return JSON_READERS.get(name, READERS[name]) if self._as_json else READERS[name]


def _plain_numbers(numbers: Sequence[int | None] | pa.Array) -> Sequence[int | None]:
    if isinstance(numbers, (pa.Array, pa.ChunkedArray)):
        plain: list[int | None] = numbers.cast(pa.int64()).to_pylist()
        return plain
    return numbers


def _as_array(values: Sequence[int | None] | pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values if values.type == kind else values.cast(kind)
    return pa.array(values, kind)


def _emptied(array: pa.Array, without: dict[int, str]) -> pa.Array:
    """`array` with nulls at those places."""
    return array.take(pa.array([None if at in without else at for at in range(len(array))]))


def _moments(milliseconds: list[int]) -> pa.Array:
    """Times; 0, as in JMS, is none, and what lies beyond Spark's times is their end."""
    return pa.array(
        [
            None if at == 0 else max(-MICROSECONDS_MAX, min(at * 1000, MICROSECONDS_MAX))
            for at in milliseconds
        ],
        UTC_MICROSECONDS,
    )


def _texts(values: Sequence[object]) -> pa.Array:
    return pa.array(values, pa.string())


def _numbers(values: Sequence[object]) -> pa.Array:
    return pa.array(values, pa.int32())


def _longs(values: Sequence[object]) -> pa.Array:
    return pa.array(values, pa.int64())


def _addresses(values: Sequence[Destination | None]) -> pa.Array:
    return pa.array([None if each is None else each.address for each in values], pa.string())


def _types(values: Sequence[Destination | None]) -> pa.Array:
    return pa.array([None if each is None else each.type.value for each in values], pa.string())


def _map_bodies(messages: Sequence[JmsMessage]) -> list[dict[str, object] | None]:
    return [m.body.entries if isinstance(m.body, MapBody) else None for m in messages]


def _list_bodies(messages: Sequence[JmsMessage]) -> list[list[object] | None]:
    return [m.body.items if isinstance(m.body, StreamBody) else None for m in messages]


def _byte_bodies(messages: Sequence[JmsMessage]) -> pa.Array:
    return pa.array(
        [
            m.body.content if isinstance(m.body, (BytesBody, SerializedBody)) else None
            for m in messages
        ],
        pa.binary(),
    )


def _object_bodies(messages: Sequence[JmsMessage]) -> pa.Array:
    return _texts(
        [to_json(m.body.value) if isinstance(m.body, ObjectBody) else None for m in messages]
    )


def _ids(values: Sequence[object]) -> pa.Array:
    """Identifiers as structs; null where there is none."""
    rows = [None if value is None else _id(value) for value in values]
    return pa.array(rows, ID_TYPE)


def _id(value: object) -> dict[str, object]:
    if isinstance(value, str):
        return {"type": "string", "string": value}
    if isinstance(value, bytes):
        return {"type": "binary", "binary": value}
    if isinstance(value, ULong):
        return {"type": "ulong", "ulong": value.value}
    return {"type": "uuid", "uuid": str(value)}


def _annotations(messages: Sequence[JmsMessage]) -> pa.Array:
    return _texts(
        [annotations_json(m.annotations) if m.annotations.pairs else None for m in messages]
    )


READERS: Final[dict[str, Callable[[Sequence[JmsMessage]], pa.Array]]] = {
    "JMSMessageID": lambda ms: _texts([m.message_id for m in ms]),
    "JMSCorrelationID": lambda ms: _texts([m.correlation_id for m in ms]),
    "JMSTimestamp": lambda ms: _moments([m.timestamp for m in ms]),
    "JMSDestination": lambda ms: _addresses([m.destination for m in ms]),
    "JMSDestinationType": lambda ms: _types([m.destination for m in ms]),
    "JMSReplyTo": lambda ms: _addresses([m.reply_to for m in ms]),
    "JMSReplyToType": lambda ms: _types([m.reply_to for m in ms]),
    "JMSType": lambda ms: _texts([m.type for m in ms]),
    "JMSPriority": lambda ms: _numbers([m.priority for m in ms]),
    "JMSDeliveryMode": lambda ms: _numbers([m.delivery_mode for m in ms]),
    "JMSExpiration": lambda ms: _moments([m.expiration for m in ms]),
    "JMSDeliveryTime": lambda ms: _moments([m.delivery_time for m in ms]),
    "JMSRedelivered": lambda ms: pa.array([m.delivery_count > 1 for m in ms], pa.bool_()),
    "JMSXDeliveryCount": lambda ms: _numbers([m.delivery_count for m in ms]),
    "JMSXUserID": lambda ms: _texts([m.user_id for m in ms]),
    "JMSXGroupID": lambda ms: _texts([m.group_id for m in ms]),
    "JMSXGroupSeq": lambda ms: _longs([m.group_sequence for m in ms]),
    "JMS_AMQP_TTL": lambda ms: _longs([m.time_to_live or None for m in ms]),
    "JMS_AMQP_REPLY_TO_GROUP_ID": lambda ms: _texts([m.reply_to_group_id for m in ms]),
    "contentType": lambda ms: _texts([m.content_type for m in ms]),
    "contentEncoding": lambda ms: _texts([m.content_encoding for m in ms]),
    "properties": lambda ms: maps([m.properties for m in ms]),
    "bodyType": lambda ms: _texts([m.body.kind.value for m in ms]),
    "bodySection": lambda ms: _texts([m.body_section.value for m in ms]),
    "bodyText": lambda ms: _texts(
        [m.body.content if isinstance(m.body, TextBody) else None for m in ms]
    ),
    "bodyBytes": _byte_bodies,
    "bodyMap": lambda ms: maps(_map_bodies(ms)),
    "bodyList": lambda ms: lists(_list_bodies(ms)),
    "bodyJson": _object_bodies,
    "messageId": lambda ms: _ids(
        [None if m.message_id is None else message_id_value(m.message_id) for m in ms]
    ),
    "correlationId": lambda ms: _ids(
        [None if m.correlation_id is None else correlation_id_value(m.correlation_id) for m in ms]
    ),
    "messageAnnotations": _annotations,
}
"""By the name of a column, what makes it."""


def _json_or_none(value: object) -> str | None:
    return None if value is None else plain_json(value)


JSON_READERS: Final[dict[str, Callable[[Sequence[JmsMessage]], pa.Array]]] = {
    "properties": lambda ms: _texts([plain_json(m.properties) for m in ms]),
    "bodyMap": lambda ms: _texts([_json_or_none(each) for each in _map_bodies(ms)]),
    "bodyList": lambda ms: _texts([_json_or_none(each) for each in _list_bodies(ms)]),
}
"""The same where `propertiesAs` is json."""
