"""Messages of a queue as responses: their headers and properties as HTTP headers, or as JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote
from uuid import UUID

from mypy_extensions import i64

from broker.amqp.types import Char, Float, Integer
from broker.clock import Clock
from broker.http.jms_content import (
    JSON,
    NAMES,
    JmsContent,
    decoded_content,
    plain_value,
    undecoded_content,
)
from broker.http.jms_fields import KNOWN, PROPERTY, TYPE_MARK
from broker.http.limits import (
    JMS_DECODED_BYTES_MAX,
    JMS_FIELDS_BYTES_MAX,
    JMS_PROPERTIES_MAX,
    JMS_SHOWN_BYTES_MAX,
)
from broker.jms.bodies import MessageKind
from broker.jms.content_type import OCTET_STREAM
from broker.jms.destinations import Destination
from broker.jms.errors import MappingError
from broker.jms.mapping import Decoder
from broker.jms.message import PERSISTENT, JmsMessage
from broker.large_body import LargeBody
from broker.routing.entries.entry import QueueEntry

MESSAGE_TYPE: Final = "JMS-Message-Type"
OMITTED: Final = "JMS-Properties-Omitted"

BYTES: Final = NAMES[MessageKind.BYTES]
TEXT: Final = NAMES[MessageKind.TEXT]

SAFE: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
"""The characters of values that are not percent-encoded."""


@dataclass(frozen=True, kw_only=True)
class ReceivedMessage:
    """A message as a consumer of its queue gets it now. `jms` is None if it is no message of JMS:
    then the content is its encoded form.
    """

    jms: JmsMessage | None
    content: JmsContent


def received(entry: QueueEntry, queue: Destination, clock: Clock) -> ReceivedMessage:
    """Return the message of `entry`; an opaque or malformed one is passed on as it is."""
    message = entry.message
    header = message.header(entry.delivery_count, clock, acquired_before=entry.history is not None)
    data = header + message.encoded
    try:
        if message.opaque:
            raise MappingError("a message of another format")
        return decoded(data, queue, now_ms=int(clock.wall_ms()), large=message.large)
    except MappingError:
        content = JmsContent(
            media_type=OCTET_STREAM, kind="Message", data=data, large=message.large
        )
        return ReceivedMessage(jms=None, content=content)


def decoded(
    data: bytes, queue: Destination, *, now_ms: int, large: LargeBody | None = None
) -> ReceivedMessage:
    """Return the message in `data`, which lacks the body if that is `large`.

    Raise MappingError if it is no message of JMS.
    """
    is_small = large is None and len(data) <= JMS_DECODED_BYTES_MAX
    decoder = Decoder(consumer=queue, body=is_small)
    jms = decoder.decode(data, 0, i64(len(data)), now_ms=now_ms)
    if is_small:
        return ReceivedMessage(jms=jms, content=decoded_content(jms))
    content = undecoded_content(jms, data, decoder.sections, large=large)
    return ReceivedMessage(jms=jms, content=content)


def fields_of(message: JmsMessage) -> dict[str, object]:
    """Return the JMS headers that are set."""
    fields: dict[str, object] = {
        "JMSMessageID": message.message_id,
        "JMSCorrelationID": message.correlation_id,
        "JMSType": message.type,
        "JMSDestination": destination_text(message.destination),
        "JMSReplyTo": destination_text(message.reply_to),
        "JMSDeliveryMode": (
            "PERSISTENT" if message.delivery_mode == PERSISTENT else "NON_PERSISTENT"
        ),
        "JMSPriority": message.priority,
        "JMSTimestamp": message.timestamp or None,
        "JMSExpiration": message.expiration,
        "JMSRedelivered": message.redelivered,
        "JMSXDeliveryCount": message.delivery_count,
        "JMSXGroupID": message.group_id,
        "JMSXGroupSeq": message.group_sequence,
        "JMSXUserID": message.user_id,
    }
    return {name: value for name, value in fields.items() if value is not None}


def destination_text(destination: Destination | None) -> str | None:
    """Return a destination as text, such as `queue:orders`."""
    return None if destination is None else f"{destination.type.value}:{destination.address}"


def headers_of(message: JmsMessage) -> list[tuple[str, str]]:
    """Return the HTTP headers of a message, percent-encoded.

    JMS headers and properties beyond the limits are left out, and `JMS-Properties-Omitted` counts
    them: no client reads a header of 64 KiB, and the message would come to it again for ever.
    """
    headers: list[tuple[str, str]] = []
    size = omitted = 0
    for name, value in fields_of(message).items():
        text = encoded(_text(value))
        if size + len(name) + len(text) > JMS_FIELDS_BYTES_MAX:
            omitted += 1
        else:
            size += len(name) + len(text)
            headers.append((name, text))
    for number, (name, text) in enumerate(_properties(message), 1):
        size += len(name) + len(text)
        if number > JMS_PROPERTIES_MAX or size > JMS_FIELDS_BYTES_MAX:
            omitted += 1
        else:
            headers.append((name, text))
    if omitted:
        headers.append((OMITTED, str(omitted)))
    return headers


def _properties(message: JmsMessage) -> Iterator[tuple[str, str]]:
    for name, value in message.properties.items():
        known = KNOWN.get(name.lower())
        if known == name:
            yield name, encoded(_text(value))
            continue
        text, type_ = _text(value), _type(value)
        # a text may itself end like a type
        mark = f"{TYPE_MARK}{type_}" if type_ != "string" or TYPE_MARK in text else ""
        yield PROPERTY, encoded(f"{name}={text}{mark}")


def _type(value: object) -> str:
    """Return the name of a property's type; those that JMS lacks are named by AMQP's."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "long"
        case float():
            return "double"
        case str():
            return "string"
        case None:
            return "null"
        case bytes():
            return "base64"
        case Integer() | Float():
            return type(value).__name__.lower()
        case UUID():
            return "uuid"
        case _:
            return "other"


def _text(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return ""
        case bytes():
            return b64encode(value).decode()
        case Char():
            return chr(value.value)
        case Integer() | Float():
            return str(value.value)
        case _:
            return str(value)


def encoded(text: str) -> str:
    """Return `text` as the value of a header: CR, LF, `%` and non-ASCII are percent-encoded."""
    return quote(text, safe=SAFE, errors="replace")


def shown(
    data: bytes, queue: Destination, *, now_ms: int, large: LargeBody | None = None
) -> dict[str, object]:
    """Return a message as JSON; the body is None if it is larger than JMS_SHOWN_BYTES_MAX."""
    try:
        message = decoded(data, queue, now_ms=now_ms, large=large)
    except MappingError as error:
        return {"problem": str(error), "properties": {}, "body": None}
    jms, content = message.jms, message.content
    assert jms is not None
    return {
        **fields_of(jms),
        "properties": {name: plain_value(value) for name, value in jms.properties.items()},
        "messageType": content.kind,
        "contentType": content.media_type,
        "body": _shown_body(content),
    }


def _shown_body(content: JmsContent) -> object:
    """Return a body as JSON: text, the values of a map or alike, else bytes as base64."""
    if content.large is not None or len(content.data) > JMS_SHOWN_BYTES_MAX:
        return None
    if content.media_type == JSON and content.kind not in (BYTES, TEXT):
        return json.loads(content.data)
    if content.kind == TEXT:
        return content.data.decode(errors="replace")
    return b64encode(content.data).decode()
