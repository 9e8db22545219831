"""Sums over queues, and the age of their oldest messages."""

import pytest

from broker.routing.queues.message_totals import NO_MESSAGE, MessageTotals, oldest_arrival_ms
from tests.support.broker import Broker
from tests.support.clock import WALL_START_MS
from tests.support.routing import Routing, new_message

pytestmark = pytest.mark.requirement("OPS-04")


def test_the_messages_of_all_queues_by_their_state() -> None:
    routing = Routing()
    first, second = routing.queue("a"), routing.queue("b")
    routing.put(first, b"1", b"2", b"3")
    routing.put(second, b"4")
    later = WALL_START_MS + 1000
    second.put(new_message(b"later", deliver_at_ms=later), routing.batch)
    routing.consumer(first, 2)
    routing.pump()
    totals = MessageTotals()
    totals.add([first, routing.temporary_queue()])
    totals.add([second])
    assert (totals.ready, totals.unsettled, totals.held, totals.temporary) == (2, 2, 1, 1)


def test_the_oldest_message_of_any_priority_counts() -> None:
    broker = Broker()
    broker.fill("q")
    queue = broker.queue()
    began_ms = int(broker.clock.wall_ms())
    assert oldest_arrival_ms(queue) == began_ms
    broker.advance(50)
    broker.fill("q", 3)
    assert oldest_arrival_ms(queue) == began_ms
    client = broker.session()
    client.attach_receiver(credit=1)
    assert oldest_arrival_ms(queue) == began_ms + 50, "an unsettled one does not wait"


def test_a_queue_without_ready_messages_has_no_oldest() -> None:
    broker = Broker()
    broker.fill("q")
    client = broker.session()
    client.attach_receiver(credit=1)
    assert oldest_arrival_ms(broker.queue()) == NO_MESSAGE


def test_a_message_whose_arrival_is_unknown_is_left_out() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"restored by an older version")
    assert oldest_arrival_ms(queue) == NO_MESSAGE
