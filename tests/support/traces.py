"""Messages that belong to a trace, and a place that keeps the spans of the broker."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from broker.amqp.descriptors import APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS
from broker.amqp.encode import put_binary, put_descriptor, put_value
from broker.amqp.types import Map, Symbol
from broker.tracing.spans import Span

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


def encoded_message(
    *,
    annotations: dict[str, object] | None = None,
    properties: dict[str, object] | None = None,
    body: bytes = b"x",
) -> bytes:
    """Return an encoded message with these annotations and application properties."""
    out = BytesWriter()
    if annotations is not None:
        put_descriptor(out, MESSAGE_ANNOTATIONS)
        put_value(out, Map([(Symbol(name), value) for name, value in annotations.items()]))
    if properties is not None:
        put_descriptor(out, APPLICATION_PROPERTIES)
        put_value(out, Map(list(properties.items())))
    put_descriptor(out, DATA)
    put_binary(out, body)
    return out.getvalue()


def traced_bytes(parent: str = PARENT) -> bytes:
    """Return an encoded message as an instrumented application sends it."""
    return encoded_message(properties={"traceparent": parent})
