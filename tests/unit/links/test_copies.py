"""Copies of a queue's messages for a reader that has no link."""

from itertools import chain

import pytest

from broker.links.copies import BYTES_MAX, LOOKED_AT_MAX, ROWS_MAX, Copies, Gathered, gathered_from
from broker.message import DURABLE_HEADERS, NEVER, PLAIN_HEADERS, Message
from broker.routing.entries.browse_slice import BrowseSlice
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.filter import ConsumerFilter
from broker.routing.entries.redelivery import Disposal
from broker.routing.queues.queue import Queue
from broker.routing.selector import parse_selector
from tests.support.routing import Routing, encoded, new_message

pytestmark = pytest.mark.requirement("PIP-18")


class Reader:
    """A reader of a whole queue; `times` counts the notices that there is something to do."""

    def __init__(self, routing: Routing, queue: Queue, **part: object) -> None:
        self.routing = routing
        self.queue = queue
        self.times = 0
        self.copies = Copies(queue, routing.clock, self._told, **part)  # type: ignore[arg-type]
        queue.attach_browser(self.copies)

    def _told(self) -> None:
        self.times += 1

    def go_on(self) -> Gathered | None:
        """Let the copies read one step further; return what they have gathered, None if nothing."""
        self.copies.go_on()
        self.queue.consumer_ready(self.copies, drain=True)
        self.routing.pump()
        return self.copies.take()

    def all(self) -> list[Gathered]:
        found: list[Gathered] = []
        while not self.copies.is_over:
            gathered = self.go_on()
            if gathered is not None:
                found.append(gathered)
        return found

    def positions(self) -> list[int]:
        return [position for gathered in self.all() for position in gathered.positions]


def arrived(at_ms: int, *, ttl_ms: int = -1) -> Message:
    return Message(
        encoded=b"x",
        durable=False,
        priority=4,
        ttl_ms=ttl_ms,
        arrived_ms=at_ms,
        expires_at_ms=NEVER,
    )


@pytest.fixture
def routing() -> Routing:
    return Routing()


def test_everything_comes_in_order_and_stays(routing: Routing) -> None:
    queue = routing.queue()
    routing.put(queue, b"a", b"b")
    routing.put(queue, b"urgent", priority=9)
    (gathered,) = Reader(routing, queue).all()
    assert gathered.positions == [9, 4, 14]
    assert gathered.messages == [
        PLAIN_HEADERS[9] + b"urgent",
        PLAIN_HEADERS[4] + b"a",
        PLAIN_HEADERS[4] + b"b",
    ]
    assert (queue.backlogs.waiting, queue.state.acquired) == (3, 0)


def test_nothing_waits(routing: Routing) -> None:
    reader = Reader(routing, routing.queue())
    (gathered,) = reader.all()
    assert (gathered.positions, gathered.messages, reader.times) == ([], [], 1)


