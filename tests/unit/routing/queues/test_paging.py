"""Long backlogs leave memory and are loaded ahead of need, without an effect on clients."""

import pytest

from broker.routing.addresses.policy import DROP_OLDEST, AddressPolicy
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.redelivery import Disposal
from broker.routing.errors import LimitReached
from broker.routing.queues.paging import PARKED_MAX, Parked
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import purge
from broker.routing.selector import parse_selector
from tests.support.notices import notice_texts
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, bodies, encoded, new_message
from tests.unit.links.test_recovery import restarted, taken

WINDOW = 128
CHUNK = 64


def text(number: int) -> bytes:
    return encoded(b"%d" % number)


def texts(*numbers: int) -> list[bytes]:
    return [text(number) for number in numbers]


def put(routing: Routing, count: int, *, durable: bool = True, expires_at_ms: int = 0) -> Queue:
    """Put `count` messages into the queue, commit, and return the queue."""
    queue = routing.queue()
    for number in range(count):
        message = new_message(text(number), durable=durable, expires_at_ms=expires_at_ms)
        queue.put(message, routing.batch)
    routing.commit()
    return queue


def loaded(queue: Queue) -> int:
    """Return the number of ready messages in memory."""
    return sum(len(b.loaded(-1, 10**6)) for b in queue.backlogs.existing())


def shorten(routing: Routing, up_to: int = 10**6) -> None:
    """Page out messages beyond the window, up to the store number `up_to`."""
    routing.router.context.paging.resume()
    routing.router.context.paging.page_out(up_to)


@pytest.fixture
def routing() -> Routing:
    return Routing(paging_window=WINDOW)


@pytest.mark.requirement("PRD-03")
def test_a_long_backlog_leaves_memory_but_for_its_window(routing: Routing) -> None:
    queue = put(routing, 1000)
    size = queue.state.bytes
    shorten(routing)
    assert (queue.backlogs.waiting, queue.state.bytes) == (1000, size)
    assert loaded(queue) <= WINDOW + CHUNK


def test_a_backlog_within_its_window_stays(routing: Routing) -> None:
    queue = put(routing, WINDOW + CHUNK)
    shorten(routing)
    assert loaded(queue) == queue.backlogs.waiting


def test_without_a_window_everything_stays() -> None:
    routing = Routing()
    queue = put(routing, 1000)
    shorten(routing)
    assert loaded(queue) == 1000


def test_only_what_the_store_has_leaves(routing: Routing) -> None:
    queue = put(routing, 1000)
    shorten(routing, up_to=300)
    assert loaded(queue) > 700
    shorten(routing, up_to=1000)
    assert loaded(queue) <= WINDOW + CHUNK


def test_what_is_not_durable_stays(routing: Routing) -> None:
    queue = put(routing, 500, durable=False)
    shorten(routing)
    assert loaded(queue) == 500
    put(routing, 1000)
    shorten(routing)
    assert 500 < loaded(queue) <= 500 + 3 * CHUNK
    assert len(routing.consumer(queue, 2000).entries) == 1500


def test_messages_of_one_hundred_kilobytes_have_a_shorter_window(routing: Routing) -> None:
    queue = routing.queue()
    for _ in range(300):
        queue.put(new_message(encoded(bytes(400_000)), durable=True), routing.batch)
    routing.commit()
    shorten(routing)
    assert loaded(queue) <= 2 * CHUNK


@pytest.mark.requirement("RCV-03")
def test_everything_is_taken_in_its_order(routing: Routing) -> None:
    queue = put(routing, 1000)
    shorten(routing)
    consumer = routing.consumer(queue, 700)
    assert bodies(consumer.entries) == texts(*range(700))
    routing.give(queue, consumer, 1000)
    assert bodies(consumer.entries) == texts(*range(1000))
    assert (queue.backlogs.waiting, loaded(queue)) == (0, 0)


def test_a_consumer_stops_at_what_is_not_loaded_and_goes_on_by_itself(routing: Routing) -> None:
    queue = put(routing, 1000)
    shorten(routing)
    routing.shelf.is_slow = True
    consumer = routing.consumer(queue, 1000)
    assert len(consumer.entries) == WINDOW
    assert queue.backlogs.waiting == 1000 - WINDOW
    turns = 0
    while len(consumer.entries) < 1000:
        assert len(routing.shelf.loads) == 1, "one load at a time"
        assert len(routing.shelf.loads[0].numbers()) <= WINDOW // 2
        routing.shelf.bring()
        routing.pump()
        turns += 1
    assert bodies(consumer.entries) == texts(*range(1000))
    assert turns >= (1000 - WINDOW) // (WINDOW // 2)


def test_the_next_portion_is_asked_for_ahead_of_need(routing: Routing) -> None:
    queue = put(routing, 1000)
    shorten(routing)
    routing.shelf.is_slow = True
    consumer = routing.consumer(queue, WINDOW - 10)
    assert len(routing.shelf.loads) == 1
    routing.shelf.bring()
    routing.give(queue, consumer, CHUNK)
    assert bodies(consumer.entries) == texts(*range(WINDOW - 10 + CHUNK))


