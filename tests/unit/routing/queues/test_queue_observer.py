"""A queue's observer is informed of the end of each delivery once, before anything changes."""

import pytest

from broker.routing.entries.redelivery import Disposal
from tests.support.parties import RecordingWitness
from tests.support.routing import Routing


@pytest.mark.parametrize("disposal", list(Disposal), ids=[each.name for each in Disposal])
def test_a_disposal_is_told_once(disposal: Disposal) -> None:
    observer = RecordingWitness()
    routing = Routing(observer=observer)
    queue = routing.queue()
    routing.put(queue, b"a")
    routing.consumer(queue, 1).dispose(disposal, routing.batch)
    assert observer.heard == [(b"a", 0, disposal)]


def test_what_is_accepted_is_told() -> None:
    observer = RecordingWitness()
    routing = Routing(observer=observer)
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    routing.consumer(queue, 2, settles=True)
    assert observer.heard == [(b"a", 0, Disposal.REMOVE), (b"b", 0, Disposal.REMOVE)]


def test_every_delivery_of_one_message_is_told_with_its_count() -> None:
    observer = RecordingWitness()
    routing = Routing(observer=observer)
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue, 1)
    consumer.dispose(Disposal.FAIL, routing.batch)
    routing.give(queue, consumer, 1)
    consumer.dispose(Disposal.REMOVE, routing.batch)
    assert observer.heard == [(b"a", 0, Disposal.FAIL), (b"a", 1, Disposal.REMOVE)]


def test_a_subscription_has_the_same_observer() -> None:
    observer = RecordingWitness()
    routing = Routing(observer=observer)
    topic = routing.topic()
    consumer = routing.consumer(routing.queue())
    queue = routing.subscribe(topic, consumer)
    routing.give(queue, consumer, 1)
    routing.put(topic, b"a")
    routing.pump()
    consumer.dispose(Disposal.REMOVE, routing.batch)
    assert observer.heard == [(b"a", 0, Disposal.REMOVE)]
