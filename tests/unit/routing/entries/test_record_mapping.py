"""Queue entries as records in the store: which are kept, where, and for how long."""

import pytest

from broker.message import Origin
from broker.routing.entries.redelivery import Disposal
from tests.support.clock import WALL_START_MS
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


@pytest.mark.requirement("RCV-05")
def test_the_store_keeps_the_publisher_and_brings_it_back() -> None:
    """Messages of one publisher share one object for it, before and after they are stored."""
    routing = Routing()
    queue = routing.queue()
    publishers = ["ada", "ada", "bob", ""]
    for name in publishers:
        queue.put(new_message(b"", durable=True, publisher=name), routing.batch)
    stored = routing.stored()
    assert [each.publisher for each in stored] == publishers
    back = [queue.entry_of(each, 0).message for each in stored]
    assert [message.publisher for message in back] == publishers
    assert back[0].origin is back[1].origin
    assert queue.entry_of(stored[0], 0, origin=Origin("x", "key")).message.key == "key"


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


@pytest.mark.requirement("DLY-03", "PRD-04")
def test_the_store_knows_when_a_message_is_due_and_when_its_life_ends() -> None:
    routing = Routing()
    queue = routing.queue()
    later, over = WALL_START_MS + 1000, WALL_START_MS + 5000
    queue.put(
        new_message(b"later", durable=True, deliver_at_ms=later, expires_at_ms=over), routing.batch
    )
    queue.put(new_message(b"due", durable=True, deliver_at_ms=WALL_START_MS), routing.batch)
    kept = [(each.encoded, each.deliver_at_ms, each.expires_at_ms) for each in routing.stored()]
    assert kept == [(b"later", later, over), (b"due", 0, 0)]


@pytest.mark.requirement("DLY-03")
def test_a_message_that_falls_due_has_its_place_in_the_store_too() -> None:
    routing = Routing()
    queue = routing.queue()
    for name, delay in ((b"second", 20), (b"first", 10)):
        message = new_message(name, durable=True, deliver_at_ms=WALL_START_MS + delay)
        queue.put(message, routing.batch)
    queue.put(new_message(b"at once", durable=True), routing.batch)
    routing.advance(15)
    kept = [(each.encoded, each.deliver_at_ms) for each in routing.stored()]
    assert kept == [(b"second", WALL_START_MS + 20), (b"at once", 0), (b"first", 0)]
    routing.advance(5)
    assert [each.encoded for each in routing.stored()] == [b"at once", b"first", b"second"]
    consumer = routing.consumer(queue, 2)
    consumer.dispose(Disposal.COUNT, routing.batch, index=1)
    consumer.dispose(Disposal.REMOVE, routing.batch)
    kept = [(each.encoded, each.delivery_count) for each in routing.stored()]
    assert kept == [(b"first", 1), (b"second", 0)]
