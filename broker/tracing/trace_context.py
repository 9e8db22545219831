"""The trace context of a message: the trace that it belongs to, and the span of its sender.

Senders write it into the application properties, and systems on the way into the message
annotations, as W3C's text or in its binary form (drafts "Trace Context: AMQP protocol" and
"Trace Context: binary protocol"). The annotations are nearer to the broker, so they win.
"""

from __future__ import annotations

import re
from typing import Final, final

from broker.amqp.errors import Fault
from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX
from broker.amqp.types import Symbol
from broker.message import Message
from broker.routing.selector.facts import Facts

PARENT: Final = b"traceparent"
STATE: Final = b"tracestate"

STATE_MAX: Final = 512
"""Maximum characters of a trace state (W3C Trace Context 3.3.1.5); a longer one is left out."""

SAMPLED: Final = 1
"""The flag of a trace that its sender records."""

PARENT_TEXT: Final = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    r"(?P<more>-.*)?"
)
VERSION: Final = "00"
NO_VERSION: Final = "ff"

BINARY_SIZE: Final = 29
TRACE_ID_FIELD: Final = 0
SPAN_ID_FIELD: Final = 1
FLAGS_FIELD: Final = 2


@final
class TraceContext:
    """A trace and a span in it; `trace_id` is 32 hexadecimal digits, `span_id` 16 of them."""

    def __init__(self, trace_id: str, span_id: str, state: str = "") -> None:
        self.trace_id: Final = trace_id
        self.span_id: Final = span_id
        self.state: Final = state


def sampled_context(message: Message) -> TraceContext | None:
    """Return the context of a message whose trace is sampled, None for any other message."""
    # most messages have none, and need not be parsed
    if message.opaque or message.encoded.find(PARENT, 0, SECTIONS_BEFORE_BODY_MAX) < 0:
        return None
    facts = Facts(message)
    try:
        parent = facts.annotation(PARENT)
        state = facts.annotation(STATE)
        if parent is None:
            parent = facts.application_value(PARENT)
            state = facts.application_value(STATE)
    except Fault:  # bytes that clients could not read either
        return None
    return _context(parent, state)


def _context(parent: object, state: object) -> TraceContext | None:
    found = _in_binary(parent) if _is_binary(parent) else _in_text(_text(parent))
    if found is None:
        return None
    trace_id, span_id, flags = found
    if not flags & SAMPLED or not int(trace_id, 16) or not int(span_id, 16):
        return None
    told = _text(state)
    return TraceContext(trace_id, span_id, told if len(told) <= STATE_MAX else "")


def _is_binary(parent: object) -> bool:
    return isinstance(parent, bytes) and len(parent) == BINARY_SIZE


def _in_text(text: str) -> tuple[str, str, int] | None:
    """Return trace, span and flags of W3C's text; None if it is none."""
    found = PARENT_TEXT.fullmatch(text)
    if found is None or found["version"] == NO_VERSION:
        return None
    if found["version"] == VERSION and found["more"]:
        return None
    return found["trace"], found["span"], int(found["flags"], 16)


def _in_binary(parent: object) -> tuple[str, str, int] | None:
    """Return trace, span and flags of the binary form; None if a field is not where it belongs."""
    assert isinstance(parent, bytes)
    version, fields = parent[0], (parent[1], parent[18], parent[27])
    if version != 0 or fields != (TRACE_ID_FIELD, SPAN_ID_FIELD, FLAGS_FIELD):
        return None
    return parent[2:18].hex(), parent[19:27].hex(), parent[28]


def _text(value: object) -> str:
    """Return a string, a symbol, or bytes that are ASCII, as text; empty for anything else."""
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, bytes):
        return value.decode("ascii") if value.isascii() else ""
    return value if isinstance(value, str) else ""
