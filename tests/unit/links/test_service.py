"""Links to `$management`, with any service behind it."""

import pytest

from broker.amqp.performatives import Attach, Detach, Flow
from broker.amqp.terminus import COPY, Source, Target
from broker.links.peer import Peer
from broker.links.service import REQUEST_CREDIT, Service
from broker.message import Message
from broker.routing.errors import NoSuchNode
from tests.support.broker import Broker
from tests.support.frames import (
    Disposition,
    Transfer,
    attach_receiver,
    attach_sender,
    body_of,
    message,
)

MANAGEMENT = "$management"


class Echo(Service):
    """A service that returns each request to the link whose target is called `here`."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.asked: list[tuple[str, bytes]] = []

    def answer(self, peer: Peer, request: Message) -> None:
        self.asked.append((peer.container_id, body_of(request.encoded)))
        queue = peer.replies.get("here")
        if queue is None:
            raise NoSuchNode("nobody is here")
        queue.put(request, self.broker.journal.batch)


@pytest.fixture
def broker() -> Broker:
    broker = Broker()
    broker.container.service = Echo(broker)
    return broker


def test_a_request_comes_with_who_sent_it(broker: Broker) -> None:
    client = broker.session("alice")
    client.attach(attach_sender(MANAGEMENT))
    assert client.expect(Flow).link_credit == REQUEST_CREDIT
    client.attach(attach_receiver(MANAGEMENT, handle=1, target=Target(address="here")))
    client.flow(handle=1, credit=5, delivery_count=0)
    client.transfer(0, b"what is there?")
    service = broker.container.service
    assert isinstance(service, Echo)
    assert service.asked == [("alice", b"what is there?")]
    bodies = [body_of(each.payload) for each in client.bodies() if isinstance(each, Transfer)]
    assert bodies == [b"what is there?"]


def test_a_relay_leads_there_too(broker: Broker) -> None:
    client = broker.session("alice")
    client.attach_sender(None)
    client.send(Transfer(payload=message(b"a", to=MANAGEMENT)))
    client.expect_last(Disposition)
    service = broker.container.service
    assert isinstance(service, Echo)
    assert service.asked == [("alice", b"a")]


@pytest.mark.parametrize("kind", ["queue", "topic", ""])
def test_no_queue_or_topic_has_the_address(broker: Broker, kind: str) -> None:
    client = broker.session()
    client.attach_sender(MANAGEMENT, kind=kind)
    client.attach_receiver(MANAGEMENT, handle=1, kind=kind)
    assert not broker.router.queues
    assert not broker.router.topics


def test_without_a_service_there_is_nothing(broker: Broker) -> None:
    broker.container.service = None
    client = broker.session()
    client.send(attach_sender(MANAGEMENT))
    client.expect_refusal("amqp:not-found")


def test_a_stolen_link_leads_on(broker: Broker) -> None:
    client = broker.session()
    client.attach_sender(MANAGEMENT)
    client.begin(1)
    client.send(attach_sender(MANAGEMENT), channel=1)
    assert client.expect(Detach).closed
    client.expect(Attach)


def test_the_latest_link_of_a_name_gets_the_responses(broker: Broker) -> None:
    client = broker.session()
    client.attach_sender(MANAGEMENT)
    for handle in (1, 2):
        target = Target(address="here")
        client.attach(attach_receiver(MANAGEMENT, name=f"{handle}", handle=handle, target=target))
        client.flow(handle=handle, credit=5, delivery_count=0)
    client.transfer(0)
    (reply,) = [body for body in client.bodies() if isinstance(body, Transfer)]
    assert reply.handle == 2
    client.send(Detach(handle=1, closed=True))
    client.expect_last(Detach)
    assert list(client.peer.replies) == ["here"]
    client.send(Detach(handle=2, closed=True))
    assert not client.peer.replies


def test_nobody_browses_responses(broker: Broker) -> None:
    client = broker.session()
    source = Source(address=MANAGEMENT, distribution_mode=COPY)
    answer = client.attach(attach_receiver(source=source))
    assert answer.source is not None
    assert answer.source.distribution_mode != COPY
