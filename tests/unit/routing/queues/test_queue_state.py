"""The state that the parts of a queue share: what is counted, and what has expired."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from tests.support.clock import WALL_START_MS
from tests.support.routing import Routing, new_message

ENDS = {
    "accepted": (Disposal.REMOVE, 0, 0, 0),
    "released": (Disposal.RELEASE, 1, 1, 3),
}


@pytest.mark.parametrize(("disposal", "contents", "waiting", "size"), ENDS.values(), ids=ENDS)
def test_an_entry_is_counted_until_it_is_gone(
    disposal: Disposal, contents: int, waiting: int, size: int
) -> None:
    routing = Routing()
    queue = routing.queue()
    state = queue.state
    routing.put(queue, b"abc")
    assert (state.contents(), state.backlogs.waiting, state.acquired, state.bytes) == (1, 1, 0, 3)
    consumer = routing.consumer(queue, 1)
    assert (state.contents(), state.backlogs.waiting, state.acquired, state.bytes) == (1, 0, 1, 3)
    consumer.dispose(disposal, routing.batch)
    assert (state.contents(), state.backlogs.waiting) == (contents, waiting)
    assert (state.acquired, state.bytes) == (0, size)


def test_parts_that_a_queue_does_not_need_are_not_made() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    routing.consumer(queue, 1, settles=True)
    assert (queue.state.schedule, queue.state.sweep, queue.persistence.ack_latency) == (None,) * 3


@pytest.mark.parametrize(("late_ms", "is_gone"), [(-1, False), (0, True)])
def test_a_waiting_entry_is_removed_once_it_has_expired(late_ms: int, is_gone: bool) -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"a", expires_at_ms=WALL_START_MS + 10), routing.batch)
    routing.clock.advance(10 + late_ms)
    backlog = queue.backlog_of(4)
    entry = backlog.first()
    assert entry is not None
    assert queue.state.expire(entry, backlog, routing.batch) is is_gone
    assert (queue.contents(), routing.stats.expired) == ((0, 1) if is_gone else (1, 0))


def test_a_message_that_cannot_be_moved_has_its_cause_and_is_listed() -> None:
    routing = Routing(nodes_max=1, policy=AddressPolicy(dead_letter="dlq"))
    queue = routing.queue()
    routing.put(queue, b"a")
    entry = routing.consumer(queue, 1).dispose(Disposal.DEAD_LETTER, routing.batch)
    assert queue.state.held_for_move() == [entry]
    assert queue.state.cause_of(entry) is not None
    assert queue.state.scheduled() == []
