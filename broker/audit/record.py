"""Audit records: their fields, the texts in them, and the line that a record becomes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

FIELDS: Final = (
    *("at", "seq", "actor", "roles", "via", "from", "action", "resource", "result", "rule"),
    *("before", "after", "request_id", "previous_hash"),
)
"""The fields of every record, in the order in which they are written."""

NO_HASH: Final = "0" * 64
"""The `previous_hash` of the first record."""

TEXT_MAX: Final = 256
"""Maximum characters of a text in a record; the rest is cut off."""

ENTRIES_MAX: Final = 32
"""Maximum entries of a list or map in a record."""

DEPTH_MAX: Final = 3
"""Maximum depth of lists and maps in a record; deeper ones are written as a text."""

BODY_MAX: Final = 8 * 1024
"""Maximum characters of the encoded fields of a record; longer ones lose `before` and `after`."""

DONE: Final = "done"
REFUSED: Final = "refused"
FAILED: Final = "failed"

AMQP: Final = "amqp"
WEBSOCKET: Final = "ws"
HTTP: Final = "http"
SYSTEM: Final = "system"


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """The cause of an event: a user with its roles, how it came in (`via`), and its address."""

    user: str = ""
    roles: tuple[str, ...] = ()
    via: str = SYSTEM
    address: str = ""


BROKER: Final = Actor()
"""The broker itself: what no client has asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEvent:
    """An event to be recorded; the fields are those of the record.

    `repeat_key` is set for events that clients can cause as often as they like: of those with an
    equal key, only the first in a minute is recorded at once, the others as a count.
    """

    action: str
    resource: str = ""
    actor: Actor = BROKER
    result: str = DONE
    rule: str | None = None
    before: Mapping[str, object] | None = None
    after: Mapping[str, object] | None = None
    request_id: str | None = None
    repeat_key: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ChainLink:
    """The number of a record and the hash of its line."""

    seq: int
    hash: str


BEGINNING: Final = ChainLink(0, NO_HASH)
"""The link before the first record."""


def hash_of(line: bytes) -> str:
    """Return the SHA-256 of a record's line, without its line feed, in hexadecimal."""
    return hashlib.sha256(line).hexdigest()


def time_text(at_ms: int) -> str:
    """Return a time as `2026-11-24T04:05:06.007Z`."""
    at = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03}Z"


def cut(text: str) -> str:
    """Return a text, cut to TEXT_MAX characters."""
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…"


def bounded(value: object, depth: int = DEPTH_MAX) -> object:
    """Return `value` as something small that JSON can express: clients choose much of it."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str):
        return cut(value)
    if depth > 0 and isinstance(value, Mapping):
        pairs = list(value.items())[:ENTRIES_MAX]
        found: dict[str, object] = {cut(str(key)): bounded(each, depth - 1) for key, each in pairs}
        return {**found, "…": len(value)} if len(value) > ENTRIES_MAX else found
    if depth > 0 and isinstance(value, list | tuple):
        listed = [bounded(each, depth - 1) for each in value[:ENTRIES_MAX]]
        return [*listed, f"… {len(value)} in all"] if len(value) > ENTRIES_MAX else listed
    return cut(str(value))


def body_of(event: AuditEvent) -> str:
    """Return the fields of a record from `actor` to `request_id`, as JSON without the braces."""
    fields: dict[str, object] = {
        "actor": cut(event.actor.user),
        "roles": bounded(sorted(event.actor.roles)),
        "via": event.actor.via,
        "from": cut(event.actor.address),
        "action": event.action,
        "resource": cut(event.resource),
        "result": event.result,
        "rule": None if event.rule is None else cut(event.rule),
        "before": bounded(event.before),
        "after": bounded(event.after),
        "request_id": None if event.request_id is None else cut(event.request_id),
    }
    body = _encoded(fields)
    if len(body) > BODY_MAX:
        fields["before"] = None
        fields["after"] = {"left_out": "the values were too large"}
        body = _encoded(fields)
    return body[1:-1]


def line_of(body: str, *, at_ms: int, previous: ChainLink) -> bytes:
    """Return the line of the record that follows `previous`, without a line feed. It is ASCII."""
    head = f'"at":"{time_text(at_ms)}","seq":{previous.seq + 1}'
    return f'{{{head},{body},"previous_hash":"{previous.hash}"}}'.encode("ascii")


def _encoded(fields: Mapping[str, object]) -> str:
    # escapes control characters, and everything that is not ASCII: no text can forge a line
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=True)


def sprayed(user: str, failures: int) -> AuditEvent:
    """Return the event of so many failed logins of a user, from whatever sources, in an hour."""
    return AuditEvent(
        action="auth.spray", resource=f"user:{user}", result=FAILED, after={"failures": failures}
    )
