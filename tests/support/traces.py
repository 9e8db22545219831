"""Messages that belong to a trace, and a place that keeps the spans of the broker."""

from __future__ import annotations

from typing import Final

from broker.tracing.spans import Span
from tests.support.frames import message

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
SENDER: Final = "00f067aa0ba902b7"
PARENT: Final = f"00-{TRACE}-{SENDER}-01"
UNSAMPLED: Final = f"00-{TRACE}-{SENDER}-00"


class RecordedSpans:
    """Keeps the spans, and counts those that were dropped."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.dropped = 0

    def put(self, span: Span) -> None:
        self.spans.append(span)

    def drop(self, count: int) -> None:
        self.dropped += count

    def names(self) -> list[str]:
        """Return the names of the spans so far, and forget the spans."""
        found = [each.name for each in self.spans]
        self.spans.clear()
        return found


def traced_bytes(parent: str = PARENT) -> bytes:
    """Return an encoded message as an instrumented application sends it."""
    return message(properties={"traceparent": parent})
