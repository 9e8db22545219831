"""Consumers and browsers with filters: they get what matches, and judge each entry once."""

import random

import pytest

from broker.message import Message
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.redelivery import PAUSE_FIRST_MS, RELEASES_FREE, Disposal
from broker.routing.entries.rescan import RETURNED_MAX
from broker.routing.queues.queue import Queue
from broker.routing.queues.selection import JUDGED_AT_ONCE, SHARE_MIN
from broker.routing.selector import parse_selector
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing
from tests.support.selected import selectable

pytestmark = pytest.mark.requirement("RCV-05")

RED = "color = 'red'"
BLUE = "color = 'blue'"


def colored(color: str, number: int = 0, *, priority: int = 4) -> Message:
    return selectable({"color": color, "n": number}, priority=priority, body=f"{color} {number}")


def put(routing: Routing, queue: Queue, *messages: Message) -> None:
    for message in messages:
        queue.put(message, routing.batch)
    routing.pump()


def selective(
    routing: Routing, queue: Queue, text: str, credit: int = 0, *, settles: bool = False
) -> RecordingConsumer:
    """Return a consumer of `queue` with the selector `text`; `settles` if it settles at once."""
    consumer = RecordingConsumer(settles=routing.batch if settles else None)
    consumer.filter = ConsumerFilter(parse_selector(text))
    queue.attach_consumer(consumer)
    routing.give(queue, consumer, credit)
    return consumer


def browsing(routing: Routing, queue: Queue, text: str, credit: int = 0) -> RecordingConsumer:
    consumer = RecordingConsumer()
    consumer.filter = ConsumerFilter(parse_selector(text))
    queue.attach_browser(consumer)
    routing.give(queue, consumer, credit)
    return consumer


def judged(queue: Queue) -> int:
    selection = queue.delivery._selection
    assert selection is not None
    return int(selection.judged)


def numbers(consumer: RecordingConsumer) -> list[int]:
    return [int(entry.split()[-1]) for entry in consumer.taken]


def look_on(routing: Routing, times: int) -> None:
    """Let up to `times` further dispatches run."""
    for _ in range(times):
        routing.advance(0)


# -- delivery to matching consumers


def test_a_consumer_gets_what_it_wants_and_leaves_the_rest() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, colored("red", 1), colored("blue", 2), colored("red", 3))
    red = selective(routing, queue, RED, 10)
    assert numbers(red) == [1, 3]
    put(routing, queue, colored("blue", 4), colored("red", 5))
    assert numbers(red) == [1, 3, 5]
    assert numbers(routing.consumer(queue, 10)) == [2, 4]


def test_priorities_come_first() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, colored("red", 1), colored("blue", 2, priority=9))
    put(routing, queue, colored("red", 3, priority=8))
    assert numbers(selective(routing, queue, RED, 10)) == [3, 1]


def test_consumers_that_want_the_same_take_turns() -> None:
    routing = Routing()
    queue = routing.queue()
    one, other = selective(routing, queue, RED, 9), selective(routing, queue, RED, 9)
    put(routing, queue, *[colored("red", number) for number in range(6)])
    assert sorted(numbers(one) + numbers(other)) == [0, 1, 2, 3, 4, 5]
    assert len(one.taken) == len(other.taken) == 3


def test_what_nobody_wants_holds_up_nobody() -> None:
    routing = Routing()
    queue = routing.queue()
    red, blue = selective(routing, queue, RED, 10), selective(routing, queue, BLUE, 10)
    put(routing, queue, colored("green", 1), colored("blue", 2), colored("red", 3))
    assert (numbers(red), numbers(blue), queue.backlogs.waiting) == ([3], [2], 1)


def test_a_message_that_came_back_is_offered_to_who_wants_it() -> None:
    routing = Routing()
    queue = routing.queue()
    plain = routing.consumer(queue, 3)
    red, blue = selective(routing, queue, RED), selective(routing, queue, BLUE)
    put(routing, queue, colored("red", 1), colored("blue", 2), colored("red", 3))
    put(routing, queue, colored("red", 4))
    routing.give(queue, red, 10)
    routing.give(queue, blue, 10)
    assert numbers(red) == [4]
    plain.dispose(Disposal.RELEASE, routing.batch, index=2)
    plain.dispose(Disposal.RELEASE, routing.batch, index=1)
    plain.dispose(Disposal.RELEASE, routing.batch, index=0)
    routing.pump()
    assert (numbers(red), numbers(blue)) == ([4, 1, 3], [2])


