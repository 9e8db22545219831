"""Exclusive use of a queue: the consumer that has it, and its successor."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.exclusive import successor
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, bodies


def asking(*, priority: int = 0, exclusive: bool = False) -> RecordingConsumer:
    consumer = RecordingConsumer()
    consumer.priority = priority
    consumer.exclusive = exclusive
    return consumer


PLAIN, OTHER = asking(), asking()
HIGH = asking(priority=3)
SOLE, NEXT = asking(exclusive=True), asking(exclusive=True)
URGENT = asking(priority=1, exclusive=True)

SUCCESSORS = {
    # name: consumers in order of arrival, whether the address is exclusive, the one served
    "nobody is there": ([], True, None),
    "of an exclusive address, who came first": ([PLAIN, OTHER], True, PLAIN),
    "of an exclusive address, the highest priority": ([PLAIN, HIGH, OTHER], True, HIGH),
    "of another address, nobody unless asked": ([PLAIN, HIGH], False, None),
    "who asked": ([PLAIN, HIGH, SOLE], False, SOLE),
    "who asked first": ([SOLE, NEXT], False, SOLE),
    "of those who asked, the highest priority": ([HIGH, SOLE, URGENT], False, URGENT),
}


@pytest.mark.parametrize(
    ("consumers", "by_address", "expected"), SUCCESSORS.values(), ids=SUCCESSORS.keys()
)
def test_the_queue_goes_to(
    consumers: list[RecordingConsumer], by_address: bool, expected: RecordingConsumer | None
) -> None:
    assert successor(list(consumers), by_address=by_address) is expected


def test_one_consumer_of_an_exclusive_address_gets_everything_while_the_others_stand_by() -> None:
    routing = Routing(policy=AddressPolicy(exclusive=True))
    queue = routing.queue()
    first, second, third = (routing.consumer(queue, 9) for _ in range(3))
    routing.put(queue, b"a", b"b")
    routing.pump()
    routing.give(queue, second, 9, drain=True)
    assert (first.taken, second.taken, third.taken) == ([b"a", b"b"], [], [])
    assert second.drains == 1, "nothing waits for it"
    routing.give(queue, second, 9)
    routing.leave(queue, first, Disposal.RELEASE)
    assert (second.taken, third.taken) == ([b"a", b"b"], [])
    routing.leave(queue, third, Disposal.RELEASE)
    routing.put(queue, b"c")
    routing.pump()
    assert second.taken == [b"a", b"b", b"c"]
    routing.leave(queue, second, Disposal.RELEASE)
    assert routing.consumer(queue, 9).taken == [b"a", b"b", b"c"]


def test_a_successor_waits_for_what_others_still_hold() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b", b"c", b"d")
    one, other = routing.consumer(queue, 1), routing.consumer(queue, 1)
    sole = routing.consumer(queue, 9, exclusive=True)
    routing.give(queue, one, 9)
    assert (one.taken, other.taken, sole.taken) == ([b"a"], [b"b"], [])
    one.dispose(Disposal.REMOVE, routing.batch)
    routing.pump()
    assert sole.taken == []
    other.dispose(Disposal.RELEASE, routing.batch)
    routing.pump()
    assert (one.taken, sole.taken) == ([b"a"], [b"b", b"c", b"d"])


def test_without_an_exclusive_consumer_all_others_are_served_again() -> None:
    routing = Routing()
    queue = routing.queue()
    plain = [routing.consumer(queue, 1) for _ in range(2)]
    sole = routing.consumer(queue, 1, exclusive=True)
    later = routing.consumer(queue, 1)
    routing.put(queue, b"a", b"b", b"c", b"d")
    routing.pump()
    assert bodies(sole.entries) == [b"a"]
    assert queue.backlogs.waiting == 3
    routing.leave(queue, sole, Disposal.REMOVE)
    assert [consumer.taken for consumer in (*plain, later)] == [[b"b"], [b"c"], [b"d"]]


def test_a_browser_looks_on_while_one_consumer_has_the_queue() -> None:
    routing = Routing(policy=AddressPolicy(exclusive=True))
    queue = routing.queue()
    routing.put(queue, b"a")
    assert routing.browser(queue, 9).copies == [b"a"]
    assert routing.consumer(queue, 9).taken == [b"a"]
