"""The broker as a whole: its numbers are sums over everything it holds."""

import pytest

from broker.management.later import Later
from broker.management.overview import Overview
from broker.management.request import Request
from tests.support.broker import Broker
from tests.support.frames import attach_receiver


@pytest.mark.requirement("OPS-01")
async def test_the_numbers_of_a_broker() -> None:
    broker = Broker(product={"product": "test", "version": "9", "build": "compiled"})
    overview = Overview(broker.container, broker.store)
    broker.fill("a", 3)
    broker.fill("b", 2)
    broker.session("s").attach(attach_receiver("news", kind="topic"))
    broker.fill("news", 4, kind="topic")
    broker.advance(500)
    found = overview.operations()["READ"](Request(operation="READ", type="broker"), None)  # type: ignore[arg-type]
    assert isinstance(found, Later)
    body = (await found.answer()).body
    assert isinstance(body, dict)
    expected = {"version": "9", "state": "running", "queues": 2, "topics": 1, "messages": 9}
    assert {name: body[name] for name in expected} == expected
    assert (body["uptime_ms"], body["counters"]["published"]) == (500, 9)
    assert body["alarms"] == []


async def test_a_broker_that_stops() -> None:
    broker = Broker()
    broker.container.closing = True
    found = Overview(broker.container, broker.store).query(
        Request(operation="QUERY", type="broker")
    )
    body = (await found.answer()).body
    assert isinstance(body, dict)
    assert "stopping" in body["results"][0]
