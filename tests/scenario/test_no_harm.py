"""The healthy client beside attacks: it finds a broker that harms it (controls)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.amqp.errors import CONNECTION_FORCED, ConnectionFault
from broker.routing.addresses.policy import AddressPolicy
from tests.support.broker import Broker
from tests.support.healthy import QUEUE, HealthyClient, NoHarm


def close_all(broker: Broker, _: HealthyClient) -> None:
    broker.container.close_all(ConnectionFault(CONNECTION_FORCED, "harmed"))


def delete_its_queue(broker: Broker, _: HealthyClient) -> None:
    broker.router.delete(broker.queue(QUEUE), broker.journal.batch)


def put_before(broker: Broker, _: HealthyClient) -> None:
    """Let the client get a message that it has not sent."""
    broker.fill(QUEUE, 1)


def report_a_bug(broker: Broker, healthy: HealthyClient) -> None:
    broker.watcher.failed(healthy.client.peer, RuntimeError())


def serve(broker: Broker, harm: Callable[[Broker, HealthyClient], None]) -> None:
    """Serve a healthy client beside `harm`."""
    with NoHarm().beside(broker) as healthy:
        harm(broker, healthy)
        healthy.exchange()


@pytest.mark.parametrize("harm", [close_all, delete_its_queue, put_before, report_a_bug])
def test_harm_is_found(harm: Callable[[Broker, HealthyClient], None]) -> None:
    with pytest.raises(AssertionError):
        serve(Broker(), harm)


def test_a_client_that_was_idle_during_the_attack_proves_nothing() -> None:
    with pytest.raises(AssertionError, match="not served during"), NoHarm().beside(Broker()):
        pass


def test_a_message_that_is_refused_is_harm() -> None:
    """A full queue is one of the ways in which an attack could harm."""
    with pytest.raises(AssertionError):
        serve(Broker(policy=AddressPolicy(max_messages=1, full="reject")), put_before)


def test_a_broker_that_serves_is_harmless() -> None:
    with NoHarm().beside(Broker()) as healthy:
        healthy.exchange()
    assert healthy.exchanges == 3
