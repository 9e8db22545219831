"""What waits in a queue, seen by an operator: in the order in which it would go, by number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from broker.routing.backlog import Backlog
from broker.routing.entry import QueueEntry
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queue import Queue


def purge(queue: Queue, at_most: i64, batch: Batch) -> i64:
    """Withdraw what waits in `queue`, the first `at_most` of it; how many."""
    found = peek(queue.backlogs, -1, at_most)
    for entry in found:
        queue.withdraw(entry, batch)
    return i64(len(found))


def peek(backlogs: list[Backlog | None], after: i64, at_most: i64) -> list[QueueEntry]:
    """Waiting entries behind the one of number `after`, be it there or not; -1 is the start.

    Numbers are those of `stored_position`.
    """
    priority: i64 = 9
    position: i64 = -1
    if after >= 0:
        priority = after % 10
        position = after // 10
    found: list[QueueEntry] = []
    while priority >= 0 and i64(len(found)) < at_most:
        backlog = backlogs[priority]
        if backlog is not None:
            found += backlog.after(position, at_most - i64(len(found)))
        priority -= 1
        position = -1
    return found


def entry_of(backlogs: list[Backlog | None], number: i64) -> QueueEntry | None:
    """The waiting entry of that number."""
    backlog = backlogs[number % 10]
    if backlog is None:
        return None
    position = number // 10
    for entry in backlog.after(position - 1, 1):
        if entry.position == position:
            return entry
    return None
