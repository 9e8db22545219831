"""Expired messages of a queue: removed at the moment of delivery, and by sweeps."""

import pytest

from broker.routing.context import SWEPT_IN_TURN
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from broker.routing.queues.sweep import SWEEP_EVERY_MS
from tests.support.clock import WALL_START_MS
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing, bodies, counts, new_message


def put_mortal(routing: Routing, queue: Queue, lifetime_ms: int, *, priority: int = 4) -> None:
    message = new_message(priority=priority, expires_at_ms=WALL_START_MS + lifetime_ms)
    queue.put(message, routing.batch)


@pytest.mark.requirement("PRD-04")
def test_an_expired_message_is_never_delivered() -> None:
    routing = Routing()
    queue = routing.queue()
    put_mortal(routing, queue, 10)
    put_mortal(routing, queue, 11)
    routing.put(queue, b"immortal")
    routing.clock.advance(10)
    consumer = routing.consumer(queue, 1)
    assert counts(queue) == (1, 1, 9)
    consumer.dispose(Disposal.RELEASE, routing.batch)
    routing.clock.advance(1)
    routing.give(queue, consumer, 5)
    assert bodies(consumer.entries) == [b"immortal"]
    assert routing.stats.expired == 2


@pytest.mark.requirement("PRD-04")
def test_an_expired_message_goes_though_nobody_asks_for_it() -> None:
    routing = Routing()
    queue = routing.queue()
    put_mortal(routing, queue, 10)
    routing.put(queue, b"immortal")
    put_mortal(routing, queue, 10 * SWEEP_EVERY_MS, priority=9)
    routing.advance(SWEEP_EVERY_MS - 1)
    assert queue.backlogs.waiting == 3
    routing.advance(1)
    assert counts(queue) == (2, 0, 9)
    routing.advance(10 * SWEEP_EVERY_MS)
    assert queue.backlogs.waiting == 1
    routing.advance(SWEEP_EVERY_MS)
    assert routing.router.timer_queue.next_deadline_ms() == -1, "nothing mortal is left"


@pytest.mark.attack("R7")
@pytest.mark.requirement("PRD-04")
def test_a_sweep_is_bounded_and_the_next_one_goes_on_where_it_ended() -> None:
    routing = Routing()
    queue = routing.queue()
    immortal = [b"x"] * int(SWEPT_IN_TURN)
    routing.put(queue, *immortal[5:], priority=3)
    put_mortal(routing, queue, 10, priority=3)
    routing.put(queue, *immortal[:6], priority=4)
    put_mortal(routing, queue, 10, priority=4)
    routing.put(queue, b"x", priority=9)
    before = queue.backlogs.waiting
    routing.advance(SWEEP_EVERY_MS)
    assert before - queue.backlogs.waiting == 1
    routing.advance(SWEEP_EVERY_MS)
    assert before - queue.backlogs.waiting == 2


@pytest.mark.attack("R7")
@pytest.mark.requirement("PRD-04")
def test_sweeps_of_many_queues_take_turns() -> None:
    routing = Routing()
    queues = [routing.queue(f"q{number}") for number in range(4)]
    for queue in queues:
        for _ in range(int(SWEPT_IN_TURN)):
            put_mortal(routing, queue, 10)
    left = []
    routing.advance(SWEEP_EVERY_MS)
    for _ in queues:
        left.append(sum(queue.backlogs.waiting > 0 for queue in queues))
        routing.advance(0)
    assert left == [3, 2, 1, 0]


def test_other_deadlines_bring_no_more_sweeps() -> None:
    routing = Routing()
    queue = routing.queue()
    put_mortal(routing, queue, 10**9)
    for _ in range(20):
        queue.due(routing.clock.now_ms())
        routing.pump()
    routing.advance(SWEEP_EVERY_MS)
    assert len(routing.router.timer_queue._heap) == 1


def test_producers_go_on_when_a_sweep_has_shortened_the_backlog() -> None:
    routing = Routing(pacing_mark=1)
    queue = routing.queue()
    routing.consumer(queue)
    put_mortal(routing, queue, 10)
    put_mortal(routing, queue, 10)
    producer = RecordingProducer()
    routing.advance(SWEEP_EVERY_MS - 1)
    assert not queue.request_credit(producer)
    routing.advance(1)
    assert producer.resumed == 1


def test_a_deleted_queue_has_no_more_deadlines() -> None:
    routing = Routing()
    queue = routing.queue()
    put_mortal(routing, queue, 10)
    routing.router.delete(queue, routing.batch)
    routing.advance(SWEEP_EVERY_MS)
    assert not queue.is_woken
    assert routing.router.timer_queue.next_deadline_ms() == -1