@pytest.mark.requirement("RCV-03")
def test_what_comes_back_takes_its_place_in_front_of_what_is_loaded(routing: Routing) -> None:
    queue = put(routing, 300)
    first = routing.consumer(queue, 70)
    routing.page_out()
    assert loaded(queue) == 0
    routing.leave(queue, first, Disposal.RELEASE)
    assert loaded(queue) == 70
    assert bodies(routing.consumer(queue, 300).entries) == texts(*range(300))


def test_a_higher_priority_is_waited_for(routing: Routing) -> None:
    queue = put(routing, 3)
    queue.put(new_message(text(9), durable=True, priority=9), routing.batch)
    routing.page_out()
    queue.put(new_message(text(5), durable=True, priority=5), routing.batch)
    routing.shelf.is_slow = True
    consumer = routing.consumer(queue, 10)
    assert consumer.entries == []
    for _ in range(3):
        routing.shelf.bring()
        routing.pump()
    assert bodies(consumer.entries) == texts(9, 5, 0, 1, 2)


def test_a_drain_ends_behind_what_had_to_be_loaded(routing: Routing) -> None:
    queue = put(routing, 3)
    routing.page_out()
    routing.shelf.is_slow = True
    consumer = RecordingConsumer()
    queue.attach_consumer(consumer)
    routing.give(queue, consumer, 10, drain=True)
    assert (consumer.drains, consumer.entries) == (0, [])
    routing.shelf.bring()
    routing.pump()
    assert (consumer.drains, len(consumer.entries)) == (1, 3)


@pytest.mark.requirement("RCV-04")
def test_a_browser_sees_window_after_window(routing: Routing) -> None:
    queue = put(routing, 1000)
    shorten(routing)
    browser = routing.browser(queue, 2000)
    assert browser.copies == texts(*range(1000))
    shorten(routing)
    assert queue.backlogs.waiting == 1000


def test_a_search_loads_no_page_that_it_has_left_behind(routing: Routing) -> None:
    """Two pages that were paged out for each other could keep a browser from going on."""
    queue = put(routing, 3 * CHUNK)
    backlog = queue.backlog_of(4)
    for entry in backlog.after(CHUNK - 1, CHUNK)[10:]:
        queue.withdraw(entry, routing.batch)
    routing.commit()
    routing.page_out()
    routing.shelf.is_slow = True
    assert backlog.after(CHUNK + 9, 1) == []
    routing.router.context.paging.begin()
    (load,) = routing.shelf.loads
    assert min(load.numbers()) == 2 * CHUNK + 1, "numbers begin at 1"


def test_a_drained_browser_waits_for_what_is_loaded(routing: Routing) -> None:
    queue = put(routing, 3)
    routing.page_out()
    routing.shelf.is_slow = True
    browser = RecordingConsumer()
    queue.attach_browser(browser)
    routing.give(queue, browser, 10, drain=True)
    assert browser.drains == 0
    routing.shelf.bring()
    routing.pump()
    assert (browser.drains, browser.copies) == (1, texts(0, 1, 2))


@pytest.mark.requirement("RCV-05")
def test_a_selective_consumer_goes_through_all_of_it(routing: Routing) -> None:
    queue = put(routing, 1000)
    queue.put(new_message(text(7), durable=True, priority=2), routing.batch)
    routing.commit()
    shorten(routing)
    consumer = RecordingConsumer(5)
    consumer.filter = ConsumerFilter(parse_selector("JMSPriority < 4"))
    queue.attach_consumer(consumer)
    routing.give(queue, consumer, 5, drain=True)
    while consumer.drains == 0:
        routing.advance(1)
    assert bodies(consumer.entries) == [text(7)]
    shorten(routing)
    assert loaded(queue) < 1000, "what it went past may leave again"


def test_what_has_expired_goes_though_nobody_takes_it(routing: Routing) -> None:
    expires = int(routing.clock.wall_ms()) + 5000
    queue = put(routing, 200, expires_at_ms=expires)
    routing.page_out()
    routing.advance(4000)
    assert (queue.backlogs.waiting, loaded(queue)) == (200, 0)
    for _ in range(4):
        routing.advance(1000)
    assert (queue.backlogs.waiting, queue.state.bytes, routing.stats.expired) == (0, 0, 200)
    assert routing.stored() == []


def test_what_cannot_be_read_is_left_out_and_told(routing: Routing) -> None:
    queue = put(routing, 10)
    routing.page_out()
    routing.batch.remove(3)
    routing.commit()
    consumer = routing.consumer(queue, 10)
    assert bodies(consumer.entries) == texts(0, 1, *range(3, 10))
    assert queue.backlogs.waiting == 0
    assert queue.state.bytes == sum(entry.message.size for entry in consumer.entries)
    (notice,) = notice_texts(routing.router.notices)
    assert "1 messages of q" in notice


