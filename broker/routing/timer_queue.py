"""Callbacks at deadlines: one heap for all, processed by the owner of the event loop."""

from abc import abstractmethod
from heapq import heapify, heappop, heappush
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

NOTHING: Final[i64] = -1

ABANDONED_MAX: Final = 1000
"""Abandoned deadlines that stay until their time. If there are more, and they are more than half of
all, they are removed: a thousand connections a second would leave 3 MiB of them behind."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerCallback:
    """An object that is called when a deadline has come."""

    @abstractmethod
    def due(self, now_ms: i64) -> None:
        """Do what is due. This is called once per `TimerQueue.at`, so perhaps more than once."""

    def is_abandoned(self) -> bool:
        """Return whether `due` need not be called any more."""
        return False


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerDriver:
    """Makes the event loop call `TimerQueue.tick` in time."""

    @abstractmethod
    def wake_at(self, deadline_ms: i64) -> None:
        """Have `TimerQueue.tick` called at `deadline_ms`, which is the earliest deadline now."""


@final
class TimerQueue:
    """Deadlines on the steady clock, in ms. Without a `driver` the owner checks them by itself."""

    def __init__(self) -> None:
        self.driver: TimerDriver | None = None
        self._heap: Final[list[tuple[int, int, TimerCallback]]] = []
        self._order = 0
        self._abandoned = 0

    def __len__(self) -> int:
        """Return the number of deadlines, with the abandoned ones that are still there."""
        return len(self._heap)

    def at(self, deadline_ms: i64, due: TimerCallback) -> None:
        """Call `due.due` at `deadline_ms` or soon after, never earlier."""
        self._order += 1
        heappush(self._heap, (int(deadline_ms), self._order, due))
        if self.driver is not None and self._heap[0][1] == self._order:
            self.driver.wake_at(deadline_ms)

    def abandon(self, count: i64) -> None:
        """Note that the callback of `count` deadlines has been abandoned; remove many at once."""
        self._abandoned += int(count)
        if self._abandoned > max(ABANDONED_MAX, len(self._heap) // 2):
            self._heap[:] = [each for each in self._heap if not each[2].is_abandoned()]
            heapify(self._heap)
            self._abandoned = 0

    def next_deadline_ms(self) -> i64:
        """Return the earliest deadline, or NOTHING."""
        return i64(self._heap[0][0]) if self._heap else NOTHING

    def tick(self, now_ms: i64) -> None:
        """Call all that are due; deadlines that these add wait for the event loop's next turn."""
        last = self._order
        while self._heap and self._heap[0][0] <= now_ms and self._heap[0][1] <= last:
            due = heappop(self._heap)[2]
            if due.is_abandoned():
                self._abandoned = max(0, self._abandoned - 1)
            else:
                due.due(now_ms)
