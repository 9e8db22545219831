"""A queue: order, acquisition, return, settlement, expiry, limits, the end."""

import pytest

from broker.routing.errors import QueueFull
from broker.routing.policy import AddressPolicy
from broker.routing.queue import SWEEP_AT_MOST, SWEEP_EVERY_MS, Queue
from broker.routing.redelivery import Disposal
from tests.support.clock import WALL_START_MS
from tests.support.parties import RecordingConsumer, RecordingProducer
from tests.support.routing import Routing, bodies, new_message


def counts(queue: Queue) -> tuple[int, int, int]:
    return queue.waiting, queue.acquired, queue.bytes


# -- order and turns


@pytest.mark.requirement("RCV-03")
def test_priority_comes_before_age() -> None:
    routing = Routing()
    queue = routing.queue()
    for number, priority in enumerate((4, 9, 0, 4, 9)):
        routing.put(queue, b"%d" % number, priority=priority)
    assert routing.consumer(queue, 9).taken == [b"1", b"4", b"0", b"3", b"2"]
    routing.put(queue, b"5", priority=0)
    routing.put(queue, b"6", priority=7)
    routing.pump()
    assert routing.consumer(queue, 9).taken == []


def test_consumers_take_turns_by_their_credit() -> None:
    routing = Routing()
    queue = routing.queue()
    one, other = routing.consumer(queue, 2), routing.consumer(queue, 9)
    routing.put(queue, b"a", b"b", b"c", b"d", b"e")
    routing.pump()
    assert (one.taken, other.taken) == ([b"a", b"c"], [b"b", b"d", b"e"])
    assert counts(queue) == (0, 5, 5)


def test_nothing_goes_to_a_consumer_that_is_held_up() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue)
    consumer.held = True
    routing.give(queue, consumer, 5)
    routing.put(queue, b"a")
    routing.pump()
    assert counts(queue) == (1, 0, 1)
    consumer.held = False
    routing.give(queue, consumer, 5)
    assert consumer.taken == [b"a"]


def test_a_consumer_that_settles_at_once_leaves_nothing_acquired() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    assert routing.consumer(queue, 5, settles=True).taken == [b"a", b"b"]
    assert counts(queue) == (0, 0, 0)
    assert routing.stats.acknowledged == 2


# -- outcomes

OUTCOMES = {
    # disposal: waiting afterwards, delivery-count, failures, acknowledged, requeued
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
    assert queue.waiting == 1
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


def test_a_consumer_that_refuses_everything_meets_every_entry_once() -> None:
    """Thousands, since looking at all that was refused for each entry would take minutes."""
    routing = Routing()
    queue = routing.queue()
    count = 3000
    routing.put(queue, *(b"%d" % number for number in range(count)))
    consumer = routing.consumer(queue)
    for _ in range(count):
        routing.give(queue, consumer, 1)
        consumer.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, consumer, 1)
    assert len(set(consumer.taken)) == len(consumer.taken) == count
    assert counts(queue)[:2] == (count, 0)


@pytest.mark.requirement("RCV-08")
def test_an_entry_released_ten_times_waits_for_that_link_and_for_no_other() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"looping", b"next")
    consumer = routing.consumer(queue)
    for _ in range(10):
        routing.give(queue, consumer, 1)
        consumer.dispose(Disposal.RELEASE, routing.batch)
    routing.give(queue, consumer, 9)
    assert bodies(consumer.entries) == [b"next"]
    routing.advance(99)
    assert bodies(consumer.entries) == [b"next"]
    routing.advance(1)
    assert bodies(consumer.entries) == [b"next", b"looping"]
    consumer.dispose(Disposal.RELEASE, routing.batch, index=1)
    routing.advance(199)
    assert bodies(consumer.entries) == [b"next"]
    assert routing.consumer(queue, 1).taken == [b"looping"]


@pytest.mark.requirement("RCV-02", "RCV-08")
def test_only_failures_are_held_against_the_redelivery_limit() -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=2))
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue)
    routing.give(queue, consumer, 1)
    entry = consumer.entries[0]
    for disposal in (Disposal.COUNT, Disposal.RELEASE, Disposal.COUNT, Disposal.FAIL):
        routing.give(queue, consumer, 1)
        consumer.dispose(disposal, routing.batch)
    assert (queue.waiting, entry.delivery_count, entry.failures) == (1, 3, 1)
    routing.give(queue, consumer, 1)
    consumer.dispose(Disposal.FAIL, routing.batch)
    assert counts(queue) == (0, 0, 0)
    assert routing.stats.dead_lettered == 1
    assert routing.consumer(routing.queue("DLQ"), 1).entries[0].delivery_count == 0


