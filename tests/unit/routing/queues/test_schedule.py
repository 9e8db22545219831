"""Scheduled and paused entries of a queue: until when they wait, and in which order they follow."""

import gc
import weakref
from random import Random
from typing import Final

import pytest

from broker.routing.addresses.policy import REJECT, AddressPolicy
from broker.routing.context import RELEASED_IN_TURN
from broker.routing.entries.record_mapping import stored_position
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import QueueFull
from broker.routing.queues.queue import Queue
from broker.routing.queues.schedule import LOOK_AGAIN_MS, Schedule, Timeline
from broker.routing.timer_queue import NOTHING
from tests.support.clock import START_MS, WALL_START_MS
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, bodies, counts, new_message

FAR: Final = 2**63 - 1


def put_later(
    routing: Routing, queue: Queue, body: bytes, delay_ms: int, *, priority: int = 4
) -> None:
    """Put a message that is due `delay_ms` after the start."""
    due = WALL_START_MS + delay_ms
    queue.put(new_message(body, priority=priority, deliver_at_ms=due), routing.batch)


# -- delivery times


@pytest.mark.requirement("DLY-01", "DLY-04")
def test_a_message_is_not_available_before_its_time_and_is_at_that_moment() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue, 9)
    put_later(routing, queue, b"later", 1000)
    routing.put(queue, b"now")
    routing.pump()
    assert counts(queue) == (0, 1, 8)
    assert queue.state.held() == 1
    routing.advance(999)
    assert consumer.taken == [b"now"]
    assert routing.router.timer_queue.next_deadline_ms() == START_MS + 1000, "the timer knows when"
    routing.advance(1)
    assert consumer.taken == [b"now", b"later"]
    assert queue.state.held() == 0
    assert routing.router.timer_queue.next_deadline_ms() == NOTHING


@pytest.mark.requirement("OPS-04")
def test_the_lateness_of_the_first_message_that_is_due_is_measured() -> None:
    routing = Routing()
    queue = routing.queue()
    for delay_ms in (1000, 1001, 5000):
        put_later(routing, queue, b"later", delay_ms)
    routing.advance(1003)
    routing.advance(4000)
    lateness = routing.stats.measured.schedule_lateness_us
    assert (sum(lateness.counts), lateness.total) == (2, 6000)


@pytest.mark.requirement("DLY-01")
@pytest.mark.parametrize("delay_ms", [0, -1, -WALL_START_MS + 1])
def test_a_message_whose_time_has_come_waits_for_nothing(delay_ms: int) -> None:
    routing = Routing()
    queue = routing.queue()
    put_later(routing, queue, b"due", delay_ms)
    assert queue.backlogs.waiting == 1
    assert queue.state.held() == 0


@pytest.mark.requirement("DLY-03")
def test_a_message_takes_its_place_when_it_falls_due() -> None:
    routing = Routing()
    queue = routing.queue()
    put_later(routing, queue, b"third", 20)
    put_later(routing, queue, b"second", 10)
    put_later(routing, queue, b"as late", 20)
    routing.put(queue, b"first")
    routing.advance(15)
    routing.put(queue, b"between")
    put_later(routing, queue, b"urgent", 20, priority=9)
    routing.advance(5)
    routing.put(queue, b"last")
    expected = [b"urgent", b"first", b"second", b"between", b"third", b"as late", b"last"]
    assert routing.consumer(queue, 9).taken == expected


@pytest.mark.requirement("DLY-03")
def test_a_browser_that_has_come_to_the_end_sees_what_falls_due() -> None:
    routing = Routing()
    queue = routing.queue()
    browser = routing.browser(queue, 9)
    put_later(routing, queue, b"later", 10)
    routing.put(queue, *[b"x"] * 3)
    routing.advance(9)
    assert browser.copies == [b"x"] * 3
    routing.advance(1)
    assert browser.copies == [*[b"x"] * 3, b"later"]


@pytest.mark.requirement("DLY-03")
def test_a_message_to_a_topic_is_for_the_subscribers_of_that_moment() -> None:
    routing = Routing()
    topic = routing.topic()
    early, late = RecordingConsumer(9), RecordingConsumer(9)
    routing.subscribe(topic, early).consumer_ready(early, drain=False)
    topic.put(new_message(b"later", deliver_at_ms=WALL_START_MS + 10), routing.batch)
    routing.subscribe(topic, late).consumer_ready(late, drain=False)
    routing.advance(9)
    assert early.taken == []
    routing.advance(1)
    assert early.taken == [b"later"]
    assert late.taken == []


