"""Receivers that ask for an existing node: the broker creates none for them."""

import pytest

from broker.amqp.terminus import COPY, MOVE, Source
from tests.support.broker import Broker
from tests.support.frames import attach_receiver

EXISTING = "jms-broker:existing-node"


@pytest.mark.requirement("DST-02")
@pytest.mark.parametrize("mode", [MOVE, COPY])
@pytest.mark.parametrize(
    ("address", "kinds"),
    [
        pytest.param("none", [], id="of no kind"),
        pytest.param("none", ["queue"], id="a queue"),
        pytest.param("none", ["topic"], id="a topic"),
        pytest.param("none/key", ["topic"], id="a topic with a key"),
    ],
)
def test_a_client_that_wants_an_existing_node_makes_none(
    mode: str, address: str, kinds: list[str]
) -> None:
    broker = Broker()
    client = broker.session()
    source = Source(address=address, distribution_mode=mode, capabilities=[*kinds, EXISTING])
    client.send(attach_receiver(source=source))
    client.expect_refusal("amqp:not-found")
    assert broker.router.names("queue") == broker.router.names("topic") == []
    assert broker.container.link_count() == 0


@pytest.mark.requirement("DST-02")
def test_a_client_that_wants_an_existing_node_gets_it() -> None:
    broker = Broker()
    broker.session("publisher").attach_sender("q")
    client = broker.session()
    source = Source(address="q", capabilities=[EXISTING])
    answer = client.attach(attach_receiver(source=source))
    assert answer.source is not None
    assert answer.source.capabilities == ["queue"]
    pattern = Source(address="news.*", capabilities=["topic", EXISTING])
    assert client.attach(attach_receiver(name="p", handle=1, source=pattern)).source is not None