def test_a_consumer_that_leaves_gets_nothing_more() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer, other = routing.consumer(queue, 2), routing.consumer(queue)
    routing.put(queue, b"a")
    routing.pump()
    consumer.dispose(Disposal.RELEASE, routing.batch)
    queue.consumer_ready(consumer, drain=True)
    queue.detach_consumer(consumer, queue, routing.batch)
    queue.detach_consumer(consumer, queue, routing.batch)
    routing.pump()
    assert (consumer.taken, consumer.drains, queue.waiting) == ([b"a"], 0, 1)
    assert queue.is_consumed()
    queue.detach_consumer(other, queue, routing.batch)
    assert not queue.is_consumed()


# -- drain


def test_a_drain_ends_when_nothing_more_waits() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue)
    routing.give(queue, consumer, 5, drain=True)
    assert (consumer.taken, consumer.drains) == ([b"a"], 1)
    routing.pump()
    assert consumer.drains == 1


def test_a_drain_that_takes_all_credit_needs_no_word() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    consumer = routing.consumer(queue)
    routing.give(queue, consumer, 1, drain=True)
    assert (consumer.taken, consumer.drains) == ([b"a"], 0)


def test_a_drain_waits_for_room() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue)
    consumer.held = True
    routing.give(queue, consumer, 2, drain=True)
    assert consumer.drains == 0
    consumer.held = False
    routing.give(queue, consumer, 2, drain=True)
    assert (consumer.taken, consumer.drains) == ([b"a"], 1)


def test_a_drain_ends_without_room_where_nothing_waits() -> None:
    routing = Routing()
    queue = routing.queue()
    consumer = routing.consumer(queue)
    consumer.held = True
    routing.give(queue, consumer, 2, drain=True)
    assert consumer.drains == 1


def test_a_drain_ends_where_the_consumer_may_have_nothing_that_waits() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue, 1)
    consumer.dispose(Disposal.ELSEWHERE, routing.batch)
    routing.give(queue, consumer, 5, drain=True)
    assert (consumer.drains, queue.waiting) == (1, 1)


def test_a_drain_may_be_called_off() -> None:
    routing = Routing()
    queue = routing.queue()
    routing.put(queue, b"a")
    consumer = routing.consumer(queue)
    consumer.held = True
    routing.give(queue, consumer, 5, drain=True)
    consumer.held = False
    routing.give(queue, consumer, 5)
    assert (consumer.taken, consumer.drains, consumer.credit) == ([b"a"], 0, 4)


# -- limits


@pytest.mark.parametrize("held", [False, True], ids=["all waiting", "one acquired"])
def test_a_queue_takes_no_more_messages_than_its_limit(held: bool) -> None:
    routing = Routing(policy=AddressPolicy(max_messages=2))
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    consumer = routing.consumer(queue, 1 if held else 0)
    with pytest.raises(QueueFull):
        routing.put(queue, b"c")
    assert (queue.published, queue.bytes) == (2, 2)
    if held:
        consumer.dispose(Disposal.REMOVE, routing.batch)
        routing.put(queue, b"c")


def test_a_queue_takes_no_more_bytes_than_its_limit() -> None:
    routing = Routing(policy=AddressPolicy(max_bytes=5))
    queue = routing.queue()
    routing.put(queue, b"abc")
    with pytest.raises(QueueFull):
        routing.put(queue, b"def")
    routing.put(queue, b"de")
    assert queue.bytes == 5


# -- the store


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


# -- expiry


def put_mortal(routing: Routing, queue: Queue, lifetime_ms: int, *, priority: int = 4) -> None:
    message = new_message(priority=priority, expires_at_ms=WALL_START_MS + lifetime_ms)
    queue.put(message, routing.batch)


@pytest.mark.requirement("PRD-04")
def test_an_expired_message_is_never_delivered() -> None:
    routing = Routing()
    queue = routing.queue()
    put_mortal(routing, queue, 10)
    put_mortal(routing, queue, 11)
    routing.put(queue, b"immortal")
    routing.clock.advance(10)
    consumer = routing.consumer(queue, 1)
    assert counts(queue) == (1, 1, 9)
    consumer.dispose(Disposal.RELEASE, routing.batch)
    routing.clock.advance(1)
    routing.give(queue, consumer, 5)
    assert bodies(consumer.entries) == [b"immortal"]
    assert routing.stats.expired == 2


