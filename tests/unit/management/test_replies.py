"""Reply nodes: where a response goes, and what happens if it cannot go there."""

from __future__ import annotations

import pytest

from broker.amqp.terminus import Target
from broker.links.service import REPLIES_MAX
from broker.management.replies import Replies
from broker.management.request import Envelope
from broker.management.response import Response, as_message
from broker.message import Message
from broker.routing.errors import NoSuchNode, QueueFull
from tests.support.broker import Broker
from tests.support.frames import Transfer, attach_receiver

HERE = Envelope(reply_to="here", correlation_id=None)
QUEUE = Envelope(reply_to="q", correlation_id=None)


def response(broker: Broker) -> Message:
    return as_message(Response(), HERE, broker.clock)


def test_a_response_goes_to_the_link_of_that_name() -> None:
    broker = Broker()
    client = broker.session()
    client.attach(attach_receiver("$management", handle=1, target=Target(address="here")))
    client.flow(handle=1, credit=1, delivery_count=0)
    replies = Replies(broker.container)
    node = replies.node_for(client.peer, HERE)
    assert node is not None
    replies.send(node, response(broker))
    broker.container.run_round()
    assert any(isinstance(each, Transfer) for each in client.bodies())


def test_or_to_a_queue_of_that_name() -> None:
    broker = Broker()
    broker.fill("q")
    client = broker.session()
    replies = Replies(broker.container)
    replies.send(replies.checked_node(client.peer, QUEUE, response(broker)), response(broker))
    broker.container.run_round()
    assert broker.queue("q").contents() == 2


def test_without_a_node_there_is_no_way() -> None:
    broker = Broker()
    client = broker.session()
    with pytest.raises(NoSuchNode, match="no node here"):
        Replies(broker.container).checked_node(client.peer, HERE, response(broker))


def test_a_full_node_takes_no_request() -> None:
    broker = Broker()
    client = broker.session()
    client.attach(attach_receiver("$management", handle=1, target=Target(address="here")))
    replies = Replies(broker.container)
    for _ in range(REPLIES_MAX):
        replies.send(replies.checked_node(client.peer, HERE, response(broker)), response(broker))
        broker.container.run_round()
    with pytest.raises(QueueFull):
        replies.checked_node(client.peer, HERE, response(broker))
