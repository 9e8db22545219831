"""A collector of OpenTelemetry on loopback, which keeps the spans that it was sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SOON_S: Final = 15.0


class Collector(ThreadingHTTPServer):
    """Takes requests of OTLP over HTTP; answers all of them with `status`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.paths: list[str] = []
        self.resources: list[dict[str, str]] = []
        self._spans: Final[SimpleQueue[Span]] = SimpleQueue()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/traces"

    def take(self, count: int) -> list[Span]:
        """Wait for `count` spans; return them in the order of their start."""
        found = [self._spans.get(timeout=SOON_S) for _ in range(count)]
        return sorted(found, key=lambda each: each.start_time_unix_nano)

    def receive(self, path: str, body: bytes) -> None:
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        self.paths.append(path)
        for resource in request.resource_spans:
            self.resources.append(
                {each.key: each.value.string_value for each in resource.resource.attributes}
            )
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self._spans.put(span)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.status == 200:
            self.server.receive(self.path, body)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is given
        """Print nothing."""


def attributes_of(span: Span) -> dict[str, str | int | bool]:
    """Return the attributes of a span as it was sent."""
    found: dict[str, str | int | bool] = {}
    for each in span.attributes:
        kind = each.value.WhichOneof("value")
        found[each.key] = getattr(each.value, str(kind))
    return found


@contextmanager
def running_collector() -> Iterator[Collector]:
    """Run a collector during the block."""
    collector = Collector()
    thread = threading.Thread(target=collector.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.shutdown()
        collector.server_close()
        thread.join()
