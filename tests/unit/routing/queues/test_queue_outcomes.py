"""Outcomes of an entry that a consumer held: removed, back in its place, or dead-lettered."""

import pytest

from broker.routing.entries.redelivery import Disposal
from tests.support.routing import Routing, bodies, counts

OUTCOMES = {
    # name: disposal, ready afterwards, delivery-count, failures, acknowledged, requeued
    "accepted": (Disposal.REMOVE, 0, 0, 0, 1, 0),
    "released": (Disposal.RELEASE, 1, 0, 0, 0, 1),
    "lost with the link": (Disposal.COUNT, 1, 1, 0, 0, 1),
    "modified, delivery-failed": (Disposal.FAIL, 1, 1, 1, 0, 1),
    "modified, undeliverable-here": (Disposal.ELSEWHERE, 1, 0, 0, 0, 1),
    "modified, both": (Disposal.FAIL_ELSEWHERE, 1, 1, 1, 0, 1),
    "rejected": (Disposal.DEAD_LETTER, 0, 0, 0, 0, 0),
}


@pytest.mark.requirement("RCV-01", "RCV-02", "RCV-08")
@pytest.mark.parametrize(
    ("disposal", "waiting", "delivery_count", "failures", "acknowledged", "requeued"),
    OUTCOMES.values(),
    ids=OUTCOMES.keys(),
)
def test_an_entry_that_was(
    disposal: Disposal,
    waiting: int,
    delivery_count: int,
    failures: int,
    acknowledged: int,
    requeued: int,
) -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    entry = routing.consumer(queue, 1).dispose(disposal, routing.batch)
    assert counts(queue) == (waiting, 0, waiting)
    assert (entry.delivery_count, entry.failures) == (delivery_count, failures)
    assert entry.consumer is None
    assert entry.sent_to is None
    assert (routing.stats.acknowledged, routing.stats.requeued) == (acknowledged, requeued)


@pytest.mark.requirement("RCV-02")
def test_a_released_entry_returns_to_its_place() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b", b"c")
    routing.put(queue, b"urgent", priority=9)
    consumer = routing.consumer(queue, 3)
    routing.put(queue, b"d")
    for _ in range(3):
        consumer.dispose(Disposal.RELEASE, routing.batch, index=-1)
    routing.give(queue, consumer, 9)
    assert bodies(consumer.entries) == [b"urgent", b"a", b"b", b"c", b"d"]


@pytest.mark.requirement("RCV-02")
def test_an_entry_never_goes_again_to_the_consumer_where_it_is_undeliverable() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b", b"c")
    consumer = routing.consumer(queue, 1)
    consumer.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, consumer, 9)
    assert bodies(consumer.entries) == [b"b", b"c"]
    consumer.dispose(Disposal.RELEASE, routing.batch)
    routing.pump()
    assert bodies(consumer.entries) == [b"c", b"b"], "what it released is met again"
    assert queue.backlogs.waiting == 1
    assert routing.consumer(queue, 9).taken == [b"a"]


@pytest.mark.requirement("RCV-02")
def test_a_link_that_comes_back_starts_with_a_clean_sheet() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue, 2)
    consumer.dispose(Disposal.ELSEWHERE, routing.batch)
    queue.detach_consumer(consumer, queue, routing.batch)
    queue.attach_consumer(consumer)
    routing.give(queue, consumer, 1)
    assert consumer.taken == [b"a", b"a"]


@pytest.mark.requirement("RCV-02")
def test_what_one_refuses_another_gets_and_may_hand_back() -> None:
    routing = Routing()
    queue = routing.queue()
    refuses, takes = routing.consumer(queue), routing.consumer(queue)
    routing.put(queue, b"a", b"b", b"c", b"d")
    routing.give(queue, refuses, 3)
    for _ in range(3):
        refuses.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, refuses, 1)
    assert bodies(refuses.entries) == [b"d"]
    routing.give(queue, takes, 2)
    takes.dispose(Disposal.RELEASE, routing.batch)
    takes.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, refuses, 9)
    assert bodies(refuses.entries) == [b"d"], "a, b and c are refused for ever"
    routing.give(queue, takes, 9)
    assert takes.taken == [b"a", b"b", b"a", b"c"]
