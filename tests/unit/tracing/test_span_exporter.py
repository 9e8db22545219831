"""The thread that sends spans: in which portions, and what becomes of those that are lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from broker.stats import SpanTotals
from broker.tracing.span_exporter import SENT_AT_ONCE, WAITING_MAX, SpanExporter
from broker.tracing.spans import Span, SpanKind, new_span_id
from broker.tracing.trace_context import TraceContext
from tests.support.traces import SENDER, TRACE

pytestmark = pytest.mark.requirement("OPS-09")

SOON_S = 15.0


class GatedSink:
    """A collector that takes spans once it is `open`, or refuses them for a reason."""

    def __init__(self, reason: str = "", *, is_open: bool = True) -> None:
        self.sent: list[int] = []
        self.is_closed = False
        self.open = threading.Event()
        self.asked = threading.Event()
        self._reason = reason
        if is_open:
            self.open.set()

    def send(self, spans: Sequence[Span]) -> str:
        self.asked.set()
        assert self.open.wait(SOON_S)
        self.sent.append(len(spans))
        return self._reason

    def close(self) -> None:
        self.is_closed = True


class Exporting:
    """An exporter, its collector, its counters and the lines for the log."""

    def __init__(self, sink: GatedSink) -> None:
        self.sink = sink
        self.totals = SpanTotals()
        self.told: list[str] = []
        self.was_told = asyncio.Event()
        self.exporter = SpanExporter(sink, self.totals, self._tell)

    def _tell(self, text: str) -> None:
        self.told.append(text)
        self.was_told.set()

    def put(self, count: int) -> None:
        for _ in range(count):
            self.exporter.put(span())

    async def stop(self) -> None:
        await asyncio.to_thread(self.exporter.stop)
        await asyncio.sleep(0)  # what the thread asked of the loop

    def counts(self) -> tuple[int, int, int]:
        """Return the numbers of exported, dropped and failed spans."""
        totals = self.totals
        return int(totals.exported), int(totals.dropped), int(totals.failed)


def span() -> Span:
    return Span(
        name="q deliver",
        kind=SpanKind.PRODUCER,
        parent=TraceContext(TRACE, SENDER),
        span_id=new_span_id(),
        start_us=1,
        end_us=2,
        attributes={},
    )


async def test_what_waits_is_sent_before_the_broker_stops() -> None:
    exporting = Exporting(GatedSink())
    exporting.exporter.start()
    exporting.put(3)
    await exporting.stop()
    assert sum(exporting.sink.sent) == 3
    assert exporting.counts() == (3, 0, 0)
    assert exporting.sink.is_closed


async def test_many_spans_are_sent_in_portions_and_beyond_a_limit_dropped() -> None:
    exporting = Exporting(GatedSink(is_open=False))
    exporting.exporter.start()
    exporting.put(SENT_AT_ONCE)
    assert await asyncio.to_thread(exporting.sink.asked.wait, SOON_S)  # the thread has them
    exporting.put(WAITING_MAX + 7)
    assert exporting.counts() == (0, 7, 0)
    exporting.sink.open.set()
    await exporting.stop()
    assert exporting.sink.sent == [SENT_AT_ONCE] * (1 + WAITING_MAX // SENT_AT_ONCE)
    assert exporting.counts() == (SENT_AT_ONCE + WAITING_MAX, 7, 0)


async def test_spans_that_the_collector_refuses_are_counted_and_told_once() -> None:
    exporting = Exporting(GatedSink("connection refused"))
    exporting.exporter.start()
    exporting.put(SENT_AT_ONCE)
    assert await asyncio.to_thread(exporting.sink.asked.wait, SOON_S)
    await asyncio.wait_for(exporting.was_told.wait(), SOON_S)
    exporting.put(SENT_AT_ONCE)
    await exporting.stop()
    assert exporting.counts() == (0, 0, 2 * SENT_AT_ONCE)
    assert exporting.told == [f"{SENT_AT_ONCE} spans are lost: connection refused"]


async def test_a_broker_that_did_not_start_stops() -> None:
    exporting = Exporting(GatedSink())
    await exporting.stop()
    assert exporting.sink.is_closed