@pytest.mark.parametrize("slices", [1, 2, 3, 10])
def test_slices_have_everything_once(routing: Routing, slices: int) -> None:
    queue = routing.queue()
    routing.put(queue, *(b"%d" % number for number in range(100)))
    found = [
        Reader(routing, queue, part=BrowseSlice(index=index, slices=slices)).positions()
        for index in range(slices)
    ]
    assert sorted(chain(*found)) == [number * 10 + 4 for number in range(100)]
    for index, positions in enumerate(found):
        assert all(position // 10 % slices == index for position in positions)
        assert positions == sorted(positions)


def test_what_came_later_is_left_out(routing: Routing) -> None:
    queue = routing.queue()
    for arrived_ms in (1000, 1010):
        queue.put(arrived(arrived_ms), routing.batch)
    assert Reader(routing, queue, part=BrowseSlice(arrived_until_ms=1009)).positions() == [4]
    (gathered,) = Reader(routing, queue, part=BrowseSlice(arrived_until_ms=1010)).all()
    assert (gathered.positions, gathered.arrived_ms) == ([4, 14], [1000, 1010])


@pytest.mark.requirement("PIP-18")
@pytest.mark.parametrize(("ttl_ms", "ends_ms"), [(-1, {}), (0, {}), (500, {0: 1500})])
def test_when_a_ttl_ends_does_not_depend_on_the_time_of_reading(
    routing: Routing, ttl_ms: int, ends_ms: dict[int, int]
) -> None:
    entry = QueueEntry(routing.queue(), arrived(1000, ttl_ms=ttl_ms), 0)
    assert gathered_from([entry], 0, routing.clock).ttl_ends_ms == ends_ms
    routing.clock.advance(100)
    assert gathered_from([entry], 0, routing.clock).ttl_ends_ms == ends_ms


def test_what_comes_while_it_reads_is_left_out(routing: Routing) -> None:
    queue = routing.queue()
    routing.put(queue, b"a")
    reader = Reader(routing, queue)
    routing.put(queue, b"b")
    routing.put(queue, b"c", priority=9)
    assert reader.positions() == [4]


def test_a_selector_chooses(routing: Routing) -> None:
    queue = routing.queue()
    routing.put(queue, b"a")
    routing.put(queue, b"b", priority=7)
    wanted = ConsumerFilter(parse_selector("JMSPriority > 4"))
    assert Reader(routing, queue, wanted=wanted).positions() == [7]


def test_a_header_tells_of_attempts(routing: Routing) -> None:
    queue = routing.queue()
    queue.put(new_message(encoded(b"a"), durable=True), routing.batch)
    consumer = routing.consumer(queue, 1)
    queue.dispose(consumer.entries[0], Disposal.FAIL, routing.batch)
    (gathered,) = Reader(routing, queue).all()
    header = new_message(durable=True).header(1, routing.clock, acquired_before=True)
    assert header != DURABLE_HEADERS[4]
    assert gathered.messages == [header + encoded(b"a")]


def test_it_stops_when_enough_has_come(routing: Routing) -> None:
    queue = routing.queue()
    routing.put(queue, *[b"x" * 1000] * 3000)
    reader = Reader(routing, queue)
    first = reader.go_on()
    assert first is not None
    assert BYTES_MAX <= first.bytes <= BYTES_MAX + 2000
    assert len(first.positions) + len(reader.positions()) == 3000


def test_it_looks_at_only_so_many_in_one_go(routing: Routing) -> None:
    queue = routing.queue()
    routing.put(queue, *[b""] * (int(LOOKED_AT_MAX) + 1))
    reader = Reader(routing, queue, part=BrowseSlice(index=1, slices=256))
    assert reader.go_on() is None
    assert not reader.copies.is_over
    assert len(reader.positions()) == 16
    assert ROWS_MAX > LOOKED_AT_MAX


def test_what_is_in_the_store_alone_is_brought_in(routing: Routing) -> None:
    queue = routing.queue()
    for number in range(300):
        queue.put(new_message(encoded(b"%d" % number), durable=True), routing.batch)
    routing.page_out()
    assert sum(len(each.loaded(-1, 10**6)) for each in queue.backlogs.existing()) == 0
    assert Reader(routing, queue, part=BrowseSlice(index=2, slices=3)).positions() == [
        number * 10 + 4 for number in range(2, 300, 3)
    ]


def test_a_queue_that_is_deleted_is_told(routing: Routing) -> None:
    queue = routing.queue()
    routing.put(queue, *[b"x" * 1000] * 3000)
    reader = Reader(routing, queue)
    reader.go_on()
    routing.router.delete(queue, routing.batch)
    assert reader.copies.is_deleted


def test_held_messages_come_batch_by_batch(routing: Routing) -> None:
    queue = routing.queue()
    routing.put(queue, *(b"%04d" % number + b"x" * 1000 for number in range(3000)))
    entries = routing.consumer(queue, 3000).entries
    found: list[bytes] = []
    while len(found) < len(entries):
        gathered = gathered_from(entries, len(found), routing.clock)
        assert gathered.bytes <= BYTES_MAX + 2000
        found += gathered.messages
    assert found == [PLAIN_HEADERS[4] + entry.message.encoded for entry in entries]


def test_it_takes_nothing(routing: Routing) -> None:
    queue = routing.queue()
    reader = Reader(routing, queue)
    with pytest.raises(AssertionError, match="acquires nothing"):
        reader.copies.deliver(QueueEntry(queue, new_message(b"x"), 1))
