"""Message groups: their owners, their moves to other consumers, and which are remembered."""

import pytest

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries.groups import (
    GROUPS_REMEMBERED,
    NOBODY,
    REMEMBERED_LENGTH_MAX,
    may_take,
)
from broker.routing.entries.redelivery import Disposal
from tests.support.clock import WALL_START_MS
from tests.support.routing import Routing, bodies, groups_of, new_message

pytestmark = pytest.mark.requirement("RCV-07")

OWNER, OTHER = 1, 2

TAKERS = {
    # name: owner, moves, held, the consumer that asks, whether it may
    "a new group goes to anybody": (NOBODY, False, 0, OTHER, True),
    "more of it goes to its owner": (OWNER, False, 3, OWNER, True),
    "and to nobody else": (OWNER, False, 0, OTHER, False),
    "nor to its owner once it moves": (OWNER, True, 1, OWNER, False),
    "and not yet to another": (OWNER, True, 1, OTHER, False),
    "nor while one that left holds something": (NOBODY, False, 1, OTHER, False),
}


@pytest.mark.parametrize(
    ("owner", "moves", "held", "consumer", "expected"), TAKERS.values(), ids=TAKERS.keys()
)
def test_who_may_take(owner: int, moves: bool, held: int, consumer: int, expected: bool) -> None:
    assert may_take(owner=owner, moves=moves, held=held, consumer=consumer) is expected


def test_a_group_stays_with_its_consumer_and_others_share_the_rest() -> None:
    routing = Routing()
    queue = routing.queue()
    one, other = routing.consumer(queue, 9), routing.consumer(queue, 9)
    routing.put_grouped(queue, "a1", "a2", "b1", "a3", "b2")
    assert (one.taken, other.taken) == ([b"a1", b"a2", b"a3"], [b"b1", b"b2"])
    routing.put(queue, b"plain", b"other")
    routing.pump()
    assert {one.taken[-1], other.taken[-1]} == {b"plain", b"other"}
    while one.entries:
        one.dispose(Disposal.REMOVE, routing.batch)
    routing.put_grouped(queue, "a4")
    assert one.taken[-1] == b"a4", "though nothing of the group was there"


def test_messages_without_a_group_go_past_one_whose_consumer_has_no_room() -> None:
    routing = Routing()
    queue = routing.queue()
    one, other = routing.consumer(queue, 1), routing.consumer(queue)
    routing.put_grouped(queue, "a1", "a2", "a3")
    routing.put(queue, b"plain")
    routing.give(queue, other, 9)
    assert (one.taken, other.taken) == ([b"a1"], [b"plain"])
    routing.give(queue, one, 9)
    assert one.taken == [b"a1", b"a2", b"a3"]


def test_when_its_consumer_goes_a_group_moves_in_its_order() -> None:
    routing = Routing()
    queue = routing.queue()
    one, other = routing.consumer(queue, 3), routing.consumer(queue, 9)
    routing.put_grouped(queue, "a1", "a2", "a3", "a4")
    one.dispose(Disposal.REMOVE, routing.batch)
    routing.leave(queue, one, Disposal.RELEASE)
    assert other.taken == [b"a2", b"a3", b"a4"]


@pytest.mark.parametrize("outcome", [Disposal.RELEASE, Disposal.REMOVE])
def test_nothing_overtakes_what_a_consumer_that_left_still_holds(outcome: Disposal) -> None:
    """The deliveries of a transaction outlive their link in this way."""
    routing = Routing()
    queue = routing.queue()
    one, other = routing.consumer(queue, 2), routing.consumer(queue, 9)
    routing.put_grouped(queue, "a1", "a2", "a3")
    queue.detach_consumer(one, queue, routing.batch)
    routing.pump()
    assert other.taken == []
    one.dispose(outcome, routing.batch)
    routing.pump()
    assert other.taken == []
    one.dispose(outcome, routing.batch)
    routing.pump()
    assert other.taken == ([b"a1", b"a2", b"a3"] if outcome is Disposal.RELEASE else [b"a3"])


def test_a_group_refused_moves_once_nothing_of_it_is_held() -> None:
    routing = Routing()
    queue = routing.queue()
    one, other = routing.consumer(queue, 3), routing.consumer(queue, 9)
    routing.put_grouped(queue, "a1", "a2", "a3", "a4")
    one.dispose(Disposal.ELSEWHERE, routing.batch, index=1)
    routing.give(queue, one, 9)
    assert (one.taken, other.taken) == ([b"a1", b"a2", b"a3"], [])
    one.dispose(Disposal.REMOVE, routing.batch)
    one.dispose(Disposal.RELEASE, routing.batch)
    routing.pump()
    assert (len(one.taken), other.taken) == (3, [b"a2", b"a3", b"a4"])


