"""Spans as a collector gets them over OTLP/HTTP, and why it does not get them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from broker.tracing.otlp import OtlpSink
from broker.tracing.spans import Span, SpanKind
from broker.tracing.trace_context import TraceContext
from tests.support.collector import Collector, attributes_of, running_collector
from tests.support.traces import SENDER, TRACE

pytestmark = pytest.mark.requirement("OPS-09")

OURS = "0123456789abcdef"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as running:
        yield running


def span(*, state: str = "", error: str = "") -> Span:
    return Span(
        name="orders deliver",
        kind=SpanKind.PRODUCER,
        parent=TraceContext(TRACE, SENDER, state),
        span_id=OURS,
        start_us=1_750_000_000_000_000,
        end_us=1_750_000_000_000_250,
        attributes={"messaging.system": "jms", "jms_broker.delivery_count": 2},
        events=(("delivered", 1_750_000_000_000_100),),
        error=error,
    )


def sent(collector: Collector, *spans: Span) -> str:
    """Send spans; return why they are lost."""
    sink = OtlpSink(collector.url, "shop-broker", "1.2")
    try:
        return sink.send(spans)
    finally:
        sink.close()


def test_a_span_as_the_collector_gets_it(collector: Collector) -> None:
    assert sent(collector, span(state="a=1")) == ""
    (got,) = collector.take(1)
    assert (got.trace_id.hex(), got.span_id.hex(), got.parent_span_id.hex()) == (
        *(TRACE, OURS, SENDER),
    )
    assert (got.name, got.kind, got.trace_state) == (
        "orders deliver",
        got.SPAN_KIND_PRODUCER,
        "a=1",
    )
    assert got.end_time_unix_nano - got.start_time_unix_nano == 250_000
    assert [(each.name, each.time_unix_nano) for each in got.events] == [
        ("delivered", 1_750_000_000_000_100_000)
    ]
    assert attributes_of(got) == {"messaging.system": "jms", "jms_broker.delivery_count": 2}
    assert got.status.code == got.status.STATUS_CODE_UNSET
    assert collector.resources[0]["service.name"] == "shop-broker"
    assert collector.paths == ["/v1/traces"]


def test_an_error_is_the_status(collector: Collector) -> None:
    assert sent(collector, span(error="expired")) == ""
    (got,) = collector.take(1)
    assert (got.status.code, got.status.message) == (got.status.STATUS_CODE_ERROR, "expired")


@pytest.mark.parametrize("state", ["no equals sign", ",,,", "=", "\N{SNOWMAN}=1"])
def test_a_state_that_is_none_is_left_out(collector: Collector, state: str) -> None:
    assert sent(collector, span(state=state)) == ""
    assert collector.take(1)[0].trace_state == ""


def test_a_collector_that_refuses(collector: Collector) -> None:
    collector.status = 403
    assert "403" in sent(collector, span())


def test_spans_that_the_sdk_cannot_encode_are_lost_with_the_reason(collector: Collector) -> None:
    wrong = replace(span(), span_id="no number")
    assert "ValueError" in sent(collector, wrong)


def test_the_sdk_prints_nothing_itself(collector: Collector) -> None:
    collector.status = 400
    program = (
        "from tests.unit.tracing.test_otlp import OtlpSink, span\n"
        f"sink = OtlpSink({collector.url!r}, 'shop', '1')\n"
        "print(sink.send([span(state='no state')]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "400" in done.stdout
    assert done.stderr == ""
