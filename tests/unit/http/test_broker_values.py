"""The values of `/metrics` after traffic of clients."""

from __future__ import annotations

import pytest

from broker.amqp.outcomes import Accepted, Rejected, Released
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker, Client
from tests.support.frames import Disposition, opening
from tests.support.metrics import page_of

pytestmark = pytest.mark.requirement("OPS-04")


def reader(broker: Broker, address: str = "q") -> Client:
    client = broker.session("reader")
    client.attach_receiver(address, credit=10)
    return client


async def test_messages_by_their_state_and_their_ends() -> None:
    broker = Broker(policy=AddressPolicy(dead_letter="DLQ"))
    broker.fill("q", 5)
    client = reader(broker)
    client.send(
        Disposition(first=0, state=Accepted()),
        Disposition(first=1, state=Rejected()),
        Disposition(first=2, state=Released()),
    )
    page = await page_of(broker)
    assert page.value("messages_received_total") == 5
    assert page.value("messages_accepted_total") == 5
    assert page.value("messages_delivered_total") == 6
    ends = {
        labels["outcome"]: page.value("messages_settled_total", **labels)
        for labels in page.labels("messages_settled_total")
    }
    assert ends == {"accepted": 1, "rejected": 1, "returned": 1, "failed": 0}
    assert page.value("messages_redelivered_total") == 1
    assert page.value("messages_dead_lettered_total", reason="rejected") == 1
    assert page.value("messages", state="unsettled") == 3
    assert page.value("messages", state="ready") == 1
    assert page.value("links", role="receiver") == 1
    assert page.value("sessions") == 1
    assert page.value("message_bytes_total", direction="in") == broker.stats.published_bytes


async def test_a_rejected_message_without_a_dead_letter_node_is_dropped() -> None:
    broker = Broker(policy=AddressPolicy(dead_letter=""))
    broker.fill("q")
    reader(broker).send(Disposition(first=0, state=Rejected()))
    page = await page_of(broker)
    assert page.value("messages_dropped_total", reason="rejected") == 1
    assert page.value("messages_settled_total", outcome="rejected") == 1


async def test_a_message_that_is_refused_has_its_condition() -> None:
    broker = Broker(policy=AddressPolicy(max_messages=1, full="reject"))
    client = broker.session()
    client.attach_sender()
    client.transfer(0)
    client.transfer(1)
    page = await page_of(broker)
    assert page.value("messages_received_total") == 2
    assert page.value("messages_accepted_total") == 1
    assert page.value("messages_unroutable_total", reason="amqp:resource-limit-exceeded") == 1


async def test_a_connection_that_is_refused_has_its_condition() -> None:
    broker = Broker()
    client = broker.dial()
    broker.container.closing = True
    client.send_bytes(opening("late"))
    broker.container.closing = False
    page = await page_of(broker)
    assert page.value("connections_refused_total", condition="amqp:connection:forced") == 1


async def test_waits_are_measured_for_one_delivery_in_64() -> None:
    broker = Broker()
    client = broker.session()
    client.attach_receiver(credit=64)
    broker.fill("q", 63)
    assert sum(broker.stats.measured.queue_wait_us.counts) == 0
    client.expect_deliveries(*(b"%d" % number for number in range(63)))
    client.send(Disposition(first=0, last=62, state=Accepted()))
    client.flow(handle=0, credit=0, delivery_count=63)
    broker.fill("q", 1)
    broker.advance(3)
    client.flow(handle=0, credit=1, delivery_count=63)
    page = await page_of(broker)
    assert page.value("queue_wait_seconds_count") == 1
    assert page.value("queue_wait_seconds_sum") == 0.003
    assert page.value("queue_wait_seconds_bucket", le="0.002") == 0
    assert page.value("queue_wait_seconds_bucket", le="0.004") == 1
