"""What a message brings for topics: who published it, and with which key."""

import pytest

from tests.support.broker import Broker
from tests.support.parties import RecordingConsumer


@pytest.mark.requirement("RCV-05")
def test_a_message_knows_whose_it_is() -> None:
    broker = Broker()
    client = broker.session("sender")
    client.attach_sender()
    client.transfer(0)
    consumer = RecordingConsumer()
    consumer.credit = 1
    broker.queue().attach_consumer(consumer)
    broker.queue().consumer_ready(consumer, drain=False)
    broker.container.run_round()
    assert [entry.message.publisher for entry in consumer.entries] == ["sender"]
