"""A queue at its limits: which messages are refused, and which are dropped to make room."""

import pytest

from broker.routing.addresses.policy import BLOCK, DROP_OLDEST, REJECT, AddressPolicy
from broker.routing.errors import QueueFull
from broker.routing.queues.queue_limits import has_room
from tests.support.clock import WALL_START_MS
from tests.support.routing import Routing, counts, new_message

FITS = {
    # name: max_messages, max_bytes, messages, size, more, whether it fits
    "no limits": (0, 0, 9, 9, 9, True),
    "one more": (3, 0, 2, 9, 9, True),
    "one too many": (3, 0, 3, 0, 0, False),
    "to the last byte": (0, 10, 9, 7, 3, True),
    "a byte too many": (0, 10, 0, 7, 4, False),
}


@pytest.mark.parametrize(
    ("max_messages", "max_bytes", "messages", "size", "more", "expected"),
    FITS.values(),
    ids=FITS.keys(),
)
def test_a_message_fits(
    max_messages: int, max_bytes: int, messages: int, size: int, more: int, expected: bool
) -> None:
    found = has_room(
        max_messages=max_messages, max_bytes=max_bytes, messages=messages, size=size, more=more
    )
    assert found is expected


def test_what_is_there_longest_makes_room_the_lowest_priority_first() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=3, full=DROP_OLDEST))
    queue = routing.queue()
    routing.put(queue, b"high", priority=9)
    routing.put(queue, b"1", b"2", b"3")
    assert (queue.backlogs.waiting, routing.stats.displaced) == (3, 1)
    routing.put(queue, b"4", b"5", b"6", b"7")
    assert routing.consumer(queue, 9).taken == [b"high", b"6", b"7"]
    assert routing.stats.displaced == 5


def test_as_many_are_dropped_as_there_are_bytes_needed() -> None:
    routing = Routing(policy=AddressPolicy(max_bytes=10, full=DROP_OLDEST))
    queue = routing.queue()
    routing.put(queue, b"aaaa", b"bbb", b"ccc", b"dddddd")
    assert counts(queue) == (2, 0, 9)
    with pytest.raises(QueueFull):
        routing.put(queue, b"x" * 11)
    assert counts(queue) == (2, 0, 9)


def test_what_is_delivered_is_not_dropped() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2, full=DROP_OLDEST))
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    consumer = routing.consumer(queue, 2)
    routing.put(queue, b"c", b"d")
    assert counts(queue)[:2] == (1, 2)
    assert (consumer.taken, routing.stats.displaced) == ([b"a", b"b"], 1)


def test_what_is_dropped_is_gone_from_the_store_too() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1, full=DROP_OLDEST))
    queue = routing.queue()
    for body in (b"a", b"b"):
        queue.put(new_message(body, durable=True), routing.batch)
    assert [each.encoded for each in routing.stored()] == [b"b"]


def test_a_subscription_drops_for_itself_alone() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1, full=DROP_OLDEST))
    topic = routing.topic()
    slow = routing.consumer(topic)
    quick = routing.consumer(topic)
    slow_queue, quick_queue = topic.subscriptions
    routing.give(quick_queue, quick, 9)
    for body in (b"a", b"b", b"c"):
        routing.put(topic, body)
        routing.pump()
    routing.give(slow_queue, slow, 9)
    assert (slow.taken, quick.taken) == ([b"c"], [b"a", b"b", b"c"])


def test_a_group_goes_on_behind_what_was_dropped_of_it() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2, full=DROP_OLDEST))
    queue = routing.queue()
    routing.put_grouped(queue, "a1", "a2", "a3")
    assert routing.consumer(queue, 9).taken == [b"a2", b"a3"]


def test_a_browser_sees_what_is_left() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2, full=DROP_OLDEST))
    queue = routing.queue()
    browser = routing.browser(queue, 9)
    routing.put(queue, b"a", b"b")
    routing.pump()
    routing.put(queue, b"c", b"d")
    routing.pump()
    assert browser.copies == [b"a", b"b", b"c", b"d"]
    assert routing.browser(queue, 9).copies == [b"c", b"d"]


@pytest.mark.parametrize(
    ("full", "room"), [pytest.param(BLOCK, 2, id="block"), pytest.param(REJECT, 1, id="reject")]
)
def test_credit_may_use_the_bytes_twice(full: str, room: int) -> None:
    """The size of messages for which there is credit is not known in advance."""
    routing = Routing(policy=AddressPolicy(max_bytes=10, full=full))
    queue = routing.queue()
    for _ in range(room):
        routing.put(queue, b"x" * 10)
    with pytest.raises(QueueFull):
        routing.put(queue, b"x")


def test_without_credit_one_may_not_take_the_room_of_those_who_have_it() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2))
    queue = routing.queue()
    assert queue.credit_pool is not None
    queue.credit_pool.granted = 1
    routing.put(queue, b"a")
    with pytest.raises(QueueFull):
        routing.put(queue, b"b")


def test_scheduled_messages_are_dropped_once_none_waits() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=3, full=DROP_OLDEST))
    queue = routing.queue()
    for number in range(5):
        later = new_message(b"later %d" % number, deliver_at_ms=WALL_START_MS + 1000)
        queue.put(later, routing.batch)
    assert (queue.contents(), routing.stats.displaced) == (3, 2)
    routing.put(queue, b"now")
    assert (queue.contents(), routing.stats.displaced) == (3, 3)
    routing.advance(1000)
    assert routing.consumer(queue, 9).taken == [b"now", b"later 3", b"later 4"]
