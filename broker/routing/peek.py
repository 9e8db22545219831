"""What waits in a queue, seen by an operator: in the order in which it would go, by number."""

from mypy_extensions import i64

from broker.routing.backlog import Backlog
from broker.routing.entry import QueueEntry


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
