"""Entries that are examined once more: those that returned, and stretches that were paused."""

from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.rescan import RETURNED_MAX, RescanSet
from tests.support.routing import Routing, new_message


def entries(*positions: int, priority: int = 4) -> list[QueueEntry]:
    queue = Routing().queue()
    return [QueueEntry(queue, new_message(priority=priority), position) for position in positions]


def rest(rescan: RescanSet, priority: int = 4) -> list[int]:
    """Take all entries of a priority; return their positions."""
    found: list[int] = []
    entry = rescan.first(priority)
    while entry is not None:
        found.append(int(entry.position))
        rescan.drop_first(priority)
        entry = rescan.first(priority)
    return found


def test_entries_come_in_order_of_their_places_and_once() -> None:
    rescan, passed = RescanSet(), [9] * 10
    for entry in entries(5, 1, 9, 3):
        rescan.add(entry, passed)
        rescan.add(entry, passed)
    assert rest(rescan) == [1, 3, 5, 9]


def test_each_priority_has_its_own() -> None:
    rescan, passed = RescanSet(), [9] * 10
    rescan.add(entries(5, priority=7)[0], passed)
    assert (rest(rescan), rest(rescan, 7)) == ([], [5])


def test_with_too_many_the_stretch_is_looked_at_again() -> None:
    rescan, passed = RescanSet(), [5000] * 10
    *many, last = entries(*range(10, 10 + RETURNED_MAX), 4000)
    for entry in many:
        rescan.add(entry, passed)
    assert passed == [5000] * 10
    rescan.add(last, passed)
    assert passed[4] == 9
    assert rest(rescan) == []


def test_an_entry_before_the_stretch_is_remembered_still() -> None:
    rescan, passed = RescanSet(), [5000] * 10
    *many, last = entries(*range(10, 10 + RETURNED_MAX), 3)
    for entry in many:
        rescan.add(entry, passed)
    rescan.add(last, passed)
    assert (passed[4], rest(rescan)) == (9, [3])


def test_pauses_that_end_take_one_back_to_the_first_of_them() -> None:
    rescan, passed = RescanSet(), [9] * 10
    for entry in entries(7, 5, 8):
        rescan.pause(entry)
    rescan.resume(passed)
    assert passed == [9, 9, 9, 9, 4, 9, 9, 9, 9, 9]
    rescan.resume([3] * 10)
    passed[4] = 9
    rescan.resume(passed)
    assert passed[4] == 9


def test_going_back_leaves_later_entries_to_the_stretch() -> None:
    rescan, passed = RescanSet(), [9] * 10
    before, paused, behind = entries(1, 4, 7)
    rescan.add(before, passed)
    rescan.add(behind, passed)
    rescan.pause(paused)
    rescan.resume(passed)
    assert (passed[4], rest(rescan)) == (3, [1])
    rescan.add(before, passed)
    rescan.go_back(passed, 4, 6)
    assert (passed[4], rest(rescan)) == (3, [1])