def test_nothing_goes_past_what_its_only_consumer_refused() -> None:
    routing = Routing()
    queue = routing.queue()
    one = routing.consumer(queue, 1)
    routing.put_grouped(queue, "a1", "a2", "b1")
    one.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, one, 9)
    assert one.taken == [b"a1", b"b1"]
    assert routing.consumer(queue, 9).taken == [b"a1", b"a2"]


@pytest.mark.requirement("RCV-08")
def test_a_group_waits_while_its_first_message_does() -> None:
    routing = Routing()
    queue = routing.queue()
    one = routing.consumer(queue)
    routing.put_grouped(queue, "a1", "a2", "b1")
    for _ in range(10):
        routing.give(queue, one, 1)
        one.dispose(Disposal.RELEASE, routing.batch)
    routing.give(queue, one, 9)
    assert bodies(one.entries) == [b"b1"]
    routing.advance(100)
    assert bodies(one.entries) == [b"b1", b"a1", b"a2"]


def test_a_closed_group_goes_to_whoever_comes_next() -> None:
    routing = Routing()
    queue = routing.queue()
    one = routing.consumer(queue, 9)
    other = routing.consumer(queue)
    routing.put_grouped(queue, "a1", "a2!", "a3", "a4")
    assert one.taken == [b"a1", b"a2!"]
    one.dispose(Disposal.REMOVE, routing.batch)
    routing.give(queue, one, 0)
    routing.give(queue, other, 9)
    assert other.taken == []
    one.dispose(Disposal.REMOVE, routing.batch)
    routing.pump()
    assert other.taken == [b"a3", b"a4"]


def test_a_closing_message_that_comes_back_is_the_next_to_go() -> None:
    routing = Routing()
    queue = routing.queue()
    one = routing.consumer(queue, 1)
    routing.put_grouped(queue, "a1!", "a2")
    one.dispose(Disposal.COUNT, routing.batch)
    other = routing.consumer(queue, 9)
    assert other.taken == [b"a1!"]
    other.dispose(Disposal.REMOVE, routing.batch)
    routing.give(queue, other, 9)
    assert other.taken == [b"a1!", b"a2"]


def test_what_expires_in_front_of_a_group_holds_nothing_up() -> None:
    routing = Routing()
    queue = routing.queue()
    one, other = routing.consumer(queue, 1), routing.consumer(queue)
    message = new_message(b"a1", group="a", expires_at_ms=WALL_START_MS + 50)
    queue.put(message, routing.batch)
    routing.put_grouped(queue, "a2")
    one.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, one, 9)
    assert one.taken == [b"a1"]
    routing.advance(2000)
    assert (one.taken, other.taken) == ([b"a1", b"a2"], [])


def test_a_dead_letter_does_not_stop_its_group() -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=1))
    queue = routing.queue()
    one = routing.consumer(queue, 1)
    routing.put_grouped(queue, "a1", "a2")
    one.dispose(Disposal.FAIL, routing.batch)
    routing.give(queue, one, 1)
    assert one.taken == [b"a1", b"a2"]
    assert routing.queue("DLQ").backlogs.waiting == 1


def test_a_browser_sees_groups_in_the_order_of_the_queue() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put_grouped(queue, "a1", "b1", "a2", "b2")
    routing.consumer(queue, 1)
    assert routing.browser(queue, 9).copies == [b"b1", b"a2", b"b2"]


# -- groups that are remembered


def test_a_group_is_forgotten_with_its_consumer_when_nothing_of_it_is_there() -> None:
    routing = Routing()
    queue = routing.queue()
    one = routing.consumer(queue, 9)
    routing.put_grouped(queue, "a1", "b1")
    while one.entries:
        one.dispose(Disposal.REMOVE, routing.batch)
    assert groups_of(queue).size() == 2
    routing.leave(queue, one, Disposal.RELEASE)
    assert groups_of(queue).size() == 0