@pytest.mark.requirement("PRD-04")
def test_an_expired_message_goes_though_nobody_asks_for_it() -> None:
    routing = Routing()
    queue = routing.queue()
    put_mortal(routing, queue, 10)
    routing.put(queue, b"immortal")
    put_mortal(routing, queue, 10 * SWEEP_EVERY_MS, priority=9)
    routing.advance(SWEEP_EVERY_MS - 1)
    assert queue.waiting == 3
    routing.advance(1)
    assert counts(queue) == (2, 0, 9)
    routing.advance(10 * SWEEP_EVERY_MS)
    assert queue.waiting == 1
    routing.advance(SWEEP_EVERY_MS)
    assert routing.router.agenda.next_deadline_ms() == -1, "nothing mortal is left"


@pytest.mark.requirement("PRD-04")
def test_a_sweep_is_bounded_and_the_next_one_goes_on_where_it_ended() -> None:
    routing = Routing()
    queue = routing.queue()
    immortal = [b"x"] * int(SWEEP_AT_MOST)
    routing.put(queue, *immortal[5:], priority=3)
    put_mortal(routing, queue, 10, priority=3)
    routing.put(queue, *immortal[:6], priority=4)
    put_mortal(routing, queue, 10, priority=4)
    routing.put(queue, b"x", priority=9)
    before = queue.waiting
    routing.advance(SWEEP_EVERY_MS)
    assert before - queue.waiting == 1
    routing.advance(SWEEP_EVERY_MS)
    assert before - queue.waiting == 2


def test_other_deadlines_bring_no_more_sweeps() -> None:
    routing = Routing()
    queue = routing.queue()
    put_mortal(routing, queue, 10**9)
    for _ in range(20):
        queue.due(routing.clock.now_ms())
        routing.pump()
    routing.advance(SWEEP_EVERY_MS)
    assert len(routing.router.agenda._heap) == 1


def test_producers_go_on_when_a_sweep_has_shortened_the_backlog() -> None:
    routing = Routing(pacing_mark=1)
    queue = routing.queue()
    routing.consumer(queue)
    put_mortal(routing, queue, 10)
    put_mortal(routing, queue, 10)
    producer = RecordingProducer()
    routing.advance(SWEEP_EVERY_MS - 1)
    assert not queue.may_grant(producer, routing.router)
    routing.advance(1)
    assert producer.resumed == 1


# -- the end


@pytest.mark.requirement("TMP-03")
@pytest.mark.parametrize("disposal", list(Disposal))
def test_an_entry_of_a_deleted_queue_ends_whatever_its_outcome(disposal: Disposal) -> None:
    routing = Routing(policy=AddressPolicy(max_delivery_count=1))
    queue = routing.queue()
    queue.put(new_message(b"a", durable=True), routing.batch)
    routing.put(queue, b"bc")
    consumer = routing.consumer(queue, 1)
    routing.router.delete(queue, routing.batch)
    assert consumer.lost_its_node
    assert counts(queue) == (0, 1, 1)
    later = routing.queue()
    later.put(new_message(b"later", durable=True), routing.batch)
    consumer.dispose(disposal, routing.batch)
    routing.pump()
    assert counts(queue) == (0, 0, 0)
    assert counts(later) == (1, 0, 5)
    assert [each.encoded for each in routing.stored()] == [b"later"]
    stats = routing.stats
    assert (stats.requeued, stats.dead_lettered, stats.dropped) == (0, 0, 0)
    assert stats.acknowledged == (1 if disposal is Disposal.REMOVE else 0)


def test_a_deleted_queue_has_no_more_deadlines() -> None:
    routing = Routing()
    queue = routing.queue()
    put_mortal(routing, queue, 10)
    routing.router.delete(queue, routing.batch)
    routing.advance(SWEEP_EVERY_MS)
    assert not queue.is_pending
    assert routing.router.agenda.next_deadline_ms() == -1


class LeavingConsumer(RecordingConsumer):
    """Does as links do: hands everything back and detaches as soon as its node is gone."""

    def __init__(self, routing: Routing, queue: Queue) -> None:
        super().__init__()
        self._routing = routing
        self._queue = queue

    def node_deleted(self) -> None:
        super().node_deleted()
        while self.entries:
            self.dispose(Disposal.RELEASE, self._routing.batch)
        self._queue.detach_consumer(self, self._queue, self._routing.batch)


@pytest.mark.requirement("TMP-03")
def test_consumers_may_hand_everything_back_while_the_queue_is_being_deleted() -> None:
    routing = Routing()
    queue = routing.queue()
    consumers = [LeavingConsumer(routing, queue) for _ in range(2)]
    for consumer in consumers:
        queue.attach_consumer(consumer)
        routing.give(queue, consumer, 1)
    routing.put(queue, b"a", b"b", b"c")
    routing.pump()
    routing.router.delete(queue, routing.batch)
    assert all(consumer.lost_its_node for consumer in consumers)
    assert counts(queue) == (0, 0, 0)
