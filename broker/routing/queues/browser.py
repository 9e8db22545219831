"""Browsers of a queue: each gets a copy of every message once, and changes nothing (RCV-04)."""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries import expiry
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer
from broker.routing.queues.backlogs import Backlogs
from broker.routing.queues.selection import Selection

LOOK_AHEAD: Final[i64] = 64


@final
class Cursor:
    """The progress of one browser: `seen` is the last position that it has seen, by priority.

    `ready`: it has room for more copies.
    """

    def __init__(self, consumer: Consumer) -> None:
        self.consumer: Final = consumer
        self.ready = False
        self.seen: Final[list[int]] = [-1] * 10

    def show(self, backlogs: Backlogs, wall_ms: i64, selection: Selection | None) -> None:
        """Send copies of unseen entries while there is room and filters may be evaluated."""
        for priority in range(9, -1, -1):
            backlog = backlogs.by_priority[priority]
            while backlog is not None and backlog.waiting > 0:
                found = backlog.after(self.seen[priority], LOOK_AHEAD)
                if backlog.is_blocked:
                    return
                if not found:
                    break
                if not self._show_some(priority, found, wall_ms, selection=selection):
                    return

    def _show_some(
        self, priority: int, found: list[QueueEntry], wall_ms: i64, *, selection: Selection | None
    ) -> bool:
        """Send copies of `found`. False if it ended early: no room, or no evaluation left."""
        for entry in found:
            if not self.consumer.has_room():
                return False
            wanted = self.consumer.filter
            if wanted is not None and selection is not None and not selection.may_judge():
                return False
            self.seen[priority] = int(entry.position)
            if expiry.has_expired(entry.message.expires_at_ms, wall_ms):
                continue
            if wanted is None or selection is None or selection.judge(wanted, entry):
                self.consumer.browsed(entry)
        return True

    def find_more(self, backlogs: Backlogs, selection: Selection | None) -> bool:
        """Find an unseen wanted entry; return whether one waits. Unwanted ones count as seen.

        True also if this dispatch cannot find it out.
        """
        for priority in range(10):
            backlog = backlogs.by_priority[priority]
            while backlog is not None:
                found = backlog.after(self.seen[priority], LOOK_AHEAD)
                if backlog.is_blocked:
                    return True
                if not found:
                    break
                if self._find_wanted(priority, found, selection):
                    return True
        return False

    def _find_wanted(
        self, priority: int, found: list[QueueEntry], selection: Selection | None
    ) -> bool:
        """Mark the entries of `found` before the first wanted one as seen.

        Return whether there is a wanted one, or one that cannot be judged now.
        """
        wanted = self.consumer.filter
        if wanted is None or selection is None:
            return True
        for entry in found:
            if not selection.may_judge() or selection.judge(wanted, entry):
                return True
            self.seen[priority] = int(entry.position)
        return False


@final
class Browsers:
    """The cursors of a queue's browsers. `any_ready`: at least one may have room."""

    def __init__(self) -> None:
        self.any_ready = False
        self._cursors: Final[list[Cursor]] = []

    def join(self, consumer: Consumer) -> None:
        """Add `consumer`, which browses the queue from its start."""
        self._cursors.append(Cursor(consumer))

    def leave(self, consumer: Consumer) -> None:
        """Remove `consumer` if it browses."""
        cursor = self._cursor(consumer)
        if cursor is not None:
            self._cursors.remove(cursor)

    def count(self) -> i64:
        """Return the number of browsers."""
        return i64(len(self._cursors))

    def node_deleted(self) -> None:
        """Notify every browser that the queue was deleted, and remove it."""
        for cursor in list(self._cursors):
            cursor.consumer.node_deleted()
        self._cursors.clear()

    def has(self, consumer: Consumer) -> bool:
        """Return whether `consumer` is one of the browsers."""
        return bool(self._cursors) and self._cursor(consumer) is not None

    def ready(self, consumer: Consumer) -> None:
        """Mark `consumer` as having room, if it browses."""
        cursor = self._cursor(consumer)
        if cursor is not None:
            cursor.ready = True
            self.any_ready = True

    def _cursor(self, consumer: Consumer) -> Cursor | None:
        for cursor in self._cursors:
            if cursor.consumer is consumer:
                return cursor
        return None

    def show(self, backlogs: Backlogs, wall_ms: i64, selection: Selection | None) -> None:
        """Send each ready browser copies of entries it has not seen, highest priority first.

        A browser with room left stays ready, and is sent entries that arrive later. Expired
        entries are not shown, though they may still be in the queue until a sweep.
        """
        self.any_ready = False
        for cursor in self._cursors:
            if cursor.ready:
                cursor.show(backlogs, wall_ms, selection)
                cursor.ready = cursor.consumer.has_room()
                self.any_ready = self.any_ready or cursor.ready

    def find_more(
        self, consumer: Consumer, backlogs: Backlogs, selection: Selection | None
    ) -> bool:
        """Find a waiting entry that `consumer` wants and has not seen; return whether there is one.

        True also if this dispatch cannot find it out.
        """
        cursor = self._cursor(consumer)
        return cursor is not None and cursor.find_more(backlogs, selection)
