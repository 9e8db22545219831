"""Messages of deleted queues leave memory in portions, so that other clients have turns."""

from typing import Final

import pytest

from broker.message import AT_ONCE
from broker.routing.queues.deleted_entries import LET_GO_AT_ONCE
from broker.routing.queues.queue import Queue
from tests.support.routing import Routing, new_message

MANY: Final = int(LET_GO_AT_ONCE) * 2 + 100


def filled(routing: Routing, name: str, count: int, *, scheduled: bool = False) -> Queue:
    """Return a queue with `count` messages, which wait for a delivery time if `scheduled`."""
    queue = routing.queue(name)
    at_ms = routing.clock.wall_ms() + 1000 if scheduled else AT_ONCE
    for _ in range(count):
        queue.put(new_message(deliver_at_ms=at_ms), routing.batch)
    return queue


def test_a_short_queue_is_gone_at_once() -> None:
    routing = Routing()
    routing.router.delete(filled(routing, "q", 100), routing.batch)
    assert routing.router.memory.total() == 0


@pytest.mark.parametrize("scheduled", [False, True], ids=["waiting", "scheduled"])
def test_a_long_queue_leaves_memory_in_several_turns_of_the_event_loop(scheduled: bool) -> None:
    routing = Routing()
    memory = routing.router.memory
    queue = filled(routing, "q", MANY, scheduled=scheduled)
    each = memory.total() // MANY
    routing.router.delete(queue, routing.batch)
    left = [memory.total() // each]
    while left[-1]:
        routing.pump()
        assert memory.total() // each == left[-1], "the turn is not over"
        routing.advance(0)
        left.append(memory.total() // each)
    assert left == [LET_GO_AT_ONCE + 100, 100, 0]


def test_queues_that_are_deleted_together_share_a_turn() -> None:
    routing = Routing()
    memory = routing.router.memory
    queues = [filled(routing, f"q-{number}", 3000) for number in range(10)]
    each = memory.total() // 30_000
    for queue in queues:
        routing.router.delete(queue, routing.batch)
    assert memory.total() // each == 30_000 - LET_GO_AT_ONCE
    routing.advance(0)
    routing.advance(0)
    assert memory.total() == 0


def test_a_later_deletion_has_a_turn_of_its_own() -> None:
    routing = Routing()
    memory = routing.router.memory
    for _ in range(3):
        routing.router.delete(filled(routing, "q", int(LET_GO_AT_ONCE)), routing.batch)
        assert memory.total() == 0
        routing.advance(0)
