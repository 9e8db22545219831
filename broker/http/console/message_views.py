"""A message in the forms in which people read it: its JMS headers, its body as text, JSON, hex."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.http.api.json_values import plain
from broker.http.console.values import dump, shown, time_text
from broker.jms.ids import message_id_text

INDENT: Final = 2
"""Blanks by which JSON is indented on each level."""

INDENTED_MAX: Final = 8 * 1024
"""Maximum characters of JSON that is indented: more would take the event loop more than 5 ms."""

CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Characters that text does not have."""

HEADERS: Final = (
    ("JMSCorrelationID", "correlation_id"),
    ("JMSType", "subject"),
    ("JMSDestination", "to"),
    ("JMSReplyTo", "reply_to"),
    ("JMSXGroupID", "group_id"),
    ("JMSXGroupSeq", "group_sequence"),
    ("JMSXUserID", "user_id"),
)
"""JMS headers that are fields of the properties section."""


@dataclass(frozen=True, kw_only=True)
class BodyForm:
    """A body in one form; the first one of a message is open on its page."""

    title: str
    text: str


def body_forms(body: object) -> list[BodyForm]:
    """Return a body in all its forms, the most readable first; none if it is missing."""
    if isinstance(body, bytes):
        text = _decoded(body)
        forms = [] if text is None else _of_text(text)
        return [*forms, BodyForm(title="Hexadecimal", text=dump(body))] if body else []
    if isinstance(body, str):
        return (
            [*_of_text(body), BodyForm(title="Hexadecimal", text=dump(body.encode()))]
            if body
            else []
        )
    if body is None:
        return []
    return [BodyForm(title="Value", text=shown(plain(body)))]


def _decoded(data: bytes) -> str | None:
    """Return bytes as text, None if they are none: not UTF-8, or with control characters."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if CONTROLS.search(text) else text


def _of_text(text: str) -> list[BodyForm]:
    plain_text = BodyForm(title="Text", text=text)
    if len(text) > INDENTED_MAX or not text.lstrip().startswith(("{", "[")):
        return [plain_text]
    try:
        indented = json.dumps(json.loads(text), ensure_ascii=False, indent=INDENT)
    except (ValueError, RecursionError):  # it only looks like JSON
        return [plain_text]
    # an escape of half a character, which no response can hold
    shown_json = indented.encode(errors="backslashreplace").decode()
    return [BodyForm(title="JSON, indented", text=shown_json), plain_text]


def jms_headers(message: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the JMS headers of a message as management shows it; those that are set."""
    properties = message["properties"]
    fields = properties if isinstance(properties, Mapping) else {}
    created, expires = plain(fields.get("creation_time")), message["expires_at"]
    count = message["delivery_count"]
    found: list[tuple[str, object]] = [
        ("JMSMessageID", message_id_text(fields.get("message_id"))),
        *((name, plain(fields.get(field))) for name, field in HEADERS),
        ("JMSDeliveryMode", "PERSISTENT" if message["durable"] else "NON_PERSISTENT"),
        ("JMSPriority", message["priority"]),
        ("JMSTimestamp", time_text(created) if isinstance(created, int) else None),
        ("JMSExpiration", time_text(expires) if isinstance(expires, int) else None),
        ("JMSRedelivered", isinstance(count, int) and count > 0),
    ]
    return [(name, shown(value)) for name, value in found if value not in (None, "")]
