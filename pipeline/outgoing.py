"""Rows of Arrow as encoded messages: what the sink sends."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Final, final

import pyarrow as pa

from broker.amqp.types import ULong
from broker.jms import (
    BytesBody,
    Destination,
    DestinationType,
    JmsMessage,
    MapBody,
    MappingError,
    NoBody,
    ObjectBody,
    SerializedBody,
    StreamBody,
    TextBody,
    encode,
)
from broker.jms.bodies import Body
from broker.jms.ids import correlation_id_text, message_id_text
from pipeline.amqp_json import annotations_from_json, from_json
from pipeline.columns import MESSAGE_COLUMNS
from pipeline.options import OptionError
from pipeline.typed import Unreadable, is_typed, value_of, values_of

VALUE: Final = "value"
"""A column that is the body, text or bytes by its type: what Kafka's sink calls it."""

BODIES: Final = {
    "bodyText": "text",
    "bodyBytes": "bytes",
    "bodyMap": "map",
    "bodyList": "stream",
    "bodyJson": "object",
}
"""By the column that is filled, the kind of a message that does not say it."""

Row = Mapping[str, object]


class RowError(ValueError):
    """A row is no message; the text says which row and why."""


def check_columns(names: list[str], *, raw: bool, address: str | None) -> None:
    """OptionError where rows of those columns cannot be sent. To be asked as a query is planned."""
    if raw and "amqp" not in names:
        raise OptionError("option replay: raw needs the column amqp")
    if address is None and "address" not in names:
        raise OptionError("option address: it must be given where rows have no column address")
    allowed = [*MESSAGE_COLUMNS, VALUE]
    strangers = [name for name in names if name not in allowed]
    if strangers:
        raise OptionError(
            f"the sink has no column {', '.join(strangers)}; allowed: {', '.join(allowed)}"
        )


@final
class Outgoing:
    """One message to be sent."""

    def __init__(self, address: str, data: bytes) -> None:
        self.address: Final = address
        self.data: Final = data


@final
class MessageMaker:
    """Makes messages of rows; all of one partition, whose `name` begins the ids of those that
    have none, `NAME/ROW`: a partition that is written again gives them again."""

    def __init__(
        self,
        *,
        name: str,
        address: str | None,
        body_type: str | None = None,
        raw: bool = False,
        now_ms: Callable[[], int],
    ) -> None:
        self._name: Final = name
        self._address: Final = address
        self._body_type: Final = body_type
        self._raw: Final = raw
        self._now_ms: Final = now_ms
        self._count = 0

    def messages(self, batch: pa.RecordBatch) -> Iterator[Outgoing]:
        """A message for each row. RowError names the row that is none."""
        if self._raw:
            batch = batch.select(["amqp"] if self._address else ["address", "amqp"])
        for row in _rows(batch):
            try:
                yield self._message(row)
            except (MappingError, ValueError, TypeError, OverflowError) as error:
                raise RowError(
                    f"row {self._count} of {self._name} is no message: {error}"
                ) from error
            self._count += 1

    def _message(self, row: Row) -> Outgoing:
        address = self._address or _text(row, "address")
        if address is None:
            raise ValueError("its address is null")
        if self._raw:
            data = row["amqp"]
            if not isinstance(data, bytes):
                raise ValueError("its column amqp is null")
            return Outgoing(address, data)
        return Outgoing(address, encode(self._jms(row, address)))

    def _jms(self, row: Row, address: str) -> JmsMessage:
        message = JmsMessage(_body(row, self._body_type))
        message.message_id = _id(row, "JMSMessageID", "messageId", message_id_text) or (
            f"ID:{self._name}/{self._count}"
        )
        message.correlation_id = _id(row, "JMSCorrelationID", "correlationId", correlation_id_text)
        message.timestamp = _moment(row, "JMSTimestamp") or self._now_ms()
        kind = _text(row, "JMSDestinationType")
        if kind is not None:
            message.destination = Destination(address, DestinationType(kind))
        reply_to = _text(row, "JMSReplyTo")
        if reply_to is not None:
            reply_type = _text(row, "JMSReplyToType") or DestinationType.QUEUE.value
            message.reply_to = Destination(reply_to, DestinationType(reply_type))
        message.type = _text(row, "JMSType")
        message.priority = _number(row, "JMSPriority", message.priority)
        message.delivery_mode = _number(row, "JMSDeliveryMode", message.delivery_mode)
        message.expiration = _moment(row, "JMSExpiration")
        if message.expiration:
            # what is over is sent as such: the broker says what becomes of it
            message.time_to_live = max(1, message.expiration - self._now_ms())
        message.delivery_time = _moment(row, "JMSDeliveryTime")
        message.user_id = _text(row, "JMSXUserID")
        message.group_id = _text(row, "JMSXGroupID")
        if row.get("JMSXGroupSeq") is not None:
            message.set_property("JMSXGroupSeq", row["JMSXGroupSeq"])
        if row.get("JMS_AMQP_TTL") is not None:
            message.set_property("JMS_AMQP_TTL", row["JMS_AMQP_TTL"])
        message.reply_to_group_id = _text(row, "JMS_AMQP_REPLY_TO_GROUP_ID")
        if isinstance(message.body, BytesBody):
            message.content_type = _text(row, "contentType") or message.content_type
        message.content_encoding = _text(row, "contentEncoding")
        for name, value in _entries(row, "properties").items():
            message.set_property(name, value)
        annotations = _text(row, "messageAnnotations")
        if annotations is not None:
            message.annotations = annotations_from_json(annotations)
        return message


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows, put together column by column: a row of Arrow's own costs three times as much.
    Columns that are empty are left out."""
    columns = {
        name: _plain(array)
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
        if array.null_count < len(array)
    }
    if not columns:
        yield from ({} for _ in range(batch.num_rows))
        return
    names = list(columns)
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(names, values, strict=True))


def _plain(array: pa.Array) -> list[object]:
    """As Python has it; times as microseconds, since datetime reaches less far than JMS' times."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64())
    elif pa.types.is_map(kind) and is_typed(kind.item_type):
        keys, values = array.keys.to_pylist(), values_of(array.items)
        return [
            None
            if pair is None
            else dict(zip(keys[pair[0] : pair[1]], values[pair[0] : pair[1]], strict=True))
            for pair in _spans(array)
        ]
    elif pa.types.is_list(kind) and is_typed(kind.value_type):
        values = values_of(array.values)
        return [None if pair is None else values[pair[0] : pair[1]] for pair in _spans(array)]
    elif pa.types.is_map(kind):
        plain: list[object] = array.to_pylist(maps_as_pydicts="strict")
        return plain
    listed: list[object] = array.to_pylist()
    return listed


