"""Messages as a test sees them: decoded into built-in types of Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from broker.amqp.decode import descriptor_at, take_value
from broker.amqp.descriptors import AMQP_VALUE, DATA
from broker.amqp.sections import Sections, split
from broker.amqp.types import Array, Char, Described, Float, Integer, Map, Symbol
from broker.message import Message

PROPERTIES: Final = (
    "message_id",
    "user_id",
    "to",
    "subject",
    "reply_to",
    "correlation_id",
    "content_type",
    "content_encoding",
    "absolute_expiry_time",
    "creation_time",
    "group_id",
    "group_sequence",
    "reply_to_group_id",
)
"""The fields of the properties section in their order (core spec 3.2.4)."""


@final
@dataclass(frozen=True, kw_only=True)
class MessageView:
    """One message in one queue. Times are milliseconds since 1970; `ttl_ms` is -1 if not set.

    `body` is bytes for data sections, a list for sequences, else the value; None if there is no
    body. `properties` has the fields that are set. `message_format` is that of the transfer; if it
    is not 0 and the payload is not made of sections, `body` is the payload.
    """

    body: object
    properties: dict[str, object]
    application_properties: dict[str, object]
    message_annotations: dict[str, object]
    durable: bool
    priority: int
    ttl_ms: int
    delivery_count: int
    message_format: int = 0


def view(message: Message, delivery_count: int) -> MessageView:
    """Return `message` decoded. Raise Fault if it is malformed, which the broker does not check."""
    data = b"" if message.opaque else message.encoded
    sections = split(data, 0, len(data))
    return MessageView(
        body=message.encoded if message.opaque else _body(data, sections),
        properties=_properties(data, sections),
        application_properties=_map(data, sections.application_properties),
        message_annotations=_map(data, sections.message_annotations),
        durable=message.durable,
        priority=message.priority,
        ttl_ms=message.ttl_ms,
        delivery_count=delivery_count,
        message_format=int(message.message_format),
    )


def _body(data: bytes, sections: Sections) -> object:
    at = sections.body
    if at < 0:
        return None
    end = sections.footer if sections.footer >= 0 else sections.end
    chunks: list[bytes] = []
    elements: list[object] = []
    code = DATA
    while at < end:
        code, value_at = descriptor_at(data, at, end)
        value, at = take_value(data, value_at, end)
        if code == AMQP_VALUE:
            return plain(value)
        if isinstance(value, bytes):
            chunks.append(value)
        elif isinstance(value, list):
            elements += [plain(element) for element in value]
    return b"".join(chunks) if code == DATA else elements


def _properties(data: bytes, sections: Sections) -> dict[str, object]:
    if sections.properties < 0:
        return {}
    fields, _ = take_value(data, sections.properties, len(data))
    assert isinstance(fields, list)  # `split` has checked it
    named = zip(PROPERTIES, fields, strict=False)
    return {name: plain(value) for name, value in named if value is not None}


def _map(data: bytes, at: int) -> dict[str, object]:
    if at < 0:
        return {}
    value, _ = take_value(data, at, len(data))
    assert isinstance(value, Map)  # `split` has checked it
    return {str(plain(key)): plain(each) for key, each in value.pairs}


def plain(value: object) -> object:
    """Return `value` as built-in types of Python; an AMQP decimal, which Python lacks, as it is."""
    match value:
        case Char():
            return chr(value.value)
        case Integer() | Float():
            return value.value
        case Symbol():
            return value.text
        case Described():
            return plain(value.value)
        case list():
            return [plain(element) for element in value]
        case Array():
            return [plain(element) for element in value.values]
        case Map():
            return {plain(key): plain(each) for key, each in value.pairs}
    return value
