"""Arrow rows as encoded messages, which the sink sends."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import pyarrow as pa

from broker.amqp.types import ULong
from broker.jms import (
    BytesBody,
    Destination,
    DestinationType,
    JmsMessage,
    MappingError,
    encode,
)
from broker.jms.ids import correlation_id_text, message_id_text
from pyspark_amqp.one_line import UserError
from pyspark_amqp.options import OptionError
from pyspark_amqp.rows.amqp_json import annotations_from_json
from pyspark_amqp.rows.columns import MESSAGE_COLUMNS
from pyspark_amqp.sink.bodies import VALUE, Bodies
from pyspark_amqp.sink.values import Columns, binary_in, columns_of, map_in, text_in, whole_in

MICROSECONDS: Final = 1000
"""Microseconds in a millisecond."""

RAW_COLUMNS: Final = ("address", "amqp", "messageFormat")
"""The columns that matter if the column amqp is sent as it is."""

Put = Callable[[JmsMessage, Any], None]
Encoded = Callable[[int], bytes]
"""A function that returns the message of a row, by the row's index in its batch."""


class RowError(UserError, ValueError):
    """An error because a row is no message; the text says which row and why."""


TIMES: Final = ("JMSTimestamp", "JMSExpiration", "JMSDeliveryTime")

NUMBERS: Final = ("JMSPriority", "JMSDeliveryMode", "JMSXGroupSeq", "JMS_AMQP_TTL", "messageFormat")

KINDS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    VALUE: ("STRING or BINARY", ("string", "char", "varchar", "binary")),
    # a whole number has no unit: some programs count seconds, others milliseconds
    **dict.fromkeys(TIMES, ("TIMESTAMP", ("timestamp", "timestamp_ntz"))),
    **dict.fromkeys(NUMBERS, ("a whole number", ("byte", "short", "integer", "long"))),
}
"""The types that a column of the sink may have, as the user writes them and as Spark names them."""

NULL: Final = "void"
"""Spark's name for the type of a column that is null in all rows."""


def check_columns(kinds: Mapping[str, str], *, raw: bool, address: str | None) -> None:
    """Raise OptionError if rows with these columns cannot be sent.

    `kinds` has Spark's names of their types. Call it while a query is planned.
    """
    names = list(kinds)
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
    if raw:
        return
    for name, kind in kinds.items():
        meant, known = KINDS.get(name, ("", (kind,)))
        if kind not in (*known, NULL):
            raise OptionError(f"the column {name} of the sink is {meant}, not {kind.upper()}")


@final
class Outgoing:
    """A message to send, and its address."""

    def __init__(self, address: str, data: bytes) -> None:
        self.address: Final = address
        self.data: Final = data


@final
class MessageMaker:
    """The maker of messages from the rows of one partition, which `name` identifies.

    A message without an id gets `ID:NAME/ROW`, so a partition that is written again has the same
    ids. `count` is the number of rows made so far; it is set back to make rows again.
    """

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
        self.count = 0

    def messages(self, batch: pa.RecordBatch) -> Iterator[Outgoing]:
        """Yield a message for each row; raise RowError, which names the row, if a row is none."""
        if self._raw:
            needed = {"amqp", "messageFormat"} if self._address else {*RAW_COLUMNS}
            batch = batch.select([name for name in batch.schema.names if name in needed])
        columns = columns_of(batch)
        formats = columns.get("messageFormat", [None] * batch.num_rows)
        addresses: Sequence[str | None] = [self._address] * batch.num_rows
        if not self._address:
            addresses = columns.get("address", addresses)
        encoded = _raw(columns) if self._raw else self._encoded(columns, addresses)
        for at, address in enumerate(addresses):
            try:
                if address is None:
                    raise ValueError("its address is null")
                _check_format(formats[at])
                made = Outgoing(text_in("address", address), encoded(at))
            except (MappingError, ValueError, TypeError, OverflowError) as error:
                raise RowError(
                    f"row {self.count} of {self._name} is no message: {error}"
                ) from error
            yield made
            self.count += 1

    def _encoded(self, columns: Columns, addresses: Sequence[str | None]) -> Encoded:
        bodies = Bodies(columns, self._body_type)
        headers = _headers(columns, addresses)

        def encoded(at: int) -> bytes:
            message = JmsMessage(bodies.of(at))
            for put, values in headers:
                value = values[at]
                if value is not None:
                    put(message, value)
            if not message.message_id:
                message.message_id = f"ID:{self._name}/{self.count}"
            if not message.timestamp:
                message.timestamp = self._now_ms()
            if message.expiration:
                # an expired message is sent as such: the broker decides about it
                message.time_to_live = max(1, message.expiration - self._now_ms())
            return encode(message)

        return encoded


def _check_format(message_format: object) -> None:
    """Raise ValueError for a format other than AMQP's own.

    Sent in AMQP's own format, it would be another message.
    """
    if message_format:
        number = whole_in("messageFormat", message_format)
        raise ValueError(f"its messageFormat {number:#x} cannot be sent, only AMQP's own (0)")


