"""Spans over OTLP/HTTP, by the SDK of OpenTelemetry (extra `otel`)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags, TraceState

from broker.tracing.spans import SpanKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.tracing.spans import Span

KINDS: Final = {
    SpanKind.CONSUMER: trace.SpanKind.CONSUMER,
    SpanKind.PRODUCER: trace.SpanKind.PRODUCER,
}
PACKAGE_LOG: Final = "opentelemetry"


@final
class OtlpSink:
    """Sends spans to the collector at a URL. The SDK's variables OTEL_EXPORTER_OTLP_… apply."""

    def __init__(self, endpoint: str, service_name: str, version: str) -> None:
        self._reasons: Final = LastMessage()
        self._exporter: Final = OTLPSpanExporter(endpoint=endpoint)
        # OTEL_RESOURCE_ATTRIBUTES may add attributes
        self._resource: Final = Resource.create(
            {SERVICE_NAME: service_name, SERVICE_VERSION: version}
        )
        self._scope: Final = InstrumentationScope(service_name, version)
        log = logging.getLogger(PACKAGE_LOG)
        log.addHandler(self._reasons)
        log.propagate = False  # the broker's own log has the reason, less often

    def send(self, spans: Sequence[Span]) -> str:
        """Send spans; return why they are lost, empty if the collector has them."""
        self._reasons.text = ""
        try:
            result = self._exporter.export([self._readable(each) for each in spans])
        except Exception as error:  # noqa: BLE001 - an error of the SDK must not end the thread
            return f"{type(error).__name__}: {error}"
        if result is SpanExportResult.SUCCESS:
            return ""
        return self._reasons.text or "the collector did not take them"

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _readable(self, span: Span) -> ReadableSpan:
        parent = span.parent
        trace_id = int(parent.trace_id, 16)
        state = TraceState.from_header([parent.state]) if parent.state else TraceState()
        flags = TraceFlags(TraceFlags.SAMPLED)
        return ReadableSpan(
            name=span.name,
            kind=KINDS[span.kind],
            context=SpanContext(
                trace_id,
                int(span.span_id, 16),
                is_remote=False,
                trace_flags=flags,
                trace_state=state,
            ),
            parent=SpanContext(
                trace_id, int(parent.span_id, 16), is_remote=True, trace_flags=flags
            ),
            resource=self._resource,
            attributes=dict(span.attributes),
            events=[Event(name, timestamp=at_us * 1000) for name, at_us in span.events],
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=span.start_us * 1000,
            end_time=span.end_us * 1000,
            instrumentation_scope=self._scope,
        )


class LastMessage(logging.Handler):
    """Keeps the last message of the SDK's log: it is the only place that says why it failed."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()