@pytest.mark.requirement("DLY-03")
def test_temporary_queues_hold_messages_back_too() -> None:
    routing = Routing()
    queue = routing.temporary_queue()
    put_later(routing, queue, b"later", 10)
    consumer = routing.consumer(queue, 1)
    routing.advance(9)
    assert not consumer.taken
    routing.advance(1)
    assert consumer.taken == [b"later"]


@pytest.mark.requirement("DLY-04")
def test_a_clock_that_was_put_back_makes_nothing_come_early() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue, 1)
    put_later(routing, queue, b"later", 10)
    routing.clock.set_wall(-5000)
    routing.advance(10)
    assert not consumer.taken
    routing.advance(4999)
    assert not consumer.taken
    routing.advance(1)
    assert consumer.taken == [b"later"]


@pytest.mark.requirement("DLY-04")
def test_a_clock_that_was_put_forward_is_noticed() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue, 1)
    hour = 3_600_000
    put_later(routing, queue, b"later", hour)
    routing.clock.set_wall(hour)
    routing.advance(int(LOOK_AGAIN_MS) - 1)
    assert not consumer.taken
    routing.advance(1)
    assert consumer.taken == [b"later"]


@pytest.mark.requirement("DLY-04")
def test_an_earlier_message_is_not_late_because_a_later_one_came_first() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue, 9)
    for delay in (30, 20, 10):
        put_later(routing, queue, b"%d" % delay, delay)
    for delay in (10, 20, 30):
        routing.advance(10)
        assert consumer.taken[-1] == b"%d" % delay
    assert routing.router.timer_queue.next_deadline_ms() == NOTHING


@pytest.mark.attack("R7")
@pytest.mark.requirement("DLY-04")
def test_a_moment_that_never_comes_breaks_nothing() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"never", deliver_at_ms=FAR), routing.batch)
    queue.put(new_message(b"nor that", deliver_at_ms=FAR), routing.batch)
    put_later(routing, queue, b"later", 10)
    consumer = routing.consumer(queue, 9)
    for _ in range(5):
        routing.advance(int(LOOK_AGAIN_MS))
    assert consumer.taken == [b"later"]
    assert [entry.message.encoded for entry in queue.state.scheduled()] == [b"never", b"nor that"]
    assert len(routing.router.timer_queue._heap) == 1


@pytest.mark.attack("R7")
@pytest.mark.requirement("DLY-04")
def test_many_that_fall_due_at_once_come_in_turns_with_everything_else() -> None:
    routing = Routing()
    queue = routing.queue()
    for _ in range(int(RELEASED_IN_TURN) + 5):
        put_later(routing, queue, b"x", 10)
    routing.advance(10)
    assert queue.backlogs.waiting == RELEASED_IN_TURN
    assert routing.router.timer_queue.next_deadline_ms() == routing.clock.now_ms()
    routing.advance(0)
    assert queue.backlogs.waiting == RELEASED_IN_TURN + 5


@pytest.mark.attack("R7")
@pytest.mark.requirement("DLY-04")
def test_queues_whose_messages_fall_due_together_share_a_turn() -> None:
    routing = Routing()
    queues = [routing.queue(f"q{number}") for number in range(10)]
    each = int(RELEASED_IN_TURN) // 4
    for queue in queues:
        for _ in range(each):
            put_later(routing, queue, b"x", 10)
    released: list[int] = []
    routing.advance(10)
    while not released or released[-1] < 10 * each:
        released.append(sum(int(queue.backlogs.waiting) for queue in queues))
        routing.advance(0)
    assert released == [RELEASED_IN_TURN, 2 * RELEASED_IN_TURN, 10 * each]


@pytest.mark.requirement("DLY-04")
def test_a_hundred_thousand_messages_wait_in_any_order() -> None:
    routing = Routing()
    queue = routing.queue()
    random = Random(7)
    delays = [random.randrange(1, 10**9) for _ in range(100_000)]
    for delay in delays:
        put_later(routing, queue, b"%d" % delay, delay)
    assert len(routing.router.timer_queue._heap) < 100, "the heap is the queue's, not the agenda's"
    expected = [b"%d" % delay for delay in sorted(delays)]
    assert bodies(queue.state.scheduled()) == expected
    consumer = routing.consumer(queue, 200_000, settles=True)
    routing.clock.advance(10**9)
    while queue.state.held():
        routing.advance(0)
    assert consumer.taken == expected


# -- messages that expire


