"""Dispatch: the order in which consumers and queues have their turns."""

from itertools import permutations

from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.dispatch import DELIVERED_AT_ONCE
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_consumers import RoundRobin
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, counts


def taken(turn: RoundRobin, count: int) -> list[RecordingConsumer | None]:
    """Return the next `count` consumers in turn, each of which uses up a credit."""
    order: list[RecordingConsumer | None] = []
    for _ in range(count):
        consumer = turn.next()
        assert consumer is None or isinstance(consumer, RecordingConsumer)
        if consumer is not None:
            consumer.credit -= 1
        order.append(consumer)
    return order


def round_of(*consumers: RecordingConsumer) -> RoundRobin:
    turn = RoundRobin()
    for consumer in consumers:
        turn.join(consumer)
    return turn


def ranked(priority: int, credit: int) -> RecordingConsumer:
    consumer = RecordingConsumer(credit)
    consumer.priority = priority
    return consumer


def test_higher_priorities_come_first_and_equals_take_turns() -> None:
    low, one, other, negative = ranked(0, 2), ranked(5, 2), ranked(5, 2), ranked(-1, 1)
    for order in permutations((low, one, other, negative)):
        for consumer in order:
            consumer.credit = 1 if consumer is negative else 2
        taking = taken(round_of(*order), 8)
        assert set(taking[:2]) == set(taking[2:4]) == {one, other}
        assert taking[4:] == [low, low, negative, None]


def test_one_of_higher_priority_is_served_as_soon_as_it_has_room_again() -> None:
    low, high = ranked(0, 9), ranked(1, 1)
    turn = round_of(low, high)
    assert taken(turn, 3) == [high, low, low]
    high.credit = 1
    turn.join(high)
    assert taken(turn, 2) == [high, low]


def test_once_the_others_have_left_equals_take_turns_as_ever() -> None:
    a, b, high = ranked(0, 9), ranked(0, 9), ranked(1, 9)
    turn = round_of(a, b, high)
    assert taken(turn, 1) == [high]
    turn.leave(high)
    assert taken(turn, 4) == [a, b, a, b]
    turn.leave(b)
    turn.leave(a)
    assert taken(turn, 1) == [None]


def test_nobody_has_a_turn_in_an_empty_round() -> None:
    assert RoundRobin().next() is None


def test_consumers_take_turns() -> None:
    a, b, c = RecordingConsumer(2), RecordingConsumer(2), RecordingConsumer(2)
    assert taken(round_of(a, b, c), 7) == [a, b, c, a, b, c, None]


def test_one_without_room_leaves_the_round_until_it_joins_again() -> None:
    a, b = RecordingConsumer(4), RecordingConsumer(1)
    turn = round_of(a, b)
    assert taken(turn, 4) == [a, b, a, a]
    b.credit = 1
    assert taken(turn, 2) == [a, None], "b has left, and has not said that there is room again"
    turn.join(b)
    assert taken(turn, 2) == [b, None]
    assert turn.size() == 0


def test_joining_twice_gives_one_place() -> None:
    a, b = RecordingConsumer(2), RecordingConsumer(2)
    turn = round_of(a, b, a)
    assert turn.size() == 2
    assert taken(turn, 4) == [a, b, a, b]


def test_leaving_before_ones_turn_takes_nobody_elses() -> None:
    a, b, c = RecordingConsumer(9), RecordingConsumer(9), RecordingConsumer(9)
    turn = round_of(a, b, c)
    assert taken(turn, 2) == [a, b]
    turn.leave(a)
    assert taken(turn, 2) == [c, b]


def test_leaving_after_ones_turn_takes_nobody_elses() -> None:
    a, b, c = RecordingConsumer(9), RecordingConsumer(9), RecordingConsumer(9)
    turn = round_of(a, b, c)
    assert taken(turn, 1) == [a]
    turn.leave(c)
    assert taken(turn, 2) == [b, a]


def test_leaving_a_round_that_one_is_not_in_changes_nothing() -> None:
    a, b = RecordingConsumer(2), RecordingConsumer(2)
    turn = round_of(a)
    turn.leave(b)
    assert taken(turn, 1) == [a]


# -- a queue that rests between two turns


BODIES = [b"%d" % number for number in range(int(DELIVERED_AT_ONCE) * 2 + 100)]


def resting(*, drain: bool = False) -> tuple[Routing, Queue, RecordingConsumer]:
    """Return a queue with more than it delivers at once, and a consumer with credit for it all."""
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, *BODIES)
    consumer = routing.consumer(queue)
    routing.give(queue, consumer, len(BODIES) + 50, drain=drain)
    return routing, queue, consumer


def test_a_long_queue_is_delivered_in_several_turns_of_the_event_loop() -> None:
    routing, queue, consumer = resting()
    delivered = [len(consumer.taken)]
    while delivered[-1] < len(BODIES):
        routing.pump()
        assert len(consumer.taken) == delivered[-1], "the turn is not over"
        routing.advance(0)
        delivered.append(len(consumer.taken))
    assert delivered == [DELIVERED_AT_ONCE, DELIVERED_AT_ONCE * 2, len(BODIES)]
    assert consumer.taken == BODIES
    assert counts(queue)[:2] == (0, len(BODIES))


def test_while_a_queue_rests_others_are_served() -> None:
    routing, queue, consumer = resting()
    other = routing.queue("other")
    served = routing.consumer(other, 1)
    routing.put(other, b"x")
    routing.put(queue, b"y")
    routing.pump()
    assert (served.taken, len(consumer.taken)) == ([b"x"], DELIVERED_AT_ONCE)


def test_a_drain_ends_once_a_queue_that_rests_has_delivered_all() -> None:
    routing, _, consumer = resting(drain=True)
    assert consumer.drains == 0
    routing.advance(0)
    assert consumer.drains == 0
    routing.advance(0)
    assert (consumer.drains, consumer.taken) == (1, BODIES)


def test_consumers_that_leave_in_one_turn_do_not_pass_all_on_to_each_other() -> None:
    """Else each of them would return all messages, and the next one would get them to return."""
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, *BODIES)
    leaving = [routing.consumer(queue) for _ in range(4)]
    for consumer in leaving:
        routing.give(queue, consumer, len(BODIES))
    for _ in range(3):
        routing.advance(0)
    assert counts(queue)[:2] == (0, len(BODIES))
    delivered = sum(len(consumer.taken) for consumer in leaving)
    for consumer in leaving:
        routing.leave(queue, consumer, Disposal.RELEASE)
    assert sum(len(consumer.taken) for consumer in leaving) == delivered + DELIVERED_AT_ONCE
    last = routing.consumer(queue, len(BODIES))
    for _ in range(3):
        routing.advance(0)
    assert last.taken == BODIES


def test_a_queue_that_is_deleted_while_it_rests_delivers_no_more() -> None:
    routing, queue, consumer = resting()
    routing.router.delete(queue, routing.batch)
    routing.advance(0)
    assert len(consumer.taken) == DELIVERED_AT_ONCE
    assert counts(queue)[0] == 0
