"""Credit of producers of a node that blocks when it is full: fair, and never more than its room."""

import pytest

from broker.routing.addresses.policy import DROP_OLDEST, REJECT, AddressPolicy
from broker.routing.credit.credit_pool import (
    LOOK_EVERY_MS,
    SIZE_GUESSED,
    UNLIMITED,
    portion,
    room_left,
)
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from broker.routing.topics.topic import Topic
from tests.support.parties import RecordingProducer
from tests.support.routing import Routing, new_message

ROOM = {
    # name: max_messages, max_bytes, messages, size, granted, room left
    "no limits": (0, 0, 10**6, 10**9, 10**6, UNLIMITED),
    "an empty queue": (10, 0, 0, 0, 0, 10),
    "what is there and what is granted are taken": (10, 0, 3, 999, 4, 3),
    "never less than nothing": (10, 0, 8, 0, 4, 0),
    "bytes by a guess": (0, 10 * SIZE_GUESSED, 0, 0, 0, 10),
    "bytes by the size of what is there": (0, 1000, 3, 300, 2, 5),
    "one at least while bytes are left": (0, 100, 0, 0, 0, 1),
    "and no more than that": (0, 100, 0, 0, 1, 0),
    "nothing once the bytes are used up": (0, 100, 1, 100, 0, 0),
    "the smaller of both": (5, 1000, 2, 20, 0, 3),
}


@pytest.mark.parametrize(
    ("max_messages", "max_bytes", "messages", "size", "granted", "left"),
    ROOM.values(),
    ids=ROOM.keys(),
)
def test_the_room_left_for(
    max_messages: int, max_bytes: int, messages: int, size: int, granted: int, left: int
) -> None:
    found = room_left(
        max_messages=max_messages,
        max_bytes=max_bytes,
        messages=messages,
        size=size,
        granted=granted,
    )
    assert found == left


PORTIONS = {
    # name: room, number of waiting producers, most that one may have, what it gets
    "one alone leaves three quarters": (100, 1, 500, 25),
    "of many each gets less": (100, 47, 500, 2),
    "one at least": (3, 50, 500, 1),
    "no more than it may have": (10**6, 1, 500, 500),
}


@pytest.mark.parametrize(
    ("left", "waiting", "most", "expected"), PORTIONS.values(), ids=PORTIONS.keys()
)
def test_a_portion_for(left: int, waiting: int, most: int, expected: int) -> None:
    assert portion(left, waiting=waiting, most=most) == expected


class Shop:
    """A node that blocks when it is full, and its producers."""

    def __init__(self, node: Queue | Topic, routing: Routing) -> None:
        assert node.credit_pool is not None
        self.node = node
        self.routing = routing
        self.credit_pool = node.credit_pool
        self.producers: list[RecordingProducer] = []

    def come(self, count: int = 1, *, gives_back: bool = True) -> list[RecordingProducer]:
        """Add `count` producers that ask for credit; return them."""
        new = [RecordingProducer(gives_back=gives_back) for _ in range(count)]
        for producer in new:
            self.producers.append(producer)
            self.node.producers.append(producer)
            self.credit_pool.ask(producer)
        return new

    def send(self, producer: RecordingProducer, count: int = 1) -> int:
        """Put up to `count` messages as far as there is credit; return their number."""
        sent = 0
        while sent < count and producer.credit > 0:
            producer.credit -= 1
            sent += 1
            self.credit_pool.used(producer)
            self.node.put(new_message(), self.routing.batch)
            if producer.credit <= producer.granted[-1] // 2:
                self.credit_pool.ask(producer)
        return sent

    def look(self) -> None:
        """Advance to the next check for idle credit; producers that returned theirs ask again."""
        self.routing.advance(int(LOOK_EVERY_MS))
        for producer in self.producers:
            if producer.is_recalled and producer.credit == 0:
                self.credit_pool.ask(producer)
        self.routing.pump()


def shop(limit: int) -> Shop:
    routing = Routing(policy=AddressPolicy(max_messages=limit))
    return Shop(routing.queue(), routing)


def test_fifty_producers_do_not_flood_a_queue_of_a_hundred() -> None:
    place = shop(100)
    place.come(50)
    assert place.credit_pool.granted == sum(each.credit for each in place.producers) <= 100
    while sum(place.send(each, 5) for each in place.producers):
        assert place.node.contents() + place.credit_pool.granted <= 100
    assert place.node.contents() == 100


