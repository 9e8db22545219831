"""Delayed messages, as clients see them."""

from collections.abc import Callable

import pytest

from broker.amqp.outcomes import Accepted
from broker.amqp.performatives import Open
from broker.amqp.types import Timestamp, UInt
from tests.support.broker import Broker
from tests.support.clock import WALL_START_MS
from tests.support.frames import Disposition, Header, header_of, message, opening


@pytest.mark.requirement("DLY-01", "DLY-03")
@pytest.mark.parametrize("address", [None, "q"], ids=["to the relay", "to a queue"])
@pytest.mark.parametrize("kind", [int, Timestamp], ids=["a long", "a timestamp"])
def test_a_delayed_message_is_accepted_now_and_delivered_when_it_is_due(
    address: str | None, kind: Callable[[int], object]
) -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender(address)
    annotations = {"x-opt-delivery-time": kind(WALL_START_MS + 1000)}
    payload = message(b"later", to="q", annotations=annotations)
    client.transfer(0, payload=payload)
    assert isinstance(client.expect_last(Disposition).state, Accepted)
    reader = broker.session("reader")
    reader.attach_receiver("q", credit=5)
    broker.advance(999)
    reader.expect_nothing()
    broker.advance(1)
    (sent,) = reader.expect_deliveries(b"later")
    assert sent.payload.endswith(payload), "the annotation is passed on"


@pytest.mark.requirement("DLY-05")
def test_the_ttl_of_a_delayed_message_runs_from_its_arrival() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_sender()
    for number, delay in enumerate((1000, 3000)):
        annotations: dict[str, object] = {"x-opt-delivery-time": WALL_START_MS + delay}
        payload = message(b"%d" % number, ttl=2000, annotations=annotations)
        client.transfer(number, payload=payload)
    reader = broker.session("reader")
    reader.attach_receiver("q", credit=5)
    for _ in range(4):
        broker.advance(1000)
    (sent,) = reader.expect_deliveries(b"0")
    assert header_of(sent.payload)[2] == UInt(1000), "what is left of it"
    assert broker.stats.expired == 1


@pytest.mark.requirement("DLY-02")
def test_a_link_offers_delays_where_they_are_desired() -> None:
    client = Broker().session()
    desired = ["DELAYED_DELIVERY"]
    assert client.attach_sender(desired_capabilities=desired).offered_capabilities == desired
    assert client.attach_sender(name="other", handle=1).offered_capabilities == []


@pytest.mark.requirement("CON-07", "DLY-02")
def test_a_connection_offers_delays_asked_or_not() -> None:
    client = Broker().dial()
    client.send_bytes(opening())
    client.expect(Header)
    assert "DELAYED_DELIVERY" in client.expect(Open).offered_capabilities
