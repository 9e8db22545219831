"""Going past what may not go to a consumer: nothing is missed, nothing is looked at twice."""

import pytest

from broker.routing.redelivery import Disposal
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
    """Thousands, since looking at all that was refused for each entry would take minutes."""
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
