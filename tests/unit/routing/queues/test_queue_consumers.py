"""A queue attends to producers and successors that wait, and only while there are any."""

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing


def test_nobody_who_waits_costs_nothing() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=9))
    queue = routing.queue()
    routing.put(queue, b"a")
    routing.consumer(queue, 1).dispose(Disposal.REMOVE, routing.batch)
    assert not queue.state.attends
    assert not queue.is_woken


def test_a_producer_and_a_successor_may_wait_for_the_same() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1))
    queue = routing.queue()
    routing.put(queue, b"a")
    holder = routing.consumer(queue, 1)
    sole = routing.consumer(queue, 1, exclusive=True)
    producer = RecordingProducer()
    queue.producers.append(producer)
    assert queue.credit_pool is not None
    queue.credit_pool.ask(producer)
    routing.pump()
    assert queue.state.attends
    holder.dispose(Disposal.REMOVE, routing.batch)
    routing.pump()
    assert producer.credit == 1
    assert queue.consumers.exclusivity is not None
    assert queue.consumers.exclusivity.sole is sole
    assert not queue.state.attends
