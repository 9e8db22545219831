"""Encoded messages as columns of plain values, from which `decoding.py` makes arrays.

The code runs for each message and column, so it is compiled (pyproject.toml); it knows no Arrow.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, final

from mypy_extensions import i64

from broker.amqp.errors import Fault
from broker.amqp.types import Map, ULong
from broker.jms.bodies import (
    NO_BODY,
    Body,
    BytesBody,
    MapBody,
    ObjectBody,
    SerializedBody,
    StreamBody,
    TextBody,
)
from broker.jms.destinations import Destination, DestinationType
from broker.jms.errors import MappingError
from broker.jms.ids import correlation_id_value, message_id_value
from broker.jms.mapping import Decoder
from broker.jms.message import JmsMessage
from pyspark_amqp.rows.amqp_json import annotations_json, plain_json, to_json
from pyspark_amqp.rows.buffers import Maps

MICROSECONDS_MAX: Final = 9_223_372_022_400_000_000
"""Times in µs since 1970 up to this number, also negative ones, are times for Spark and DuckDB."""

MILLISECONDS_MAX: Final = MICROSECONDS_MAX // 1000

UNREADABLE: Final = JmsMessage(NO_BODY)
"""A placeholder for a message that is not a JMS message; its columns are emptied afterwards."""


@final
class Decoded:
    """Decoded messages, and in `errors` by row the reason why one is not a JMS message.

    Properties are in `maps` if it is given, else in the messages if `properties` is true.
    """

    def __init__(
        self, *, consumer: Destination | None, properties: bool, maps: Maps | None, body: bool
    ) -> None:
        self.messages: Final[list[JmsMessage]] = []
        self.errors: Final[dict[int, str]] = {}
        self.maps: Final = maps
        self._decoder: Final = Decoder(consumer=consumer, properties=properties, body=body)

    def add(self, data: bytes, offsets: list[int], *, ttl_ends_ms: list[int], now_ms: int) -> None:
        """Decode further messages, each in `data` from one of the `offsets` to the next.

        `ttl_ends_ms` has the times at which their ttl ends, 0 if unknown: it then counts from
        `now_ms`, the time of reading.
        """
        for at in range(len(ttl_ends_ms)):
            message = self._message(
                data, offsets[at], offsets[at + 1], now_ms=now_ms, ttl_ends_ms=ttl_ends_ms[at]
            )
            self.messages.append(message)
            if self.maps is not None:
                self.maps.close()

    def _message(
        self, data: bytes, start: i64, end: i64, *, now_ms: int, ttl_ends_ms: int
    ) -> JmsMessage:
        decoder = self._decoder
        try:
            message = decoder.decode(data, start, end, now_ms=now_ms, ttl_ends_ms=ttl_ends_ms)
            if self.maps is not None:
                self.maps.take(data, decoder.sections.application_properties, end)
        except (MappingError, Fault) as error:
            self.errors[len(self.messages)] = str(error)
            return UNREADABLE
        return message


def is_constant(values: list[object]) -> bool:
    """Return whether all values are one object, such as None. `values` must not be empty."""
    first = values[0]
    return all(value is first for value in values)


def _microseconds(milliseconds: int) -> int | None:
    """Return a time of JMS in µs, None for 0, which means not set.

    A time out of the range of an engine becomes the last, or the first, of that range.
    """
    if milliseconds == 0:
        return None
    if -MILLISECONDS_MAX <= milliseconds <= MILLISECONDS_MAX:
        return milliseconds * 1000
    return MICROSECONDS_MAX if milliseconds > 0 else -MICROSECONDS_MAX


def _values(members: Sequence[Enum | None]) -> list[object]:
    """Return the members' values. An Enum's value is slow to get: it is kept while it repeats."""
    last: Enum | None = None
    value: object = None
    values: list[object] = []
    for member in members:
        if member is not last:
            last = member
            value = None if member is None else member.value
        values.append(value)
    return values


def _address(destination: Destination | None) -> str | None:
    return None if destination is None else destination.address


def _type(destination: Destination | None) -> DestinationType | None:
    return None if destination is None else destination.type


def _bytes(body: Body) -> bytes | None:
    if isinstance(body, BytesBody):
        return body.data
    return body.serialized if isinstance(body, SerializedBody) else None


def _entries(body: Body) -> dict[str, object] | None:
    return body.entries if isinstance(body, MapBody) else None


def _items(body: Body) -> list[object] | None:
    return body.items if isinstance(body, StreamBody) else None


def _json(body: Body) -> str | None:
    return to_json(body.value) if isinstance(body, ObjectBody) else None


def _plain(value: object) -> str | None:
    return None if value is None else plain_json(value)


def _message_id(text: str | None) -> object:
    return None if text is None else message_id_value(text)


def _correlation_id(text: str | None) -> object:
    return None if text is None else correlation_id_value(text)


def _annotations(annotations: Map) -> str | None:
    return annotations_json(annotations) if annotations.pairs else None


Reader = Callable[[list[JmsMessage]], list[object]]

READERS: Final[dict[str, Reader]] = {
    "JMSMessageID": lambda ms: [m.message_id for m in ms],
    "JMSCorrelationID": lambda ms: [m.correlation_id for m in ms],
    "JMSTimestamp": lambda ms: [_microseconds(m.timestamp) for m in ms],
    "JMSDestination": lambda ms: [_address(m.destination) for m in ms],
    "JMSDestinationType": lambda ms: _values([_type(m.destination) for m in ms]),
    "JMSReplyTo": lambda ms: [_address(m.reply_to) for m in ms],
    "JMSReplyToType": lambda ms: _values([_type(m.reply_to) for m in ms]),
    "JMSType": lambda ms: [m.type for m in ms],
    "JMSPriority": lambda ms: [m.priority for m in ms],
    "JMSDeliveryMode": lambda ms: [m.delivery_mode for m in ms],
    "JMSExpiration": lambda ms: [_microseconds(m.expiration) for m in ms],
    "JMSDeliveryTime": lambda ms: [_microseconds(m.delivery_time) for m in ms],
    "JMSRedelivered": lambda ms: [m.delivery_count > 1 for m in ms],
    "JMSXDeliveryCount": lambda ms: [m.delivery_count for m in ms],
    "JMSXUserID": lambda ms: [m.user_id for m in ms],
    "JMSXGroupID": lambda ms: [m.group_id for m in ms],
    "JMSXGroupSeq": lambda ms: [m.group_sequence for m in ms],
    "JMS_AMQP_TTL": lambda ms: [m.time_to_live or None for m in ms],
    "JMS_AMQP_REPLY_TO_GROUP_ID": lambda ms: [m.reply_to_group_id for m in ms],
    "contentType": lambda ms: [m.content_type for m in ms],
    "contentEncoding": lambda ms: [m.content_encoding for m in ms],
    "bodyType": lambda ms: _values([m.body.kind for m in ms]),
    "bodySection": lambda ms: _values([m.body_section for m in ms]),
    "bodyText": lambda ms: [m.body.text if isinstance(m.body, TextBody) else None for m in ms],
    "bodyBytes": lambda ms: [_bytes(m.body) for m in ms],
    "bodyMap": lambda ms: [_entries(m.body) for m in ms],
    "bodyList": lambda ms: [_items(m.body) for m in ms],
    "bodyJson": lambda ms: [_json(m.body) for m in ms],
    "messageId": lambda ms: [_message_id(m.message_id) for m in ms],
    "correlationId": lambda ms: [_correlation_id(m.correlation_id) for m in ms],
    "messageAnnotations": lambda ms: [_annotations(m.annotations) for m in ms],
}
"""The functions that take a column's values from messages, by the column's name."""

JSON_READERS: Final[dict[str, Reader]] = {
    "properties": lambda ms: [plain_json(m.properties) for m in ms],
    "bodyMap": lambda ms: [_plain(_entries(m.body)) for m in ms],
    "bodyList": lambda ms: [_plain(_items(m.body)) for m in ms],
}
"""The functions that differ from READERS if `propertiesAs` is json."""


def id_type(value: object) -> str | None:
    """Return the field of an ID that holds `value`, which its field `type` names; None for None."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bytes):
        return "binary"
    if isinstance(value, ULong):
        return "ulong"
    return None if value is None else "uuid"


ID_FIELDS: Final[dict[str, Callable[[list[object]], list[object]]]] = {
    "type": lambda ids: [id_type(each) for each in ids],
    "ulong": lambda ids: [each.value if isinstance(each, ULong) else None for each in ids],
    "uuid": lambda ids: [str(each) if isinstance(each, uuid.UUID) else None for each in ids],
    "binary": lambda ids: [each if isinstance(each, bytes) else None for each in ids],
    "string": lambda ids: [each if isinstance(each, str) else None for each in ids],
}
"""The functions that take the values of a field of the struct ID from identifiers, by field."""
