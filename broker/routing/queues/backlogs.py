"""The waiting entries of a queue: a backlog for each priority."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from broker.routing.context import SWEPT_IN_TURN
from broker.routing.entries.entry import QueueEntry
from broker.routing.queues.backlog import Backlog
from broker.routing.queues.pages import PagedEntries


@final
class Backlogs:
    """The backlogs of one queue, in `by_priority` None until the first entry of a priority comes.

    `waiting` counts the entries of all, including those in the store alone. No entry waits at a
    priority above `top`.
    """

    def __init__(self) -> None:
        self.waiting: i64 = 0
        self.top: i64 = 0
        self.by_priority: list[Backlog | None] = [None] * 10

    def existing(self) -> list[Backlog]:
        """Return the backlogs that exist, the lowest priority first."""
        return [backlog for backlog in self.by_priority if backlog is not None]

    def append(self, entry: QueueEntry, backlog: Backlog) -> None:
        """Append `entry` to `backlog`, which is that of its priority."""
        backlog.append(entry)
        self.count_in(entry.message.priority)

    def put_back(self, entry: QueueEntry, backlog: Backlog) -> None:
        """Return `entry` to its place in `backlog`, which is that of its priority."""
        backlog.put_back(entry)
        self.count_in(entry.message.priority)

    def count_in(self, priority: i64) -> None:
        """Count one more entry that waits at `priority`."""
        self.waiting += 1
        if priority > self.top:
            self.top = priority

    def remove(self, entry: QueueEntry, backlog: Backlog) -> None:
        """Remove the waiting `entry`, which is in memory, from `backlog`."""
        backlog.remove(entry)
        self.waiting -= 1

    def remove_first(self, backlog: Backlog) -> None:
        """Remove the entry that `backlog.first` has just returned."""
        backlog.remove_first()
        self.waiting -= 1

    def drop_pages(self, at_most: i64) -> list[PagedEntries]:
        """Remove pages with up to `at_most` messages together; return them, still in `waiting`."""
        dropped: list[PagedEntries] = []
        for backlog in self.existing():
            for page in backlog.drop_pages(at_most):
                at_most -= page.count
                dropped.append(page)
        return dropped

    def ask_expired(self, wall_ms: i64) -> None:
        """Request pages with messages that have expired by `wall_ms`, some for each priority.

        Loading moves or discards these messages.
        """
        for backlog in self.existing():
            if backlog.paged is not None:
                backlog.paged.ask_expired(wall_ms, SWEPT_IN_TURN)

    def clear(self) -> list[list[QueueEntry | None]]:
        """Remove all entries; return the slots of those that were in memory."""
        slots: list[list[QueueEntry | None]] = []
        for backlog in self.existing():
            slots.extend(backlog.slots())
            backlog.drop_pages(backlog.waiting)
        self.by_priority = [None] * 10
        self.waiting = 0
        return slots
