"""The content of a message as an operator sees it: properties, annotations, body."""

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
"""Maximum bytes of a body that are shown; a longer value other than text or bytes is null."""

TEXT: Final = "text"
BYTES: Final = "bytes"
VALUE: Final = "value"
SEQUENCE: Final = "sequence"
EMPTY: Final = "empty"
OPAQUE: Final = "opaque"
"""The payload of a message whose format is not AMQP's own, and that has no sections."""


def properties_of(message: Message) -> dict[str, object]:
    """Return the fields that are set in the properties section, by name."""
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
    """Return annotations, properties and body. A part that is unreadable or too large is null."""
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
    """Return `value`, or None if a response cannot hold it, as if it is nested too deeply."""
    try:
        # in a response the value is nested within others, which count towards the depth
        put_value(BytesWriter(), [[[value]]])
    except (Fault, ValueError, TypeError):
        return None
    return value


def _value(data: bytes, at: int) -> object:
    """Return the value encoded at `at`; None if `at` is -1 or the value is malformed."""
    if at < 0:
        return None
    try:
        return take_value(data, at, len(data), FIELD_VALUES_MAX)[0]
    except Fault:
        return None


def _body(data: bytes, sections: Sections) -> tuple[str, object, bool]:
    """Return the kind of the body, the part of it that is shown, and whether that is cut."""
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
    """Like `_body`, for an opaque message. Of a large one only the beginning is shown."""
    found = message.encoded
    if message.large is not None:
        found += message.large.stored.beginning
    return OPAQUE, found[:BODY_BYTES_MAX], message.size > min(len(found), BODY_BYTES_MAX)


def _beginning(data: bytes) -> tuple[str, object]:
    """Return the kind of a large body, and the part shown; `data` is only its beginning."""
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
        # the limit may split a character, which is then left out
        return TEXT, text.decode(errors="ignore"), end - first > BODY_BYTES_MAX
    if data[at] in (0xA0, 0xB0):
        first = at + (2 if data[at] == 0xA0 else 5)
        return BYTES, data[first : min(end, first + BODY_BYTES_MAX)], end - first > BODY_BYTES_MAX
    if end - at > BODY_BYTES_MAX:
        return VALUE, None, True
    return VALUE, _value(data, at), False


def _data(data: bytes, at: int, end: int) -> tuple[bytes, bool]:
    """Return the content of data sections, at least what is shown, and whether there is more."""
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
    """Return an id as text for a list, cut to `at_most` characters; empty for None."""
    if value is None:
        return ""
    if isinstance(value, Integer):
        value = value.value
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= at_most else text[: at_most - 1] + "\N{HORIZONTAL ELLIPSIS}"