@pytest.mark.requirement("DLY-05")
@pytest.mark.parametrize("expiry", ["", "expired"])
def test_a_message_that_expires_before_its_time_is_never_delivered(expiry: str) -> None:
    routing = Routing(policy=AddressPolicy(expiry=expiry))
    queue = routing.queue()
    consumer = routing.consumer(queue, 9)
    due, over = WALL_START_MS + 100, WALL_START_MS + 50
    queue.put(new_message(b"late", deliver_at_ms=due, expires_at_ms=over), routing.batch)
    queue.put(new_message(b"as late", deliver_at_ms=due, expires_at_ms=due), routing.batch)
    routing.advance(49)
    assert queue.state.held() == 2
    routing.advance(1)
    assert queue.state.held() == 1
    assert routing.stats.expired == 1
    routing.advance(50)
    assert routing.stats.expired == 2
    assert consumer.taken == []
    assert counts(queue) == (0, 0, 0)
    moved = routing.router.queues.get("expired")
    assert (moved is not None and moved.backlogs.waiting) == (2 if expiry else False)


@pytest.mark.requirement("DLY-05")
def test_a_message_that_falls_due_in_time_may_still_expire() -> None:
    routing = Routing()
    queue = routing.queue()
    due, over = WALL_START_MS + 50, WALL_START_MS + 100
    queue.put(new_message(deliver_at_ms=due, expires_at_ms=over), routing.batch)
    routing.advance(50)
    assert queue.backlogs.waiting == 1
    routing.clock.advance(50)
    assert routing.consumer(queue, 1).taken == []
    assert counts(queue) == (0, 0, 0)


# -- limits, listing, cancelling, deleting


@pytest.mark.requirement("DLY-04")
def test_limits_of_a_queue_count_what_it_holds_back() -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2))
    queue = routing.queue()
    put_later(routing, queue, b"a", 10)
    routing.put(queue, b"b")
    with pytest.raises(QueueFull):
        routing.put(queue, b"c")
    routing = Routing(policy=AddressPolicy(max_bytes=2, full=REJECT))
    queue = routing.queue()
    put_later(routing, queue, b"aa", 10)
    with pytest.raises(QueueFull):
        put_later(routing, queue, b"b", 10)


@pytest.mark.requirement("DLY-04")
def test_scheduled_messages_are_listed_and_cancelled() -> None:
    routing = Routing()
    queue = routing.queue()
    assert queue.state.scheduled() == []
    assert not queue.cancel(0, routing.batch)
    for name, delay in ((b"c", 30), (b"a", 10), (b"b", 20)):
        due = WALL_START_MS + delay
        queue.put(new_message(name, durable=True, deliver_at_ms=due), routing.batch)
    assert bodies(queue.state.scheduled()) == [b"a", b"b", b"c"]
    number = stored_position(queue.state.scheduled()[0])
    assert queue.cancel(number, routing.batch)
    assert not queue.cancel(number, routing.batch)
    assert bodies(queue.state.scheduled()) == [b"b", b"c"]
    assert sorted(each.encoded for each in routing.stored()) == [b"b", b"c"]
    assert counts(queue) == (0, 0, 2)
    consumer = routing.consumer(queue, 9)
    routing.advance(30)
    assert consumer.taken == [b"b", b"c"]


@pytest.mark.requirement("DLY-04")
def test_what_was_cancelled_is_not_kept() -> None:
    routing = Routing()
    queue = routing.queue()
    for _ in range(1000):
        put_later(routing, queue, b"x", 10**6)
        assert queue.cancel(stored_position(queue.state.scheduled()[0]), routing.batch)
    schedule = queue.state.schedule
    assert schedule is not None
    assert len(schedule.by_wall._heap) < 100


@pytest.mark.incompatible_with_mypyc
def test_a_deleted_queue_takes_what_it_held_back_with_it() -> None:
    routing = Routing()
    queue = routing.queue()
    put_later(routing, queue, b"later", 10)
    routing.router.delete(queue, routing.batch)
    assert (queue.state.held(), queue.state.bytes) == (0, 0)
    alive = weakref.ref(queue)
    del queue
    gc.collect()
    assert alive() is None, "the agenda still has the moment, but not the queue"
    routing.advance(10)
    assert routing.router.timer_queue.next_deadline_ms() == NOTHING


# -- pauses after failures


def failing(**settings: float) -> Routing:
    """Return a router whose queues pause failed entries for 1000 ms, unless `settings` differ."""
    chosen = {"redelivery_delay_ms": 1000, **settings}
    return Routing(policy=AddressPolicy(**chosen))  # type: ignore[arg-type]


