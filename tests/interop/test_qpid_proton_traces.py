"""Traces of messages that an instrumented client sends: what a collector gets of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from proton import Delivery, Message, symbol

from tests.interop.broker_process import BrokerProcess
from tests.interop.proton_peer import Peer
from tests.interop.test_qpid_proton_outcomes import take_all
from tests.support.collector import Collector, attributes_of, running_collector
from tests.support.traces import PARENT, SENDER, TRACE, UNSAMPLED

pytestmark = pytest.mark.requirement("OPS-09")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as running:
        yield running


@pytest.fixture(params=["memory", "sqlite"])
def traced(
    request: pytest.FixtureRequest, tmp_path: Path, collector: Collector
) -> Iterator[BrokerProcess]:
    """Yield a broker whose spans the collector gets."""
    store = "memory" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    settings = f'store = "{store}"\n[tracing]\nendpoint = "{collector.url}"\n'
    process = BrokerProcess(tmp_path, settings=settings)
    yield process
    assert process.stop() == 0


def traced_message(body: str, parent: str = PARENT) -> Message:
    return Message(
        body=body, durable=True, id="ID:1", properties={"traceparent": parent, "tracestate": "a=1"}
    )


def test_the_way_of_a_message(traced: BrokerProcess, collector: Collector) -> None:
    with Peer(traced.url, container_id="office") as peer:
        peer.fill("orders", traced_message("a"), traced_message("b", UNSAMPLED), Message(body="c"))
        for delivery, _ in take_all(peer, peer.receiver("orders"), 3):
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
        peer.flush()
        enqueue, deliver = collector.take(2)
    assert [each.name for each in (enqueue, deliver)] == ["orders enqueue", "orders deliver"]
    for each in (enqueue, deliver):
        assert (each.trace_id.hex(), each.parent_span_id.hex()) == (TRACE, SENDER)
        assert each.trace_state == "a=1"
        assert each.end_time_unix_nano >= each.start_time_unix_nano
        told = attributes_of(each)
        assert (told["messaging.client.id"], told["messaging.message.id"]) == ("office", "ID:1")
    assert attributes_of(deliver)["jms_broker.outcome"] == "accepted"


def test_the_bare_message_is_not_touched(traced: BrokerProcess, collector: Collector) -> None:
    sent = traced_message("a")
    sent.annotations = {symbol("traceparent"): PARENT.encode()}
    with Peer(traced.url) as peer:
        peer.fill("orders", sent)
        ((_, received),) = take_all(peer, peer.receiver("orders"), 1)
        collector.take(1)
    assert received.properties == sent.properties
    assert received.annotations == sent.annotations


def test_spans_that_wait_are_sent_when_the_broker_stops(
    tmp_path: Path, collector: Collector
) -> None:
    settings = f'[tracing]\nendpoint = "{collector.url}"\nservice_name = "shop-broker"\n'
    process = BrokerProcess(tmp_path, settings=settings)
    with Peer(process.url) as peer:
        peer.fill("orders", traced_message("a"))
        assert process.stop() == 0
    assert collector.take(1)[0].name == "orders enqueue"
    assert collector.resources[0]["service.name"] == "shop-broker"


def test_a_broker_without_its_collector_serves_and_says_so(
    tmp_path: Path, collector: Collector
) -> None:
    collector.status = 403
    process = BrokerProcess(tmp_path, settings=f'[tracing]\nendpoint = "{collector.url}"\n')
    with Peer(process.url) as peer:
        peer.fill("orders", *[traced_message("a") for _ in range(600)])
        for _ in range(10_000):
            if "TRC-001" in process.log.read_text():
                break
            peer.round_trip()
    assert process.stop() == 0
    assert "spans are lost: " in process.log.read_text()