def test_a_selector_on_the_delivery_count_is_asked_again() -> None:
    routing = Routing()
    queue = routing.queue()
    again = selective(routing, queue, "JMSXDeliveryCount > 1", 10)
    plain = routing.consumer(queue, 1)
    put(routing, queue, colored("red", 1))
    assert again.taken == []
    plain.dispose(Disposal.FAIL, routing.batch)
    routing.pump()
    assert numbers(again) == [1]


def test_what_a_consumer_refused_it_does_not_get_again() -> None:
    routing = Routing()
    queue = routing.queue()
    red = selective(routing, queue, RED, 10)
    put(routing, queue, colored("red", 1), colored("red", 2))
    red.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.pump()
    routing.advance(10_000)
    assert numbers(red) == [1, 2]
    assert numbers(selective(routing, queue, RED, 10)) == [1]


def test_a_pause_ends_for_it_too() -> None:
    routing = Routing()
    queue = routing.queue()
    red = selective(routing, queue, RED, 100)
    put(routing, queue, colored("blue", 0), colored("red", 1))
    for _ in range(RELEASES_FREE + 1):
        red.dispose(Disposal.RELEASE, routing.batch)
        routing.pump()
    held_up = len(red.taken)
    routing.advance(PAUSE_FIRST_MS)
    assert (held_up, len(red.taken)) == (RELEASES_FREE + 1, RELEASES_FREE + 2)


def test_after_a_pause_messages_come_in_their_order() -> None:
    routing = Routing()
    queue = routing.queue()
    red = selective(routing, queue, RED, RELEASES_FREE + 3)
    put(routing, queue, colored("red", 1))
    for _ in range(RELEASES_FREE + 1):
        red.dispose(Disposal.RELEASE, routing.batch)
        routing.pump()
    put(routing, queue, colored("red", 2), colored("red", 3))
    red.dispose(Disposal.RELEASE, routing.batch)
    routing.advance(PAUSE_FIRST_MS)
    routing.give(queue, red, 2)
    assert numbers(red)[RELEASES_FREE + 1 :] == [2, 3, 1, 2]


def test_the_expired_is_not_delivered() -> None:
    routing = Routing()
    queue = routing.queue()
    message = Message(
        encoded=colored("red", 1).encoded,
        durable=False,
        priority=4,
        ttl_ms=-1,
        arrived_ms=0,
        expires_at_ms=routing.clock.wall_ms() + 10,
    )
    put(routing, queue, message, colored("red", 2))
    routing.clock.advance(20)
    assert numbers(selective(routing, queue, RED, 10)) == [2]
    assert queue.backlogs.waiting == 0


# -- drains


def test_a_drain_ends_when_nothing_matching_is_left() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, colored("blue", 1), colored("red", 2), colored("blue", 3))
    red = selective(routing, queue, RED)
    routing.give(queue, red, 10, drain=True)
    assert (numbers(red), red.drains) == ([2], 1)


def test_a_drain_ends_without_room_where_nothing_matching_waits() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, colored("blue", 1))
    red = selective(routing, queue, RED)
    red.held = True
    routing.give(queue, red, 10, drain=True)
    assert red.drains == 1


def test_a_drain_waits_for_room_where_something_matching_does() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, colored("blue", 1), colored("red", 2))
    red = selective(routing, queue, RED)
    red.held = True
    routing.give(queue, red, 10, drain=True)
    assert red.drains == 0
    red.held = False
    routing.give(queue, red, 10, drain=True)
    assert (numbers(red), red.drains) == ([2], 1)


def test_a_drain_does_not_end_before_everything_is_judged() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue")] * (JUDGED_AT_ONCE + 10), colored("red", 1))
    red = selective(routing, queue, RED)
    routing.give(queue, red, 10, drain=True)
    assert (red.taken, red.drains) == ([], 0)
    look_on(routing, 1)
    assert (numbers(red), red.drains) == ([1], 1)


def test_who_stands_by_is_not_kept_waiting_by_a_drain() -> None:
    routing = Routing()
    queue = routing.queue()
    sole = RecordingConsumer()
    sole.exclusive = True
    queue.attach_consumer(sole)
    put(routing, queue, colored("red", 1))
    red = selective(routing, queue, RED)
    routing.give(queue, red, 10, drain=True)
    assert (red.taken, red.drains) == ([], 1)


