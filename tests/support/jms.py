"""Messages for the JMS mapping: composed of sections, split into sections, and compared."""

from __future__ import annotations

from typing import Final

from broker.amqp.decode import take_value
from broker.amqp.encode import BytesWriter, put_value
from broker.amqp.types import Described, Map, Symbol, ULong
from broker.jms import JmsMessage

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78

HEADER_FIELDS: Final = ("durable", "priority", "ttl", "first-acquirer", "delivery-count")

PROPERTIES_FIELDS: Final = (
    *("message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type"),
    *("content-encoding", "absolute-expiry-time", "creation-time", "group-id"),
    *("group-sequence", "reply-to-group-id"),
)

ATTRIBUTES: Final = (
    *("body", "message_id", "correlation_id", "timestamp", "destination", "reply_to", "type"),
    *("delivery_mode", "expiration", "priority", "delivery_time", "delivery_count", "redelivered"),
    *("user_id", "group_id", "group_sequence", "first_acquirer", "reply_to_group_id", "subject"),
    *("time_to_live", "content_type", "content_encoding", "annotations", "properties"),
)
"""All attributes of a JmsMessage, except those that only its sender or its reader knows."""


def encoded(
    *bodies: tuple[int, object],
    header: dict[str, object] | None = None,
    annotations: dict[str, object] | None = None,
    properties: dict[str, object] | None = None,
    application: dict[str, object] | None = None,
) -> bytes:
    """Return a message with these body sections and fields, named as in the specification."""
    sections: list[tuple[int, object]] = []
    if header is not None:
        sections.append((HEADER, [header.get(name) for name in HEADER_FIELDS]))
    if annotations is not None:
        pairs: list[tuple[object, object]] = [(Symbol(k), v) for k, v in annotations.items()]
        sections.append((ANNOTATIONS, Map(pairs)))
    if properties is not None:
        assert set(properties) <= set(PROPERTIES_FIELDS)
        sections.append((PROPERTIES, [properties.get(name) for name in PROPERTIES_FIELDS]))
    if application is not None:
        sections.append((APPLICATION, application))
    return joined(*sections, *bodies)


def joined(*sections: tuple[int, object]) -> bytes:
    """Return encoded sections, joined in the given order."""
    out = BytesWriter()
    for code, value in sections:
        put_value(out, Described(ULong(code), value))
    return out.getvalue()


def sections_of(data: bytes) -> list[tuple[int, object]]:
    """Return code and value of every section."""
    found: list[tuple[int, object]] = []
    at = 0
    while at < len(data):
        section, behind = take_value(data, at, len(data))
        assert isinstance(section, Described)
        assert isinstance(section.descriptor, ULong)
        found.append((section.descriptor.value, section.value))
        at = int(behind)
    return found


def _fields(data: bytes, code: int, names: tuple[str, ...]) -> dict[str, object]:
    held = dict(sections_of(data)).get(code, [])
    assert isinstance(held, list)
    return {name: value for name, value in zip(names, held, strict=False) if value is not None}


def header_of(data: bytes) -> dict[str, object]:
    """Return the fields of the header section that are not null."""
    return _fields(data, HEADER, HEADER_FIELDS)


def properties_of(data: bytes) -> dict[str, object]:
    """Return the fields of the properties section that are not null."""
    return _fields(data, PROPERTIES, PROPERTIES_FIELDS)


def annotations_of(data: bytes) -> dict[str, object]:
    """Return the message annotations, whose keys are all symbols."""
    held = dict(sections_of(data)).get(ANNOTATIONS, Map([]))
    assert isinstance(held, Map)
    return {str(key): value for key, value in held.pairs}


def application_of(data: bytes) -> dict[str, object]:
    """Return the application properties."""
    held = dict(sections_of(data)).get(APPLICATION, Map([]))
    assert isinstance(held, Map)
    return {str(key): value for key, value in held.pairs}


def bodies_of(data: bytes) -> list[tuple[int, object]]:
    """Return code and value of the body sections."""
    return [section for section in sections_of(data) if DATA <= section[0] <= VALUE]


def told(message: JmsMessage) -> dict[str, str]:
    """Return all attributes of a message as text that distinguishes types, and NaN from null."""
    return {name: repr(getattr(message, name)) for name in ATTRIBUTES}
