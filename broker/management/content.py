"""What is in a message, as far as an operator wants to see it and it can be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.amqp.decode import descriptor_at, skip, take_value
from broker.amqp.descriptors import AMQP_VALUE, DATA
from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.errors import Fault
from broker.amqp.limits import FIELD_VALUES_MAX
from broker.amqp.sections import Sections, split
from broker.amqp.types import Integer
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

BODY_BYTES_MAX: Final = 64 * 1024
"""So much of a body is shown; a value that is longer and no text or bytes is not."""

TEXT: Final = "text"
BYTES: Final = "bytes"
VALUE: Final = "value"
SEQUENCE: Final = "sequence"
EMPTY: Final = "empty"
OPAQUE: Final = "opaque"
"""The payload of a message of another format that is not made of sections."""


def properties_of(message: Message) -> dict[str, object]:
    """The fields that the properties section has, by their names."""
    if message.opaque:
        return {}
    data = message.encoded
    sections = split(data, 0, len(data))
    fields = _value(data, sections.properties)
    if not isinstance(fields, list):
        return {}
    named = zip(PROPERTIES, fields, strict=False)
    return {name: value for name, value in named if value is not None}


def content_of(message: Message) -> Mapping[str, object]:
    """Annotations, properties and body. What cannot be read or is too much is null."""
    data = b"" if message.opaque else message.encoded
    sections = split(data, 0, len(data))
    large = message.large
    if message.opaque:
        kind, body, truncated = _payload(message)
    elif large is None:
        kind, body, truncated = _body(data, sections)
    else:
        kind, body = _beginning(large.stored.beginning)
        truncated = True
    return {
        "properties": shown(properties_of(message)),
        "application_properties": shown(_value(data, sections.application_properties)),
        "annotations": shown(_value(data, sections.message_annotations)),
        "body_kind": kind,
        "body": shown(body),
        "body_truncated": truncated,
    }


def shown(value: object) -> object:
    """`value` where it can be written into a response: not one that is nested too deeply."""
    try:
        put_value(BytesWriter(), [[[value]]])
    except (Fault, ValueError, TypeError):
        return None
    return value


def _value(data: bytes, at: int) -> object:
    """What is encoded at `at`, None for -1 and for what nobody can read."""
    if at < 0:
        return None
    try:
        return take_value(data, at, len(data), FIELD_VALUES_MAX)[0]
    except Fault:
        return None


def _body(data: bytes, sections: Sections) -> tuple[str, object, bool]:
    """The kind of the body, as much of it as is shown, and whether that is not all."""
    at = sections.body
    if at < 0:
        return EMPTY, None, False
    end = sections.footer if sections.footer >= 0 else sections.end
    code, value_at = descriptor_at(data, at, end)
    if code == DATA:
        found, more = _data(data, at, end)
        return BYTES, found[:BODY_BYTES_MAX], more
    if code == AMQP_VALUE:
        return _amqp_value(data, value_at, end)
    large = end - at > BODY_BYTES_MAX
    return SEQUENCE, None if large else _sequences(data, at, end), large


def _payload(message: Message) -> tuple[str, object, bool]:
    """As `_body`, of an opaque message: of a large one its beginning."""
    found = message.encoded
    if message.large is not None:
        found += message.large.stored.beginning
    return OPAQUE, found[:BODY_BYTES_MAX], message.size > min(len(found), BODY_BYTES_MAX)


def _beginning(data: bytes) -> tuple[str, object]:
    """The kind of a body of which only the beginning is at hand, and as much of it as is shown."""
    code, at = descriptor_at(data, 0, len(data))
    form = data[at]
    if code not in (DATA, AMQP_VALUE):
        return SEQUENCE, None
    if form not in (0xA0, 0xA1, 0xB0, 0xB1):
        return VALUE, None
    first = at + (2 if form in (0xA0, 0xA1) else 5)
    found = data[first : first + data[at + 1]] if form in (0xA0, 0xA1) else data[first:]
    if form in (0xA0, 0xB0):
        return BYTES, found
    return TEXT, found.decode(errors="ignore")


def _amqp_value(data: bytes, at: int, end: int) -> tuple[str, object, bool]:
    if data[at] in (0xA1, 0xB1):
        first = at + (2 if data[at] == 0xA1 else 5)
        text = data[first : min(end, first + BODY_BYTES_MAX)]
        # a character may have been cut in two
        return TEXT, text.decode(errors="ignore"), end - first > BODY_BYTES_MAX
    if data[at] in (0xA0, 0xB0):
        first = at + (2 if data[at] == 0xA0 else 5)
        return BYTES, data[first : min(end, first + BODY_BYTES_MAX)], end - first > BODY_BYTES_MAX
    if end - at > BODY_BYTES_MAX:
        return VALUE, None, True
    return VALUE, _value(data, at), False


def _data(data: bytes, at: int, end: int) -> tuple[bytes, bool]:
    """The content of data sections, one byte too much where there is more than is shown."""
    pieces: list[bytes] = []
    size = 0
    while at < end and size <= BODY_BYTES_MAX:
        _, value_at = descriptor_at(data, at, end)
        at = skip(data, value_at, end)
        first = value_at + (2 if data[value_at] == 0xA0 else 5)
        piece = data[first : min(at, first + BODY_BYTES_MAX + 1)]
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces), size > BODY_BYTES_MAX or at < end


def _sequences(data: bytes, at: int, end: int) -> object:
    elements: list[object] = []
    while at < end:
        _, value_at = descriptor_at(data, at, end)
        found = _value(data, value_at)
        if isinstance(found, list):
            elements += found
        at = skip(data, value_at, end)
    return elements


def text_of(value: object, at_most: int) -> str:
    """An id in a list: its text, cut where it is long."""
    if value is None:
        return ""
    if isinstance(value, Integer):
        value = value.value
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= at_most else text[: at_most - 1] + "\N{HORIZONTAL ELLIPSIS}"
