"""What the store keeps of a queue's entries, where, and for how long."""

import pytest

from broker.routing.redelivery import Disposal
from tests.support.routing import Routing, new_message


@pytest.mark.requirement("DST-14", "RCV-02")
def test_the_store_keeps_what_is_durable_until_it_is_consumed() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"a", durable=True), routing.batch)
    queue.put(new_message(b"b", durable=True, priority=9), routing.batch)
    queue.put(new_message(b"fleeting"), routing.batch)
    assert [each.encoded for each in routing.stored()] == [b"a", b"b"]
    consumer = routing.consumer(queue, 3)
    assert consumer.taken == [b"b", b"a", b"fleeting"]
    consumer.dispose(Disposal.COUNT, routing.batch)
    consumer.dispose(Disposal.REMOVE, routing.batch)
    assert [(each.encoded, each.delivery_count) for each in routing.stored()] == [(b"b", 1)]


@pytest.mark.requirement("DST-14")
def test_entries_of_all_priorities_have_places_of_their_own_in_the_store() -> None:
    routing = Routing()
    queue = routing.queue()
    for priority in (0, 4, 9):
        queue.put(new_message(b"%d" % priority, durable=True, priority=priority), routing.batch)
    stored = routing.stored()
    assert [(each.encoded, each.priority) for each in stored] == [(b"0", 0), (b"4", 4), (b"9", 9)]
    assert len({each.position for each in stored}) == 3


@pytest.mark.requirement("TMP-03")
def test_messages_of_a_temporary_queue_are_not_kept_in_the_store() -> None:
    routing = Routing()
    queue = routing.temporary_queue()
    queue.put(new_message(b"a", durable=True), routing.batch)
    routing.consumer(queue, 1).dispose(Disposal.COUNT, routing.batch)
    assert routing.batch.is_empty()