def test_room_goes_to_those_who_wait_in_turn() -> None:
    place = shop(10)
    assert isinstance(place.node, Queue)
    place.come(4)
    while sum(place.send(each, 10) for each in place.producers):
        pass
    before = [sum(each.granted) for each in place.producers]
    consumer = place.routing.consumer(place.node, 8)
    for _ in range(8):
        consumer.dispose(Disposal.REMOVE, place.routing.batch)
        place.routing.pump()
        assert sum(place.send(each) for each in place.producers) == 1
    after = [sum(each.granted) for each in place.producers]
    assert [more - less for less, more in zip(before, after, strict=True)] == [2, 2, 2, 2]


def test_what_a_consumer_holds_or_hands_back_still_takes_room() -> None:
    place = shop(2)
    assert isinstance(place.node, Queue)
    (producer,) = place.come()
    while place.send(producer):
        pass
    consumer = place.routing.consumer(place.node, 1)
    consumer.dispose(Disposal.RELEASE, place.routing.batch)
    place.routing.pump()
    assert producer.credit == 0


def test_a_producer_that_leaves_leaves_its_room_to_others() -> None:
    place = shop(4)
    first, *_, last = place.come(9)
    assert last.credit == 0
    place.node.leave(first)
    assert place.credit_pool.granted == sum(each.credit for each in place.producers[1:])
    assert place.credit_pool.granted == 4


def test_credit_that_is_not_used_is_asked_back_while_others_wait() -> None:
    place = shop(4)
    idle = place.come(4)
    (busy,) = place.come()
    assert [each.credit for each in (*idle, busy)] == [1, 1, 1, 1, 0]
    place.look()
    assert sum(each.recalls for each in idle) == 0, "they may just have got it"
    place.look()
    assert [each.recalls for each in idle] == [1, 1, 1, 1]
    assert place.send(busy) == 1


def test_nobody_is_asked_for_credit_while_nobody_waits() -> None:
    place = shop(100)
    idle = place.come(2)
    for _ in range(5):
        place.look()
    assert sum(each.recalls for each in idle) == 0
    assert place.routing.router.timer_queue.next_deadline_ms() == -1


def test_credit_that_is_not_given_back_does_not_count_for_ever() -> None:
    place = shop(4)
    place.come(4, gives_back=False)
    (busy,) = place.come()
    for _ in range(3):
        place.look()
    assert place.send(busy) == 1


def test_those_who_gave_credit_back_are_not_forgotten() -> None:
    place = shop(1)
    (idle,) = place.come()
    (busy,) = place.come()
    place.look()
    place.look()
    assert isinstance(place.node, Queue)
    consumer = place.routing.consumer(place.node, 10**6, settles=True)
    for _ in range(20):
        place.send(busy)
        place.routing.pump()
    assert sum(idle.granted) == 2
    assert consumer.credit < 10**6 - 5


@pytest.mark.parametrize("full", [REJECT, DROP_OLDEST])
def test_other_policies_hold_nobody_back(full: str) -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1, full=full))
    assert routing.queue().credit_pool is None
    assert routing.topic().credit_pool is None


def test_no_limit_holds_nobody_back() -> None:
    routing = Routing()
    assert routing.queue().credit_pool is None


def test_a_topic_waits_for_its_fullest_subscription() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=3))
    topic = routing.topic()
    place = Shop(topic, routing)
    slow, quick = routing.consumer(topic), routing.consumer(topic)
    slow_queue, quick_queue = topic.subscriptions
    (producer,) = place.come()
    quick.credit = 100
    quick_queue.consumer_ready(quick, drain=False)
    while place.send(producer):
        routing.pump()
        while quick.entries:
            quick.dispose(Disposal.REMOVE, routing.batch)
    assert slow_queue.backlogs.waiting == 3
    assert producer.credit == 0
    slow.credit = 1
    slow_queue.consumer_ready(slow, drain=False)
    routing.pump()
    slow.dispose(Disposal.REMOVE, routing.batch)
    routing.pump()
    assert producer.credit == 1
    routing.unsubscribe(slow_queue, slow)
    assert producer.credit == 1, "it has what it asked for"


def test_a_subscription_that_ends_gives_way() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=1))
    topic = routing.topic()
    place = Shop(topic, routing)
    consumer = routing.consumer(topic)
    (producer,) = place.come()
    assert place.send(producer, 9) == 1
    routing.unsubscribe(topic.subscriptions[0], consumer)
    assert producer.credit > 0