def _spans(array: pa.MapArray | pa.ListArray) -> Iterator[tuple[int, int] | None]:
    """Where the entries of each row begin and end; None for a row that is null."""
    for span, is_there in zip(
        pairwise(array.offsets.to_pylist()), array.is_valid().to_pylist(), strict=True
    ):
        yield span if is_there else None


def _body(row: Row, body_type: str | None) -> Body:
    kind = _text(row, "bodyType") or body_type
    value = row.get(VALUE)
    text, data = row.get("bodyText"), row.get("bodyBytes")
    if isinstance(value, str) and text is None:
        text = value
    elif isinstance(value, bytes) and data is None:
        data = value
    if kind is None:
        filled = {**row, "bodyText": text, "bodyBytes": data}
        kinds = [told for name, told in BODIES.items() if filled.get(name) is not None]
        if len(kinds) > 1:
            raise ValueError(f"it has several bodies, and no bodyType: {', '.join(kinds)}")
        kind = kinds[0] if kinds else "message"
    if kind == "text":
        return TextBody(text if isinstance(text, str) else None)
    if kind == "bytes":
        return BytesBody(data if isinstance(data, bytes) else b"")
    if kind == "map":
        return MapBody(_entries(row, "bodyMap"))
    if kind == "stream":
        items = row.get("bodyList") or []
        assert isinstance(items, list)
        return StreamBody([_typed(item) for item in items])
    if kind == "object":
        return _object_body(row, data)
    if kind == "message":
        return NoBody()
    raise ValueError(f"bodyType {kind!r} is none of {', '.join([*BODIES.values(), 'message'])}")


def _object_body(row: Row, data: object) -> Body:
    if isinstance(data, bytes):
        return SerializedBody(data)
    told = _text(row, "bodyJson")
    return SerializedBody() if told is None else ObjectBody(from_json(told))


def _entries(row: Row, column: str) -> dict[str, object]:
    entries = row.get(column) or {}
    if not isinstance(entries, dict):
        raise TypeError(f"{column} is no map")
    return {name: _typed(value) for name, value in entries.items()}


def _typed(value: object) -> object:
    """A value; ValueError where it was none, or is one of a struct that is no V."""
    if isinstance(value, Unreadable):
        raise value.error
    return value_of(value) if isinstance(value, dict) else value


def _text(row: Row, column: str) -> str | None:
    value = row.get(column)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{column} is no text")


def _number(row: Row, column: str, default: int) -> int:
    value = row.get(column)
    if value is None:
        return default
    if isinstance(value, int):
        return value
    raise ValueError(f"{column} is no whole number")


def _moment(row: Row, column: str) -> int:
    """Milliseconds; 0 where there is none."""
    return _number(row, column, 0) // 1000


def _id(
    row: Row, column: str, typed_column: str, text_of: Callable[[object], str | None]
) -> str | None:
    """JMS' text of an identifier, of the column that has it so, else of the typed one."""
    text = _text(row, column)
    typed = row.get(typed_column)
    if text is not None or typed is None:
        return text
    assert isinstance(typed, dict)
    kind = typed.get("type")
    value = typed.get(kind)
    if kind == "uuid":
        return text_of(uuid.UUID(str(value)))
    if kind == "ulong":
        return text_of(ULong(int(str(value))))
    if kind in ("string", "binary") and value is not None:
        return text_of(value)
    raise ValueError(f"{typed_column} is none: {typed!r:.100}")
