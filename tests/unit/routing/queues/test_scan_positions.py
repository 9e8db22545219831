"""Searches past entries that may not go to a consumer: none is missed, none examined twice."""

import pytest

from broker.routing.entries.redelivery import Disposal
from tests.support.routing import Routing, bodies, counts


@pytest.mark.requirement("RCV-02")
def test_what_another_hands_back_is_met_by_one_who_has_refused_all_around_it() -> None:
    routing = Routing()
    queue = routing.queue()
    holds, refuses, later = (routing.consumer(queue) for _ in range(3))
    routing.put(queue, b"a", b"b", b"c")
    routing.give(queue, refuses, 1)
    routing.give(queue, holds, 1)
    routing.give(queue, refuses, 1)
    refuses.dispose(Disposal.ELSEWHERE, routing.batch)
    refuses.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, refuses, 9)
    routing.give(queue, later, 1)
    assert (refuses.taken, holds.taken, later.taken) == ([b"a", b"c"], [b"b"], [b"a"])
    later.dispose(Disposal.RELEASE, routing.batch)
    routing.pump()
    assert refuses.entries == [], "a was refused before"
    holds.dispose(Disposal.RELEASE, routing.batch)
    routing.pump()
    assert bodies(refuses.entries) == [b"b"]


def test_a_consumer_that_refuses_everything_meets_every_entry_once() -> None:
    """Thousands: if each search examined all refused entries, this would take minutes."""
    routing = Routing()
    queue = routing.queue()
    count = 3000
    routing.put(queue, *(b"%d" % number for number in range(count)))
    consumer = routing.consumer(queue)
    for _ in range(count):
        routing.give(queue, consumer, 1)
        consumer.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, consumer, 1)
    assert len(set(consumer.taken)) == len(consumer.taken) == count
    assert counts(queue)[:2] == (count, 0)


def test_what_came_back_is_taken_from_the_front_without_a_search() -> None:
    """A search examines a run of entries for each that it finds, and would go on doing so."""
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b", b"c")
    leaves, takes = routing.consumer(queue, 2), routing.consumer(queue)
    routing.leave(queue, leaves, Disposal.RELEASE)
    routing.give(queue, takes, 9)
    assert takes.taken == [b"a", b"b", b"c"]
    assert takes.passed is None
    assert queue.delivery._scan_positions is None


def test_a_search_begins_in_front_of_what_was_found_last() -> None:
    """The places of delivered messages are not examined again for each later message."""
    routing = Routing()
    queue = routing.queue()
    routing.put_grouped(queue, *(f"a{number}" for number in range(200)))
    consumer = routing.consumer(queue)
    for count in range(1, 201):
        routing.give(queue, consumer, 1)
        assert consumer.passed is not None
        assert consumer.passed[4] == consumer.entries[-1].position - 1 == count - 2


def test_a_group_that_comes_back_behind_a_search_is_taken_in_its_order() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put_grouped(queue, "a1", "b1", "a2", "b2", "a3")
    leaves = routing.consumer(queue, 3)
    stays = routing.consumer(queue)
    routing.leave(queue, leaves, Disposal.RELEASE)
    routing.give(queue, stays, 9)
    assert stays.taken == [b"a1", b"b1", b"a2", b"b2", b"a3"]
    stays.dispose(Disposal.RELEASE, routing.batch, index=2)
    stays.dispose(Disposal.RELEASE, routing.batch)
    routing.give(queue, stays, 9)
    assert stays.taken[5:] == [b"a1", b"a2"]