def _raw(columns: Columns) -> Encoded:
    messages = columns.get("amqp")

    def encoded(at: int) -> bytes:
        data = None if messages is None else messages[at]
        if data is None:
            raise ValueError("its column amqp is null")
        return binary_in("amqp", data)

    return encoded


def _texts(column: str, header: str) -> Put:
    def put(message: JmsMessage, value: object) -> None:
        setattr(message, header, text_in(column, value))

    return put


def _numbers(column: str, header: str, unit: int = 1) -> Put:
    def put(message: JmsMessage, value: object) -> None:
        setattr(message, header, whole_in(column, value) // unit)

    return put


def _ids(column: str, header: str, text_of: Callable[[object], str | None]) -> Put:
    """Return a function that sets an identifier by its type, unless JMS' text of it is set."""

    def put(message: JmsMessage, typed: dict[str, object]) -> None:
        if getattr(message, header) is None:
            setattr(message, header, text_of(_identifier(column, typed)))

    return put


def _identifier(column: str, typed: dict[str, object]) -> object:
    kind = typed.get("type")
    value = typed.get(str(kind))
    if kind == "uuid":
        return uuid.UUID(str(value))
    if kind == "ulong":
        return ULong(int(str(value)))
    if kind in ("string", "binary") and value is not None:
        return value
    raise ValueError(f"{column} is none: {typed!r:.100}")


def _property(name: str) -> Put:
    return lambda message, value: message.set_property(name, value)


def _put_properties(message: JmsMessage, value: object) -> None:
    # the row may come from a client that is not bound to the names of JMS
    for name, each in map_in("properties", value).items():
        message.set_any_property(name, each)


def _put_destination(message: JmsMessage, told: tuple[str, str]) -> None:
    address, kind = told
    message.destination = Destination(address, DestinationType(kind))


def _put_reply_to(message: JmsMessage, told: tuple[str, str | None]) -> None:
    address, kind = told
    message.reply_to = Destination(
        text_in("JMSReplyTo", address), DestinationType(kind or DestinationType.QUEUE.value)
    )


def _put_content_type(message: JmsMessage, value: object) -> None:
    if isinstance(message.body, BytesBody) and value:
        message.content_type = text_in("contentType", value)


def _put_annotations(message: JmsMessage, value: object) -> None:
    message.annotations = annotations_from_json(text_in("messageAnnotations", value))


HEADERS: Final[dict[str, Put]] = {
    "JMSMessageID": _texts("JMSMessageID", "message_id"),
    "messageId": _ids("messageId", "message_id", message_id_text),
    "JMSCorrelationID": _texts("JMSCorrelationID", "correlation_id"),
    "correlationId": _ids("correlationId", "correlation_id", correlation_id_text),
    "JMSTimestamp": _numbers("JMSTimestamp", "timestamp", MICROSECONDS),
    "JMSDestinationType": _put_destination,
    "JMSReplyTo": _put_reply_to,
    "JMSType": _texts("JMSType", "type"),
    "JMSPriority": _numbers("JMSPriority", "priority"),
    "JMSDeliveryMode": _numbers("JMSDeliveryMode", "delivery_mode"),
    "JMSExpiration": _numbers("JMSExpiration", "expiration", MICROSECONDS),
    "JMSDeliveryTime": _numbers("JMSDeliveryTime", "delivery_time", MICROSECONDS),
    "JMSXUserID": _texts("JMSXUserID", "user_id"),
    "JMSXGroupID": _texts("JMSXGroupID", "group_id"),
    "JMSXGroupSeq": _property("JMSXGroupSeq"),
    "JMS_AMQP_TTL": _property("JMS_AMQP_TTL"),
    "JMS_AMQP_REPLY_TO_GROUP_ID": _texts("JMS_AMQP_REPLY_TO_GROUP_ID", "reply_to_group_id"),
    "contentType": _put_content_type,
    "contentEncoding": _texts("contentEncoding", "content_encoding"),
    "properties": _put_properties,
    "messageAnnotations": _put_annotations,
}
"""The functions that set a column's value in a message, by column; called in this order."""


def _headers(columns: Columns, addresses: Sequence[str | None]) -> list[tuple[Put, Sequence[Any]]]:
    """Return the functions of the columns that are not empty, with their values."""
    told = dict(columns)
    if "JMSDestinationType" in columns:
        kinds = columns["JMSDestinationType"]
        told["JMSDestinationType"] = [
            None if kind is None else (address, kind)
            for address, kind in zip(addresses, kinds, strict=True)
        ]
    if "JMSReplyTo" in columns:
        kinds = columns.get("JMSReplyToType", [None] * len(addresses))
        told["JMSReplyTo"] = [
            None if address is None else (address, kind)
            for address, kind in zip(columns["JMSReplyTo"], kinds, strict=True)
        ]
    return [(put, told[name]) for name, put in HEADERS.items() if name in told]
