"""The history of a queue entry with the consumers that held it."""

from collections.abc import Iterator

import pytest

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer
from tests.support.parties import RecordingConsumer
from tests.support.routing import Routing, new_message

ROUTING = Routing()
NOW_MS = 1000


def consumers(count: int) -> list[Consumer]:
    """Return consumers with the numbers 1 to `count`."""
    made: list[Consumer] = []
    for number in range(1, count + 1):
        consumer = RecordingConsumer()
        consumer.number = number
        made.append(consumer)
    return made


def new_entry() -> QueueEntry:
    return QueueEntry(ROUTING.queue(), new_message(), 0)


def release(entry: QueueEntry, number: int, present: list[Consumer]) -> int:
    """Let consumer `number` release `entry` at NOW_MS; return its pause in ms."""
    history = entry.history_with(number, present)
    pause = history.release(0)
    history.paused_until_ms = NOW_MS + pause
    return int(pause)


def depth(entry: QueueEntry) -> int:
    """Return the number of consumers that the entry remembers."""
    count, history = 0, entry.history
    while history is not None:
        count, history = count + 1, history.next
    return count


def test_a_new_entry_may_go_anywhere() -> None:
    entry = new_entry()
    assert entry.history is None
    assert entry.may_go_to(1, NOW_MS)


@pytest.mark.requirement("RCV-02")
def test_a_refused_entry_may_go_to_anybody_else_but_never_there() -> None:
    entry, present = new_entry(), consumers(3)
    entry.history_with(1, present).refused = True
    entry.history_with(3, present).refused = True
    allowed = [entry.may_go_to(number, 10**12) for number in (1, 2, 3, 4)]
    assert allowed == [False, True, False, True]


@pytest.mark.requirement("RCV-08")
def test_a_pause_is_for_one_consumer_and_ends() -> None:
    entry, present = new_entry(), consumers(2)
    pauses = [release(entry, 1, present) for _ in range(10)]
    assert pauses == [0] * 9 + [100]
    assert not entry.may_go_to(1, NOW_MS)
    assert not entry.may_go_to(1, NOW_MS + 99)
    assert entry.may_go_to(1, NOW_MS + 100)
    assert entry.may_go_to(2, NOW_MS)


@pytest.mark.requirement("RCV-08")
def test_two_consumers_that_release_in_turns_are_both_held_up() -> None:
    entry, present = new_entry(), consumers(2)
    for _ in range(10):
        release(entry, 1, present)
        release(entry, 2, present)
    assert not entry.may_go_to(1, NOW_MS)
    assert not entry.may_go_to(2, NOW_MS)


def test_what_happened_with_one_consumer_is_kept_once() -> None:
    entry, present = new_entry(), consumers(1)
    assert entry.history_with(1, present) is entry.history_with(1, present)
    assert depth(entry) == 1


def test_consumers_that_have_left_are_forgotten_when_another_one_comes() -> None:
    entry = new_entry()
    present = consumers(50)
    for number in range(1, 1000):
        entry.history_with(number, present).refused = True
    assert depth(entry) == 51, "those that are present, and the newest"
    assert not entry.may_go_to(1, NOW_MS)
    assert not entry.may_go_to(999, NOW_MS)


class Crowd(list[Consumer]):
    """Consumers, and the number of searches through them."""

    looks = 0

    def __iter__(self) -> Iterator[Consumer]:
        self.looks += 1
        return super().__iter__()


def test_the_consumers_of_a_queue_are_not_looked_through_for_each_that_gives_an_entry_back() -> (
    None
):
    """A thousand consumers that leave together return a message many times."""
    entry, present = new_entry(), Crowd(consumers(100))
    for number in (7, 100, 1, 101, 50):
        entry.history_with(number, present).refused = True
    assert present.looks == 0
    assert depth(entry) == 4, "number 101 is not there"
    assert [entry.may_go_to(number, NOW_MS) for number in (1, 7, 50, 100)] == [False] * 4