# -- browsers


def test_a_browser_sees_what_it_wants() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, colored("red", 1), colored("blue", 2), colored("red", 3, priority=9))
    browser = browsing(routing, queue, RED, 10)
    put(routing, queue, colored("blue", 4), colored("red", 5))
    assert [int(copy.split()[-1]) for copy in browser.copies] == [3, 1, 5]
    assert (queue.backlogs.waiting, judged(queue)) == (5, 5)


def test_the_drain_of_a_browser_ends_when_nothing_matching_is_left() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, colored("blue", 1), colored("red", 2), colored("blue", 3))
    browser = browsing(routing, queue, RED)
    browser.held = True
    routing.give(queue, browser, 10, drain=True)
    assert browser.drains == 0
    browser.held = False
    routing.give(queue, browser, 10, drain=True)
    assert (len(browser.copies), browser.drains) == (1, 1)


def test_a_browser_of_a_long_queue_goes_on_later() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue")] * JUDGED_AT_ONCE, colored("red", 1))
    browser = browsing(routing, queue, RED)
    routing.give(queue, browser, 10, drain=True)
    assert (browser.copies, browser.drains) == ([], 0)
    look_on(routing, 1)
    assert (len(browser.copies), browser.drains) == (1, 1)
    look_on(routing, 5)
    assert judged(queue) == JUDGED_AT_ONCE + 1


# -- cost


def test_each_entry_is_judged_once_by_each_consumer() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue", number) for number in range(500)])
    consumers = [selective(routing, queue, RED, 10) for _ in range(3)]
    assert judged(queue) == 1500
    for number in range(10):
        put(routing, queue, colored("blue", number))
    assert judged(queue) == 1530
    for consumer in consumers:
        routing.give(queue, consumer, 10)
    routing.advance(1000)
    assert judged(queue) == 1530


def test_a_consumer_without_credit_judges_nothing() -> None:
    routing = Routing()
    queue = routing.queue()
    selective(routing, queue, RED)
    put(routing, queue, *[colored("red", number) for number in range(10)])
    assert judged(queue) == 0


def test_what_came_back_is_judged_alone() -> None:
    routing = Routing()
    queue = routing.queue()
    red = selective(routing, queue, RED, 1000)
    put(routing, queue, colored("red", 1), *[colored("blue")] * 500)
    before = judged(queue)
    for _ in range(5):
        red.dispose(Disposal.COUNT, routing.batch)
        routing.pump()
    assert judged(queue) == before + 5


def test_what_came_back_in_great_number_is_found_by_looking_again() -> None:
    routing = Routing()
    queue = routing.queue()
    many = RETURNED_MAX + 10
    holder = routing.consumer(queue, many)
    red = selective(routing, queue, RED)
    put(routing, queue, *[colored("red", number) for number in range(many)])
    put(routing, queue, colored("red", many))
    routing.give(queue, red, 1)
    assert numbers(red) == [many]
    while holder.entries:
        holder.dispose(Disposal.RELEASE, routing.batch)
    routing.give(queue, red, 2 * many)
    assert numbers(red)[1:] == list(range(many))


def test_a_long_queue_is_judged_in_parts_and_everybody_has_a_turn() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue")] * (3 * JUDGED_AT_ONCE), colored("red", 1))
    consumers = [selective(routing, queue, RED) for _ in range(3)]
    for consumer in consumers:
        consumer.credit = 10
        queue.consumer_ready(consumer, drain=False)
    for dispatch in range(1, 10):
        routing.advance(0)
        assert judged(queue) <= (dispatch + 1) * JUDGED_AT_ONCE
    look_on(routing, 5)
    assert [number for consumer in consumers for number in numbers(consumer)] == [1]
    assert 7 * JUDGED_AT_ONCE < judged(queue) <= 9 * JUDGED_AT_ONCE + 1