@pytest.mark.parametrize("disposal", [Disposal.FAIL, Disposal.FAIL_ELSEWHERE])
def test_an_entry_that_failed_waits_and_others_go_past_it(disposal: Disposal) -> None:
    routing = failing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    first = routing.consumer(queue, 1)
    first.dispose(disposal, routing.batch)
    second = routing.consumer(queue, 2)
    assert second.taken == [b"b"]
    assert (queue.backlogs.waiting, queue.state.held()) == (0, 1)
    routing.advance(999)
    assert second.taken == [b"b"]
    routing.advance(1)
    assert second.taken == [b"b", b"a"]
    assert second.entries[1].delivery_count == 1
    assert queue.state.held() == 0


def test_an_entry_that_waited_returns_to_its_place() -> None:
    routing = failing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b", b"c")
    consumer = routing.consumer(queue, 2)
    consumer.dispose(Disposal.FAIL, routing.batch)
    consumer.dispose(Disposal.RELEASE, routing.batch)
    routing.advance(1000)
    routing.give(queue, consumer, 9)
    assert bodies(consumer.entries) == [b"a", b"b", b"c"]


def test_pauses_grow_and_then_the_entry_is_dead_lettered() -> None:
    routing = failing(redelivery_backoff=2.0, redelivery_delay_max_ms=3000, max_delivery_count=4)
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue, 9)
    for delay in (1000, 2000, 3000):
        consumer.dispose(Disposal.FAIL, routing.batch)
        routing.advance(delay - 1)
        assert not consumer.entries
        routing.advance(1)
        assert len(consumer.entries) == 1
    consumer.dispose(Disposal.FAIL, routing.batch)
    assert (queue.state.held(), queue.backlogs.waiting) == (0, 0)
    assert routing.queue("DLQ").backlogs.waiting == 1


@pytest.mark.parametrize("disposal", [Disposal.RELEASE, Disposal.COUNT, Disposal.ELSEWHERE])
def test_what_did_not_fail_does_not_wait(disposal: Disposal) -> None:
    routing = failing()
    queue = routing.queue()
    routing.put(queue, b"a")
    routing.consumer(queue, 1).dispose(disposal, routing.batch)
    assert (queue.backlogs.waiting, queue.state.held()) == (1, 0)


def test_a_pause_takes_no_notice_of_the_clock_on_the_wall() -> None:
    routing = failing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue, 9)
    consumer.dispose(Disposal.FAIL, routing.batch)
    routing.clock.set_wall(-100_000)
    routing.advance(1000)
    assert consumer.taken == [b"a", b"a"]


def test_an_entry_expires_while_it_waits() -> None:
    routing = failing()
    queue = routing.queue()
    queue.put(new_message(expires_at_ms=WALL_START_MS + 500), routing.batch)
    consumer = routing.consumer(queue, 9)
    consumer.dispose(Disposal.FAIL, routing.batch)
    routing.advance(500)
    assert (queue.state.held(), routing.stats.expired) == (0, 1)
    assert counts(queue) == (0, 0, 0)


# -- the timeline by itself


def test_a_timeline_lets_go_of_what_is_due_in_order() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b", b"c")
    a, b, c = routing.consumer(queue, 3).entries
    timeline = Timeline()
    assert timeline.next_ms() == NOTHING
    assert timeline.pop(FAR) is None
    for at_ms, entry in ((20, a), (10, b), (20, c)):
        timeline.add(at_ms, entry)
    assert (timeline.size(), timeline.next_ms()) == (3, 10)
    assert timeline.entries() == [b, a, c]
    assert timeline.pop(9) is None
    assert timeline.cancel(stored_position(a)) is a
    assert [timeline.pop(20), timeline.pop(20), timeline.pop(20)] == [b, c, None]
    for entry in (a, b, c):
        timeline.add(30, entry)
    timeline.cancel(stored_position(c))
    assert timeline.drain(1) == [b]
    assert timeline.drain(2) == [a]
    assert (timeline.size(), timeline.next_ms()) == (0, NOTHING)


def test_a_closed_schedule_asks_for_nothing() -> None:
    routing = Routing()
    schedule = Schedule(routing.queue(), routing.router.context.routing)
    schedule.close()
    assert schedule.take_due() == ([], [])
    assert schedule.size() == 0
    assert routing.router.timer_queue.next_deadline_ms() == NOTHING
