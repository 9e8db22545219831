"""Messages as text: one line of JSON with all fields, or the body alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.cli.printing import json_of, replaced

if TYPE_CHECKING:
    from proton import Message

SYMBOLS = ("content_type", "content_encoding")
PLAIN_FIELDS = (
    "id",
    "address",
    "subject",
    "reply_to",
    "correlation_id",
    "group_id",
    "reply_to_group_id",
)


def as_json(message: Message) -> str:
    """Return the message as one line of JSON, without fields that are not set."""
    facts: dict[str, object] = {
        "durable": message.durable,
        "priority": message.priority,
        "delivery_count": message.delivery_count,
    }
    # In AMQP's own units: milliseconds. Proton counts seconds.
    times = {
        "ttl_ms": message.ttl,
        "creation_time_ms": message.creation_time,
        "expiry_time_ms": message.expiry_time,
    }
    facts |= {name: round(value * 1000) for name, value in times.items() if value}
    facts |= {name: value for name in PLAIN_FIELDS if (value := getattr(message, name)) is not None}
    # of a symbol that is not set, Proton makes the symbol "None"
    facts |= {name: value for name in SYMBOLS if (value := getattr(message, name)) != "None"}
    if message.user_id:
        facts["user_id"] = message.user_id
    if message.group_id is not None:
        facts["group_sequence"] = message.group_sequence
    facts["annotations"] = message.annotations
    facts["properties"] = message.properties
    written = {name: value for name, value in facts.items() if value not in (None, {})}
    return json_of(written | {"body": message.body})


def body_as_text(message: Message) -> bytes:
    """Return the body for a program behind a pipe: text and bytes as they are, the rest as JSON."""
    body = message.body
    if body is None:
        return b""
    if isinstance(body, bytes | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode()
    return json_of(body).encode()


def body_on_terminal(message: Message) -> bytes:
    """Return the body for a terminal: line feeds and tabs stay, other controls are replaced."""
    text = body_as_text(message).decode(errors="replace")
    return replaced(text.replace("\r\n", "\n"), kept="\n\t").encode()
