"""A queue: order, turns, limits, and its deletion."""

import pytest

from broker.routing.addresses.policy import REJECT, AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import QueueFull
from broker.routing.queues.queue import Queue
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, counts, new_message

# -- order and turns


@pytest.mark.requirement("RCV-03")
def test_priority_comes_before_age() -> None:
    routing = Routing()
    queue = routing.queue()
    for number, priority in enumerate((4, 9, 0, 4, 9)):
        routing.put(queue, b"%d" % number, priority=priority)
    assert routing.consumer(queue, 9).taken == [b"1", b"4", b"0", b"3", b"2"]
    routing.put(queue, b"5", priority=0)
    routing.put(queue, b"6", priority=7)
    routing.pump()
    assert routing.consumer(queue, 9).taken == []


def test_consumers_take_turns_by_their_credit() -> None:
    routing = Routing()
    queue = routing.queue()
    one, other = routing.consumer(queue, 2), routing.consumer(queue, 9)
    routing.put(queue, b"a", b"b", b"c", b"d", b"e")
    routing.pump()
    assert (one.taken, other.taken) == ([b"a", b"c"], [b"b", b"d", b"e"])
    assert counts(queue) == (0, 5, 5)


def test_nothing_goes_to_a_consumer_that_is_held_up() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue)
    consumer.held = True
    routing.give(queue, consumer, 5)
    routing.put(queue, b"a")
    routing.pump()
    assert counts(queue) == (1, 0, 1)
    consumer.held = False
    routing.give(queue, consumer, 5)
    assert consumer.taken == [b"a"]


def test_a_consumer_that_settles_at_once_leaves_nothing_acquired() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    assert routing.consumer(queue, 5, settles=True).taken == [b"a", b"b"]
    assert counts(queue) == (0, 0, 0)
    assert routing.stats.acknowledged == 2


def test_a_consumer_that_leaves_gets_nothing_more() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer, other = routing.consumer(queue, 2), routing.consumer(queue)
    routing.put(queue, b"a")
    routing.pump()
    consumer.dispose(Disposal.RELEASE, routing.batch)
    queue.consumer_ready(consumer, drain=True)
    queue.detach_consumer(consumer, queue, routing.batch)
    queue.detach_consumer(consumer, queue, routing.batch)
    routing.pump()
    assert (consumer.taken, consumer.drains, queue.backlogs.waiting) == ([b"a"], 0, 1)
    assert queue.backlog() == 1
    queue.detach_consumer(other, queue, routing.batch)
    assert queue.backlog() == 0, "nobody waits for it"


# -- limits


@pytest.mark.parametrize("held", [False, True], ids=["all waiting", "one acquired"])
def test_a_queue_takes_no_more_messages_than_its_limit(held: bool) -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2))
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    consumer = routing.consumer(queue, 1 if held else 0)
    with pytest.raises(QueueFull):
        routing.put(queue, b"c")
    assert (queue.published, queue.state.bytes) == (2, 2)
    if held:
        consumer.dispose(Disposal.REMOVE, routing.batch)
        routing.put(queue, b"c")


def test_a_queue_takes_no_more_bytes_than_its_limit() -> None:
    routing = Routing(policy=AddressPolicy(max_bytes=5, full=REJECT))
    queue = routing.queue()
    routing.put(queue, b"abc")
    with pytest.raises(QueueFull):
        routing.put(queue, b"def")
    routing.put(queue, b"de")
    assert queue.state.bytes == 5


# -- deletion


@pytest.mark.requirement("TMP-03")
@pytest.mark.parametrize("disposal", list(Disposal))
def test_an_entry_of_a_deleted_queue_ends_whatever_its_outcome(disposal: Disposal) -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=1))
    queue = routing.queue()
    queue.put(new_message(b"a", durable=True), routing.batch)
    routing.put(queue, b"bc")
    consumer = routing.consumer(queue, 1)
    routing.router.delete(queue, routing.batch)
    assert consumer.lost_its_node
    assert counts(queue) == (0, 1, 1)
    later = routing.queue()
    later.put(new_message(b"later", durable=True), routing.batch)
    consumer.dispose(disposal, routing.batch)
    routing.pump()
    assert counts(queue) == (0, 0, 0)
    assert counts(later) == (1, 0, 5)
    assert [each.encoded for each in routing.stored()] == [b"later"]
    stats = routing.stats
    assert (stats.requeued, stats.dead_lettered, stats.dropped) == (0, 0, 0)
    assert stats.acknowledged == (1 if disposal is Disposal.REMOVE else 0)


class LeavingConsumer(RecordingConsumer):
    """A consumer that, like a link, releases all entries and detaches when its node is deleted."""

    def __init__(self, routing: Routing, queue: Queue) -> None:
        super().__init__()
        self._routing = routing
        self._queue = queue

    def node_deleted(self) -> None:
        super().node_deleted()
        while self.entries:
            self.dispose(Disposal.RELEASE, self._routing.batch)
        self._queue.detach_consumer(self, self._queue, self._routing.batch)


@pytest.mark.requirement("TMP-03")
def test_consumers_may_hand_everything_back_while_the_queue_is_being_deleted() -> None:
    routing = Routing()
    queue = routing.queue()
    consumers = [LeavingConsumer(routing, queue) for _ in range(2)]
    for consumer in consumers:
        queue.attach_consumer(consumer)
        routing.give(queue, consumer, 1)
    routing.put(queue, b"a", b"b", b"c")
    routing.pump()
    routing.router.delete(queue, routing.batch)
    assert all(consumer.lost_its_node for consumer in consumers)
    assert counts(queue) == (0, 0, 0)
