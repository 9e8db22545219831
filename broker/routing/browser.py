"""Browsers of a queue: each sees every message once, and changes nothing (RCV-04)."""

from typing import Final, final

from mypy_extensions import i64

from broker.routing import expiry
from broker.routing.backlog import Backlog
from broker.routing.party import Consumer

LOOK_AHEAD: Final[i64] = 64


@final
class Cursor:
    """How far one browser has come, in each priority."""

    def __init__(self, consumer: Consumer) -> None:
        self.consumer: Final = consumer
        self.ready = False
        self.seen: Final[list[int]] = [-1] * 10

    def show(self, backlogs: list[Backlog | None], wall_ms: i64) -> bool:
        """Send copies of what was not seen yet; False once there is no room."""
        for priority in range(9, -1, -1):
            backlog = backlogs[priority]
            if backlog is not None and not self._show_priority(priority, backlog, wall_ms):
                return False
        return True

    def _show_priority(self, priority: int, backlog: Backlog, wall_ms: i64) -> bool:
        while True:
            found = backlog.after(self.seen[priority], LOOK_AHEAD)
            if not found:
                return True
            for entry in found:
                if not self.consumer.has_room():
                    return False
                self.seen[priority] = int(entry.position)
                if not expiry.has_expired(entry.message.expires_at_ms, wall_ms):
                    self.consumer.browsed(entry)

    def has_more(self, backlogs: list[Backlog | None]) -> bool:
        """Whether something waits that was not seen yet."""
        for priority in range(10):
            backlog = backlogs[priority]
            if backlog is not None and backlog.after(self.seen[priority], 1):
                return True
        return False


@final
class Browsers:
    """The cursors of a queue's browsers."""

    def __init__(self) -> None:
        self.any_ready = False
        self._cursors: Final[list[Cursor]] = []

    def join(self, consumer: Consumer) -> None:
        """`consumer` looks from the start."""
        self._cursors.append(Cursor(consumer))

    def leave(self, consumer: Consumer) -> None:
        """`consumer` has gone."""
        cursor = self._cursor(consumer)
        if cursor is not None:
            self._cursors.remove(cursor)

    def count(self) -> i64:
        """How many browse."""
        return i64(len(self._cursors))

    def node_deleted(self) -> None:
        """Every browser learns that the queue is gone."""
        for cursor in list(self._cursors):
            cursor.consumer.node_deleted()
        self._cursors.clear()

    def has(self, consumer: Consumer) -> bool:
        """Whether `consumer` browses."""
        return bool(self._cursors) and self._cursor(consumer) is not None

    def ready(self, consumer: Consumer) -> None:
        """`consumer` has room."""
        cursor = self._cursor(consumer)
        if cursor is not None:
            cursor.ready = True
            self.any_ready = True

    def _cursor(self, consumer: Consumer) -> Cursor | None:
        for cursor in self._cursors:
            if cursor.consumer is consumer:
                return cursor
        return None

    def show(self, backlogs: list[Backlog | None], wall_ms: i64) -> None:
        """Send copies of what each ready browser has not seen, highest priority first.

        A browser with room left stays ready, and sees what arrives later. What
        has expired is not shown, though it may wait to be swept.
        """
        self.any_ready = False
        for cursor in self._cursors:
            if cursor.ready:
                cursor.ready = cursor.show(backlogs, wall_ms)
                self.any_ready = self.any_ready or cursor.ready

    def has_more(self, consumer: Consumer, backlogs: list[Backlog | None]) -> bool:
        """Whether `consumer` has not seen everything that waits."""
        cursor = self._cursor(consumer)
        return cursor is not None and cursor.has_more(backlogs)