def test_a_purge_loads_nothing(routing: Routing) -> None:
    queue = put(routing, 1000)
    shorten(routing)
    routing.shelf.is_slow = True
    assert purge(queue, 500, routing.batch) == 500
    assert purge(queue, 10_000, routing.batch) == 500
    assert (queue.backlogs.waiting, queue.state.bytes, routing.stored()) == (0, 0, [])
    assert routing.shelf.loads == []


def test_what_is_purged_while_it_is_loaded_is_gone(routing: Routing) -> None:
    queue = put(routing, 10)
    routing.page_out()
    routing.shelf.is_slow = True
    consumer = routing.consumer(queue, 10)
    purge(queue, 100, routing.batch)
    routing.shelf.bring()
    routing.pump()
    assert (consumer.entries, queue.backlogs.waiting, queue.state.bytes) == ([], 0, 0)


def test_a_queue_that_is_deleted_while_it_is_loaded_stays_deleted(routing: Routing) -> None:
    queue = put(routing, 10)
    routing.page_out()
    routing.shelf.is_slow = True
    consumer = routing.consumer(queue, 10)
    routing.router.delete(queue, routing.batch)
    routing.shelf.bring()
    routing.pump()
    assert (consumer.entries, queue.backlogs.waiting) == ([], 0)
    assert routing.stored() == []


RINGS = {
    # name: max_messages, max_bytes, messages before, messages sent during the load, those left
    "a ring of one": (1, 0, 1, 1, [1]),
    "the last one sent stays": (1, 0, 1, 3, [3]),
    "as many as were sent": (5, 0, 5, 2, [2, 3, 4, 5, 6]),
    "by bytes": (0, len(text(0)) * 2, 2, 1, [1, 2]),
    "within the limit": (5, 0, 3, 2, [0, 1, 2, 3, 4]),
}


@pytest.mark.parametrize(
    ("max_messages", "max_bytes", "before", "during", "left"), RINGS.values(), ids=RINGS
)
def test_the_oldest_is_dropped_once_it_is_loaded(
    max_messages: int, max_bytes: int, before: int, during: int, left: list[int]
) -> None:
    policy = AddressPolicy(max_messages=max_messages, max_bytes=max_bytes, full=DROP_OLDEST)
    routing = Routing(paging_window=WINDOW, policy=policy)
    queue = put(routing, before)
    routing.page_out()
    routing.shelf.is_slow = True
    consumer = routing.consumer(queue, 0)
    for number in range(before, before + during):
        queue.put(new_message(text(number), durable=True), routing.batch)
    routing.give(queue, consumer, 10)
    while routing.shelf.loads:
        routing.shelf.bring()
        routing.pump()
    assert bodies(consumer.entries) == texts(*left)
    assert routing.stats.displaced == before + during - len(left)
    assert len(routing.stored()) == len(left)


def test_a_long_ring_is_shortened_by_load_after_load() -> None:
    """Its limit is lower than before: all pages are loaded and discarded, portion by portion."""
    before = Routing()
    put(before, 1000)
    policy = AddressPolicy(max_messages=2, full=DROP_OLDEST)
    routing = restarted(before, policy=policy)
    queue = routing.queue()
    queue.put(new_message(text(1000), durable=True), routing.batch)
    routing.pump()
    assert queue.backlogs.waiting == 2
    assert taken(routing, queue) == texts(999, 1000)


def test_moved_messages_beyond_the_limit_survive_a_load() -> None:
    """Moves exceed limits: what a consumer loads is not discarded for them."""
    policy = AddressPolicy(max_messages=2, full=DROP_OLDEST)
    routing = Routing(paging_window=WINDOW, policy=policy)
    queue = routing.queue()
    for number in range(4):
        queue.add(new_message(text(number), durable=True), routing.batch)
    routing.page_out()
    assert bodies(routing.consumer(queue, 10).entries) == texts(0, 1, 2, 3)


def test_groups_keep_their_consumer_while_their_messages_are_not_in_memory(
    routing: Routing,
) -> None:
    queue = routing.queue()
    for number in range(6):
        group = "ab"[number % 2]
        body = encoded(b"%d" % number, group=group)
        queue.put(new_message(body, durable=True, group=group), routing.batch)
    first, second = routing.consumer(queue, 1), routing.consumer(queue, 1)
    routing.page_out()
    routing.give(queue, second, 10)
    routing.give(queue, first, 10)
    assert [entry.message.group for entry in first.entries] == ["a", "a", "a"]
    assert [entry.message.group for entry in second.entries] == ["b", "b", "b"]


class Waiting(Parked):
    """A request that waits for messages to be loaded, which must not happen."""

    def loaded(self) -> None:
        raise AssertionError("nothing has been loaded")


def test_only_so_many_requests_wait_for_something_to_be_loaded(routing: Routing) -> None:
    paging = routing.router.context.paging
    for _ in range(PARKED_MAX):
        paging.park(Waiting())
    with pytest.raises(LimitReached):
        paging.park(Waiting())


def test_many_long_backlogs_have_short_windows(routing: Routing) -> None:
    routing.router.context.paging.backlogs = 4096
    queue = put(routing, 1000)
    shorten(routing)
    assert loaded(queue) <= 2 * CHUNK