def test_only_the_latest_groups_of_which_nothing_is_there_are_remembered() -> None:
    routing = Routing()
    queue = routing.queue()
    one = routing.consumer(queue, 10**6, settles=True)
    for number in range(GROUPS_REMEMBERED + 5):
        queue.put(new_message(group=f"g{number}"), routing.batch)
        routing.pump()
    assert groups_of(queue).size() == GROUPS_REMEMBERED
    routing.give(queue, one, 0)
    other = routing.consumer(queue, 9)
    queue.put(new_message(b"forgotten", group="g0"), routing.batch)
    queue.put(new_message(b"remembered", group="g5"), routing.batch)
    routing.pump()
    assert other.taken == [b"forgotten"]


@pytest.mark.parametrize("over", [0, 1])
def test_a_group_with_a_long_name_is_forgotten_as_soon_as_nothing_of_it_is_there(over: int) -> None:
    routing = Routing()
    queue = routing.queue()
    routing.consumer(queue, 9, settles=True)
    queue.put(new_message(group="g" * (int(REMEMBERED_LENGTH_MAX) + over)), routing.batch)
    routing.pump()
    assert groups_of(queue).size() == 1 - over


def test_a_deleted_queue_knows_no_groups() -> None:
    routing = Routing()
    queue = routing.queue()
    one = routing.consumer(queue, 2)
    routing.put_grouped(queue, "a1", "a2", "a3", "b1")
    one.dispose(Disposal.RELEASE, routing.batch)
    routing.router.delete(queue, routing.batch)
    assert groups_of(queue).size() == 0
    one.dispose(Disposal.RELEASE, routing.batch)
    assert groups_of(queue).size() == 0


# -- cost


def test_a_consumer_goes_past_the_groups_of_others_once() -> None:
    """Thousands of messages: looking at all of them for each delivery would take minutes."""
    routing = Routing()
    queue = routing.queue()
    count = 3000
    routing.consumer(queue, 1)
    for number in range(count):
        queue.put(new_message(b"%d" % number, group="theirs"), routing.batch)
    routing.put(queue, *(b"%d" % number for number in range(count)))
    other = routing.consumer(queue)
    for _ in range(count):
        routing.give(queue, other, 1)
        other.dispose(Disposal.REMOVE, routing.batch)
    assert queue.backlogs.waiting == count - 1


@pytest.mark.parametrize("leaves", [False, True])
def test_a_group_waits_with_a_message_that_waits_after_a_failure(leaves: bool) -> None:
    routing = Routing(policy=AddressPolicy(redelivery_delay_ms=500))
    queue = routing.queue()
    one, other = routing.consumer(queue, 2), routing.consumer(queue, 9)
    routing.put_grouped(queue, "a1", "a2", "a3", "b1")
    one.dispose(Disposal.FAIL, routing.batch)
    one.dispose(Disposal.RELEASE, routing.batch)
    if leaves:
        routing.leave(queue, one, Disposal.RELEASE)
    routing.give(queue, one, 0 if leaves else 9)
    assert (one.taken, other.taken) == ([b"a1", b"a2"], [b"b1"])
    routing.advance(500)
    takes = other if leaves else one
    assert takes.taken[-3:] == [b"a1", b"a2", b"a3"]


@pytest.mark.parametrize("failed", [1, 2])
def test_messages_of_all_priorities_follow_the_failed_ones_of_their_group(failed: int) -> None:
    """Their consumer has skipped them while the failed ones were paused."""
    routing = Routing(policy=AddressPolicy(redelivery_delay_ms=500))
    queue = routing.queue()
    one = routing.consumer(queue, 3)
    for priority in (9, 4, 0):
        message = new_message(b"a%d" % priority, group="a", priority=priority)
        queue.put(message, routing.batch)
    routing.pump()
    for _ in range(failed):
        one.dispose(Disposal.FAIL, routing.batch)
    while one.entries:
        one.dispose(Disposal.RELEASE, routing.batch)
    routing.give(queue, one, 9)
    routing.advance(500)
    assert one.taken == [b"a9", b"a4", b"a0"] * 2


def test_a_scheduled_message_joins_its_group_when_it_falls_due() -> None:
    routing = Routing()
    queue = routing.queue()
    one = routing.consumer(queue, 9)
    message = new_message(b"a1", group="a", deliver_at_ms=WALL_START_MS + 100)
    queue.put(message, routing.batch)
    routing.put_grouped(queue, "a2")
    routing.advance(100)
    assert one.taken == [b"a2", b"a1"]
    while one.entries:
        one.dispose(Disposal.REMOVE, routing.batch)
    routing.leave(queue, one, Disposal.RELEASE)
    assert groups_of(queue).size() == 0
