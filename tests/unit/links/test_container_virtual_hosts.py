"""Virtual hosts, which the broker does not have: a client that asks for one is refused."""

import pytest

from tests.support.broker import Broker
from tests.unit.links.test_container import refused

pytestmark = pytest.mark.requirement("SEC-11")


@pytest.mark.parametrize("hostname", ["vhost:sales", "vhost:", "vhost://", "vhost:" + 300 * "x"])
def test_a_client_that_asks_for_a_virtual_host_is_refused(hostname: str) -> None:
    close = refused(Broker(), hostname=hostname)
    assert close.error is not None
    assert close.error.condition == "amqp:not-found"
    assert close.error.description is not None
    assert close.error.description.endswith(": the broker has none")
    assert len(close.error.description) < 100


@pytest.mark.parametrize("hostname", [None, "", "vhost:/", "mq.example", "vhost", "my-vhost:a"])
def test_any_other_hostname_is_accepted_and_chooses_nothing(hostname: str | None) -> None:
    broker = Broker()
    clients = [broker.session("first", hostname=hostname), broker.session("second")]
    clients[0].attach_sender("q")
    clients[1].attach_sender("q")
    assert list(broker.router.queues) == ["q"]
