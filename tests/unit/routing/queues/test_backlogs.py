"""The backlogs of a queue: how many entries wait, and the highest priority that may have some."""

from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.backlog import Backlog
from broker.routing.queues.backlogs import Backlogs
from tests.support.routing import Routing, new_message


def added(backlogs: Backlogs, *priorities: int) -> list[QueueEntry]:
    """Append an entry of each priority, in a backlog of its own, and return the entries."""
    queue = Routing().queue()
    entries: list[QueueEntry] = []
    for priority in priorities:
        backlog = backlogs.by_priority[priority]
        if backlog is None:
            backlog = backlogs.by_priority[priority] = Backlog()
        entry = QueueEntry(queue, new_message(priority=priority), backlog.next_position)
        backlogs.append(entry, backlog)
        entries.append(entry)
    return entries


def backlog_of(backlogs: Backlogs, entry: QueueEntry) -> Backlog:
    backlog = backlogs.by_priority[entry.message.priority]
    assert backlog is not None
    return backlog


def test_entries_of_all_priorities_are_counted_together() -> None:
    backlogs = Backlogs()
    added(backlogs, 4, 4, 9, 0)
    assert (backlogs.waiting, backlogs.top) == (4, 9)
    assert [int(backlog.waiting) for backlog in backlogs.existing()] == [1, 2, 1]


def test_a_returned_entry_raises_the_top_again() -> None:
    backlogs = Backlogs()
    _, high = added(backlogs, 4, 7)
    backlogs.remove(high, backlog_of(backlogs, high))
    backlogs.top = 4
    backlogs.put_back(high, backlog_of(backlogs, high))
    assert (backlogs.waiting, backlogs.top) == (2, 7)


def test_cleared_backlogs_return_what_was_in_memory() -> None:
    backlogs = Backlogs()
    entries = added(backlogs, 4, 4, 7)
    slots = backlogs.clear()
    assert {entry for part in slots for entry in part if entry is not None} == set(entries)
    assert (backlogs.waiting, backlogs.existing()) == (0, [])


def test_pages_are_dropped_from_the_lowest_priority_on_and_no_more_than_asked_for() -> None:
    routing = Routing()
    queue = routing.queue()
    for priority in (7, 4):
        for _ in range(128):
            queue.put(new_message(durable=True, priority=priority), routing.batch)
    routing.page_out()
    dropped = queue.backlogs.drop_pages(130)
    assert sum(int(page.count) for page in dropped) == 128
    assert [int(backlog.waiting) for backlog in queue.backlogs.existing()] == [0, 128]