def test_consumers_have_equal_shares_of_what_is_judged_at_a_time() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue")] * JUDGED_AT_ONCE, colored("red", 1))
    consumers = [RecordingConsumer(10) for _ in range(4)]
    for consumer in consumers:
        consumer.filter = ConsumerFilter(parse_selector(RED))
        queue.attach_consumer(consumer)
        queue.consumer_ready(consumer, drain=False)
    routing.pump()
    places = [consumer.passed[4] for consumer in consumers if consumer.passed is not None]
    assert places == [JUDGED_AT_ONCE // 4 - 1] * 4


def test_of_very_many_consumers_those_come_next_that_had_no_share() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue")] * 30)
    many = 2 * JUDGED_AT_ONCE // SHARE_MIN
    consumers = [RecordingConsumer(10) for _ in range(many)]
    for consumer in consumers:
        consumer.filter = ConsumerFilter(parse_selector(RED))
        queue.attach_consumer(consumer)
        queue.consumer_ready(consumer, drain=False)
    routing.pump()
    assert judged(queue) == JUDGED_AT_ONCE
    look_on(routing, 1)
    places = [consumer.passed[4] for consumer in consumers if consumer.passed is not None]
    assert places == [SHARE_MIN - 1] * many


def test_lower_priorities_wait_until_higher_ones_are_judged() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue", priority=9)] * (JUDGED_AT_ONCE + 1))
    put(routing, queue, colored("red", 1), colored("red", 2, priority=9))
    red = selective(routing, queue, RED, 10)
    assert red.taken == []
    look_on(routing, 1)
    assert numbers(red) == [2, 1]


def test_others_are_served_while_a_long_queue_is_judged() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue")] * (2 * JUDGED_AT_ONCE))
    put(routing, queue, colored("blue", 7, priority=0))
    selective(routing, queue, RED, 10)
    plain = routing.consumer(queue, 3 * JUDGED_AT_ONCE)
    assert len(plain.taken) == 2 * JUDGED_AT_ONCE + 1


def test_a_queue_that_is_deleted_is_not_looked_at_any_more() -> None:
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *[colored("blue")] * (2 * JUDGED_AT_ONCE))
    red = selective(routing, queue, RED, 10)
    routing.router.delete(queue, routing.batch)
    routing.advance(0)
    assert (red.lost_its_node, judged(queue)) == (True, JUDGED_AT_ONCE)


# -- all of it together


@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_is_wanted_waits_while_who_wants_it_has_room(seed: int) -> None:
    """Random arrivals, credit, outcomes, attaches and detaches, checked against the content."""
    chance = random.Random(seed)
    routing = Routing()
    queue = routing.queue()
    wants = ["color = 'red'", "color = 'blue'", "n > 5", "color = 'red' AND n < 5"]
    consumers: list[RecordingConsumer] = []
    for step in range(200):
        match chance.randrange(7):
            case 0 | 1:
                color = chance.choice(["red", "blue", "green"])
                put(routing, queue, colored(color, step % 10, priority=chance.randrange(3)))
            case 2 if len(consumers) < 6:
                text = chance.choice(wants)
                consumers.append(selective(routing, queue, text, chance.randrange(3)))
            case 3 if consumers:
                routing.give(queue, chance.choice(consumers), chance.randrange(5))
            case 4 if consumers and chance.random() < 0.3:
                leaving = consumers.pop(chance.randrange(len(consumers)))
                while leaving.entries:
                    leaving.dispose(Disposal.RELEASE, routing.batch)
                queue.detach_consumer(leaving, queue, routing.batch)
            case _ if consumers:
                consumer = chance.choice(consumers)
                if consumer.entries:
                    disposal = chance.choice([Disposal.COUNT, Disposal.RELEASE, Disposal.REMOVE])
                    index = chance.randrange(len(consumer.entries))
                    consumer.dispose(disposal, routing.batch, index=index)
        routing.advance(6000)
        check(queue, consumers)


def check(queue: Queue, consumers: list[RecordingConsumer]) -> None:
    """Check that consumers have only matching messages, and that none with room waits for one."""
    waiting = [
        entry.message for backlog in queue.backlogs.existing() for entry in backlog.after(-1, 1000)
    ]
    for consumer in consumers:
        wanted = consumer.filter
        assert wanted is not None
        assert all(wanted.passes(entry.message) for entry in consumer.entries)
        if consumer.has_room():
            assert not [message for message in waiting if wanted.passes(message)]


def test_a_search_begins_in_front_of_what_was_found_last() -> None:
    """Empty places and judged entries are not examined again for each later message."""
    routing = Routing()
    queue = routing.queue()
    put(routing, queue, *(colored("red", number) for number in range(200)))
    consumer = selective(routing, queue, RED)
    for count in range(1, 201):
        routing.give(queue, consumer, 1)
        assert consumer.passed is not None
        assert consumer.passed[4] == consumer.entries[-1].position - 1 == count - 2
    assert judged(queue) == 200
