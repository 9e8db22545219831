"""Rounds: queues that were woken are dispatched together, and nodes are looked at once."""

from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.node import Node
from broker.routing.queues.queue import Queue
from broker.routing.topics.dynamic import DeletePolicy
from tests.support.parties import RecordingConsumer, RecordingProducer
from tests.support.routing import Routing


class Forwarder(RecordingConsumer):
    """A consumer that puts each message that it gets into another queue."""

    def __init__(self, routing: Routing, target: Queue) -> None:
        super().__init__(credit=9, settles=routing.batch)
        self._routing = routing
        self._target = target

    def deliver(self, entry: QueueEntry) -> None:
        super().deliver(entry)
        self._routing.put(self._target, self.taken[-1])


def test_a_queue_that_is_woken_twice_is_dispatched_once() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.wake()
    queue.wake()
    rounds = routing.router.context.rounds
    assert rounds.woken == [queue]
    rounds.dispatch(routing.batch)
    assert rounds.woken == []
    assert not queue.is_woken


def test_a_queue_that_a_dispatch_wakes_is_dispatched_in_the_same_round() -> None:
    routing = Routing()
    first, second = routing.queue("a"), routing.queue("b")
    first.attach_consumer(forwarder := Forwarder(routing, second))
    first.consumer_ready(forwarder, drain=False)
    taker = routing.consumer(second, 9)
    routing.put(first, b"x")
    routing.router.context.rounds.dispatch(routing.batch)
    assert taker.taken == [b"x"]


def test_a_deleted_queue_still_ends_drains() -> None:
    routing = Routing()
    queue = routing.queue()
    browser = routing.browser(queue, 1)
    routing.router.delete(queue, routing.batch)
    routing.give(queue, browser, 1, drain=True)
    assert browser.drains == 1


def test_producers_go_on_once_consumers_have_caught_up() -> None:
    routing = Routing(pacing_mark=1)
    queue = routing.queue()
    consumer = routing.consumer(queue, 0)
    routing.put(queue, b"1", b"2", b"3")
    producer = RecordingProducer()
    assert not queue.request_credit(producer)
    rounds = routing.router.context.rounds
    rounds.resume_producers()
    assert (rounds.paced, producer.resumed) == ([queue], 0)
    routing.give(queue, consumer, 9)
    assert (rounds.paced, producer.resumed) == ([], 1)


def test_only_nodes_with_a_condition_for_their_end_are_looked_at() -> None:
    routing = Routing()
    lasting, ending = routing.queue("a"), routing.queue("b")
    ending.outlived = DeletePolicy.ON_NO_LINKS
    nodes: list[Node] = [lasting, ending]
    for node in nodes:
        node.note_use_ended()
    rounds = routing.router.context.rounds
    assert [int(node.uses_ended) for node in nodes] == [1, 1]
    assert rounds.take_left() == [ending]
    assert rounds.take_left() == []
