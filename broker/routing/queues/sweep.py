"""Sweeps for expired entries that no delivery meets: once a second, some entries at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from broker.message import NEVER
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue

SWEEP_EVERY_MS: Final[i64] = 1000
SWEEP_AT_MOST: Final[i64] = 10_000
"""Maximum entries that one sweep looks at: bounded work a tick (`reliability.md` R7)."""
NO_SWEEP: Final[i64] = -1


@final
class Sweep:
    """The place and time of the next sweep of one queue.

    `expiring` counts the queue's entries with an expiry; sweeps go on while there are any.
    `is_due`: it is time for one.
    """

    def __init__(self) -> None:
        self.expiring: i64 = 0
        self.is_due = False
        self._at_ms: i64 = NO_SWEEP
        self._priority: i64 = 0
        self._from: i64 = -1

    def joined(self, queue: Queue) -> None:
        """Count a new entry of `queue` with an expiry, and set the time of a sweep."""
        self.expiring += 1
        if self._at_ms == NO_SWEEP:
            self._later(queue)

    def _later(self, queue: Queue) -> None:
        self._at_ms = queue.router.clock.now_ms() + SWEEP_EVERY_MS
        queue.router.timer_queue.at(self._at_ms, queue)

    def tick(self, now_ms: i64) -> None:
        """Set `is_due` if it is time for a sweep."""
        if self._at_ms != NO_SWEEP and now_ms >= self._at_ms:
            self.is_due = True

    def run(self, queue: Queue, batch: Batch) -> None:
        """Look at up to SWEEP_AT_MOST entries of `queue`, from where the last sweep ended."""
        self.is_due = False
        self._at_ms = NO_SWEEP
        left = SWEEP_AT_MOST
        while left > 0 and self._priority < 10:
            left -= self._part(queue, left, batch)
            if left > 0:
                self._priority += 1
                self._from = -1
        if self._priority == 10:
            self._priority = 0
            self._have_loaded(queue)
        if self.expiring > 0:
            self._later(queue)

    def _part(self, queue: Queue, at_most: i64, batch: Batch) -> i64:
        """Sweep on within one priority; return the number of entries looked at."""
        backlog = queue.backlogs[self._priority]
        if backlog is None:
            return 0
        looked_at = backlog.loaded(self._from, at_most)
        for entry in looked_at:
            self._from = entry.position
            if entry.message.expires_at_ms != NEVER:
                queue.expire(entry, backlog, batch)
        return i64(len(looked_at))

    def _have_loaded(self, queue: Queue) -> None:
        """Request expired entries that are not in memory: loading moves or discards them."""
        if queue.policy.expiry and queue.holds_too_much():
            return
        wall_ms = queue.router.clock.wall_ms()
        for backlog in queue.backlogs:
            if backlog is not None and backlog.paged is not None:
                backlog.paged.ask_expired(wall_ms, SWEEP_AT_MOST)
