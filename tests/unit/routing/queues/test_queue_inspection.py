"""The entries of a queue that an operator is shown, and their order."""

import pytest

from broker.routing.entries.record_mapping import stored_position
from broker.routing.queues.queue import Queue
from broker.routing.queues.queue_inspection import deliver_now, entry_of, peek
from tests.support.clock import WALL_START_MS
from tests.support.routing import Routing, new_message


@pytest.fixture
def queue() -> Queue:
    """Return a queue of the bodies a to e, of which b and d have priority 9, and e has 0."""
    routing = Routing()
    queue = routing.queue()
    for body, priority in ((b"a", 4), (b"b", 9), (b"c", 4), (b"d", 9), (b"e", 0)):
        queue.put(new_message(body, priority=priority), routing.batch)
    return queue


def bodies(queue: Queue, after: int, at_most: int) -> bytes:
    return b"".join(entry.message.encoded for entry in peek(queue.backlogs, after, at_most))


def number(queue: Queue, body: bytes) -> int:
    """Return the stored position of the entry with this body."""
    return next(
        int(stored_position(entry))
        for entry in peek(queue.backlogs, -1, 99)
        if entry.message.encoded == body
    )


def test_entries_in_the_order_in_which_they_would_go(queue: Queue) -> None:
    assert bodies(queue, -1, 99) == b"bdace"


def test_no_more_than_asked_for(queue: Queue) -> None:
    assert bodies(queue, -1, 3) == b"bda"
    assert bodies(queue, -1, 0) == b""


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        pytest.param(b"b", b"dace", id="within a priority"),
        pytest.param(b"d", b"ace", id="at the end of one"),
        pytest.param(b"e", b"", id="at the end of all"),
    ],
)
def test_entries_behind_one(queue: Queue, behind: bytes, expected: bytes) -> None:
    assert bodies(queue, number(queue, behind), 99) == expected


def test_entries_behind_one_that_has_gone(queue: Queue) -> None:
    after = number(queue, b"a")
    entry = entry_of(queue.backlogs, after)
    assert entry is not None
    queue.withdraw(entry, Routing().batch)
    assert bodies(queue, after, 99) == b"ce"
    assert entry_of(queue.backlogs, after) is None


def test_an_entry_by_its_number(queue: Queue) -> None:
    for body in (b"a", b"b", b"c", b"d", b"e"):
        entry = entry_of(queue.backlogs, number(queue, body))
        assert entry is not None
        assert entry.message.encoded == body


@pytest.mark.requirement("DLY-04")
def test_a_message_is_delivered_before_its_time() -> None:
    routing = Routing()
    queue = routing.queue()
    queue.put(new_message(b"later", deliver_at_ms=WALL_START_MS + 500, durable=True), routing.batch)
    queue.put(new_message(b"now"), routing.batch)
    (scheduled,) = queue.state.scheduled()
    first = stored_position(scheduled)
    assert deliver_now(queue, first, routing.batch)
    assert not deliver_now(queue, first, routing.batch)
    assert bodies(queue, -1, 9) == b"nowlater"
    (stored,) = routing.stored()
    assert (stored.deliver_at_ms, stored.position) == (0, stored_position(scheduled))


@pytest.mark.parametrize("number", [7, 994, 12])
def test_a_number_of_nothing(queue: Queue, number: int) -> None:
    assert entry_of(queue.backlogs, number) is None
