"""Spans: parts of a trace that the broker has recorded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import getrandbits
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.tracing.trace_context import TraceContext


class SpanKind(Enum):
    """The kind of a span, as OpenTelemetry names it: it took a message, or sent one."""

    CONSUMER = "consumer"
    PRODUCER = "producer"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A part of a trace. `parent` is the trace, and the span in it that this one belongs to.

    Times are µs since 1970. `events` have a name and a time. `error` is the reason if the broker
    could not do what it was to do, else empty.
    """

    name: str
    kind: SpanKind
    parent: TraceContext
    span_id: str
    start_us: int
    end_us: int
    attributes: Mapping[str, str | int | bool]
    events: tuple[tuple[str, int], ...] = ()
    error: str = ""


class SpanReceiver(Protocol):
    """The place for spans that have ended."""

    def put(self, span: Span) -> None:
        """Take a span."""

    def drop(self, count: int) -> None:
        """Count spans that could not be made."""


def new_span_id() -> str:
    """Return 16 hexadecimal digits, never all 0, which would be no id."""
    return f"{getrandbits(64) or 1:016x}"
