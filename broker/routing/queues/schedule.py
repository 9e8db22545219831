"""The entries that a queue holds back: until a delivery time, or for a pause after a failure.

Also held back, until `moves.py` can move them, are entries for a dead-letter or expiry node.
An entry of the first two kinds costs O(log n) and is released by the timer queue, to the
millisecond. A delivery time is a moment on the wall clock, which an operator may set; so it is
compared with that clock alone, and checked again every `LOOK_AGAIN_MS`, in case the clock was
put forward. A pause after a failure runs on the steady clock.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, final

from mypy_extensions import i64

from broker.message import NEVER, Message
from broker.routing.context import RoutingContext
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Wakeable
from broker.routing.entries.record_mapping import stored_position
from broker.routing.queues.held_entries import HeldEntries
from broker.routing.timer_queue import NOTHING, TimerCallback

LOOK_AGAIN_MS: Final[i64] = 60_000
"""Maximum delay of a delivery if the wall clock has been put forward meanwhile."""

CANCELLED_FREE: Final = 64
"""Cancelled entries that may stay in a heap in addition to as many as it has others."""


TimedEntry = tuple[int, int, QueueEntry]
"""An entry behind the time in ms that it waits for and its rank of arrival, which sort it."""


@final
class Timeline:
    """Entries by the time they wait for; those of the same time in the order of arrival."""

    def __init__(self) -> None:
        self._heap: list[TimedEntry] = []
        self._entries: Final[dict[int, QueueEntry]] = {}
        self._order = 0

    def size(self) -> i64:
        """Return the number of entries that wait."""
        return i64(len(self._entries))

    def add(self, at_ms: i64, entry: QueueEntry) -> None:
        """Add `entry`, which waits until `at_ms`."""
        self._order += 1
        self._entries[int(stored_position(entry))] = entry
        heappush(self._heap, (int(at_ms), self._order, entry))

    def next_ms(self) -> i64:
        """Return the earliest time in ms that an entry waits for, or NOTHING."""
        heap = self._heap
        while heap:
            at_ms, _, entry = heap[0]
            if self._waits(entry):
                return i64(at_ms)
            heappop(heap)
        return NOTHING

    def pop(self, now_ms: i64) -> QueueEntry | None:
        """Remove and return the entry that is due first; None if none is due."""
        at_ms = self.next_ms()
        if at_ms == NOTHING or at_ms > now_ms:
            return None
        entry = heappop(self._heap)[2]
        del self._entries[int(stored_position(entry))]
        return entry

    def cancel(self, number: i64) -> QueueEntry | None:
        """Remove and return the entry of stored position `number`; None if it is not here."""
        entry = self._entries.pop(int(number), None)
        if entry is not None and len(self._heap) > 2 * len(self._entries) + CANCELLED_FREE:
            self._heap = [waiting for waiting in self._heap if self._waits(waiting[2])]
            heapify(self._heap)
        return entry

    def _waits(self, entry: QueueEntry) -> bool:
        return self._entries.get(int(stored_position(entry))) is entry

    def find(self, number: i64) -> QueueEntry | None:
        """Return the entry of stored position `number`; None if it is not here."""
        return self._entries.get(int(number))

    def earliest(self) -> QueueEntry | None:
        """Return the entry that was added first, None if there is none."""
        return next(iter(self._entries.values()), None)

    def some(self, at_most: i64) -> list[QueueEntry]:
        """Return up to `at_most` entries, whichever are at hand."""
        return list(islice(self._entries.values(), int(at_most)))

    def timed(self) -> list[TimedEntry]:
        """Return all entries in no order, and among them some that have been cancelled."""
        return self._heap[:]

    def behind(self, entries: list[TimedEntry], place: tuple[int, int]) -> list[TimedEntry]:
        """Return those of `entries`, from `timed`, that still wait and sort behind `place`."""
        at_ms, rank = place
        return [
            each
            for each in entries
            if (each[0] > at_ms or (each[0] == at_ms and each[1] > rank)) and self._waits(each[2])
        ]

    def entries(self) -> list[QueueEntry]:
        """Return all entries in the order in which they fall due."""
        return [waiting[2] for waiting in sorted(self._heap) if self._waits(waiting[2])]

    def drain(self, at_most: i64) -> list[QueueEntry]:
        """Remove and return up to `at_most` entries, whichever are at hand."""
        found: list[QueueEntry] = []
        heap = self._heap
        while heap and i64(len(found)) < at_most:
            entry = heap.pop()[2]
            if self._waits(entry):
                del self._entries[int(stored_position(entry))]
                found.append(entry)
        return found


@final
class Schedule(TimerCallback):
    """The entries of one queue that are not available yet; `is_due` once some may be.

    An entry that expires before its time is released when it expires (DLY-05): the code that
    releases it has to check.
    """

    def __init__(self, queue: Wakeable, context: RoutingContext) -> None:
        self.is_due = False
        self._queue: Wakeable | None = queue
        self._context: Final = context
        self.by_wall: Final = Timeline()
        "The messages that wait for their delivery time, or expire before it."
        self.paused: Final = Timeline()
        "The messages that have failed and wait for their redelivery delay, by the steady clock."
        self.held: Final = HeldEntries()
        # deadlines set in the timer queue, latest first: none of them can be cancelled there
        self._set_for: Final[list[int]] = []

    def size(self) -> i64:
        """Return the number of entries that are held back."""
        return self.by_wall.size() + self.paused.size() + self.held.size()

    def hold(self, entry: QueueEntry) -> None:
        """Hold the message `entry` back until its delivery time, or its expiry before that."""
        self.by_wall.add(end_of_wait(entry.message), entry)
        self._arm()

    def pause(self, entry: QueueEntry, milliseconds: i64) -> None:
        """Hold the failed `entry` back for `milliseconds`, or until it expires."""
        clock = self._context.clock
        expires_at_ms = entry.message.expires_at_ms
        if expires_at_ms != NEVER:
            milliseconds = min(milliseconds, max(0, expires_at_ms - clock.wall_ms()))
        self.paused.add(clock.now_ms() + milliseconds, entry)
        self._arm()

    def _arm(self) -> None:
        """Set the timer for the next entry that may be due, unless it is set already."""
        if self._queue is None:
            return
        clock = self._context.clock
        now_ms = clock.now_ms()
        deadline_ms: i64 = NOTHING
        wanted_ms = self.by_wall.next_ms()
        if wanted_ms != NOTHING:
            deadline_ms = now_ms + min(LOOK_AGAIN_MS, max(0, wanted_ms - clock.wall_ms()))
        pause_ms = self.paused.next_ms()
        if pause_ms != NOTHING and (deadline_ms == NOTHING or pause_ms < deadline_ms):
            deadline_ms = pause_ms
        if deadline_ms == NOTHING or (self._set_for and self._set_for[-1] <= deadline_ms):
            return
        self._set_for.append(int(deadline_ms))
        self._context.timer_queue.at(deadline_ms, self)

    def due(self, now_ms: i64) -> None:
        self._set_for.pop()
        queue = self._queue
        if queue is None:
            return
        wanted_ms = self.by_wall.next_ms()
        pause_ms = self.paused.next_ms()
        if (wanted_ms != NOTHING and wanted_ms <= self._context.clock.wall_ms()) or (
            pause_ms != NOTHING and pause_ms <= now_ms
        ):
            self.is_due = True
            queue.wake()
        else:
            self._arm()

    def take_due(self) -> tuple[list[QueueEntry], list[QueueEntry]]:
        """Remove entries whose time has come, within the turn's budget; set a timer for the others.

        Return first those whose delivery time or expiry has come, then those whose pause after a
        failure is over.
        """
        self.is_due = False
        wall_ms = self._context.clock.wall_ms()
        budget = self._context.releases
        scheduled = _pop(self.by_wall, wall_ms, budget.left)
        if scheduled:
            late_ms = wall_ms - end_of_wait(scheduled[0].message)
            self._context.stats.measured.schedule_lateness_us.observe(late_ms * 1000)
        left = budget.left - i64(len(scheduled))
        paused = _pop(self.paused, self._context.clock.now_ms(), left)
        budget.spend(i64(len(scheduled)) + i64(len(paused)))
        self._arm()
        return scheduled, paused

    # -- management

    def scheduled(self) -> list[QueueEntry]:
        """Return the messages that wait for their delivery time, the next one first."""
        return self.by_wall.entries()

    def some(self, at_most: i64) -> list[QueueEntry]:
        """Return up to `at_most` entries that are held back, whichever are at hand."""
        found = self.by_wall.some(at_most)
        found += self.paused.some(at_most - i64(len(found)))
        return found + self.held.entries()[: int(at_most) - len(found)]

    def entries(self) -> list[QueueEntry]:
        """Return all entries that are held back."""
        return self.by_wall.entries() + self.paused.entries() + self.held.entries()

    def cancel(self, number: i64) -> QueueEntry | None:
        """Remove and return the entry of that stored position; None if it is not held back."""
        return self.by_wall.cancel(number) or self.paused.cancel(number) or self.held.remove(number)

    def take(self, number: i64) -> QueueEntry | None:
        """Remove and return a message before its delivery time; None if it does not wait for it."""
        return self.by_wall.cancel(number)

    def close(self) -> None:
        """Release no more entries of the deleted queue; timers still set do not keep it alive."""
        self._queue = None

    def drain(self, at_most: i64) -> list[QueueEntry]:
        """Remove and return up to `at_most` entries of the deleted queue, in no order."""
        found = self.by_wall.drain(at_most)
        found += self.paused.drain(at_most - i64(len(found)))
        found += self.held.drain(at_most - i64(len(found)))
        return found


def end_of_wait(message: Message) -> i64:
    """Return the wall time in ms of a message's delivery, or of its expiry if that is earlier."""
    if message.expires_at_ms != NEVER:
        return min(message.deliver_at_ms, message.expires_at_ms)
    return message.deliver_at_ms


def _pop(timeline: Timeline, now_ms: i64, at_most: i64) -> list[QueueEntry]:
    """Remove and return up to `at_most` entries of `timeline` that are due."""
    found: list[QueueEntry] = []
    while i64(len(found)) < at_most:
        entry = timeline.pop(now_ms)
        if entry is None:
            break
        found.append(entry)
    return found
