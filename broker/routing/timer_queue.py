"""What is to happen later: one heap of deadlines, looked at by the owner of the event loop."""

from abc import abstractmethod
from heapq import heappop, heappush
from typing import Final, final

from mypy_extensions import i64, mypyc_attr

NOTHING: Final[i64] = -1


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerCallback:
    """Something that wants to be called at a moment."""

    @abstractmethod
    def due(self, now_ms: i64) -> None:
        """The moment has come. It may have been asked for more than once."""


@mypyc_attr(allow_interpreted_subclasses=True)
class TimerDriver:
    """Sees to it that `TimerQueue.tick` is called in time."""

    @abstractmethod
    def wake_at(self, deadline_ms: i64) -> None:
        """The earliest deadline is this one now."""


@final
class TimerQueue:
    """Deadlines on the steady clock, in ms. Without a `driver` its owner has to look by itself."""

    def __init__(self) -> None:
        self.driver: TimerDriver | None = None
        self._heap: Final[list[tuple[int, int, TimerCallback]]] = []
        self._order = 0

    def at(self, deadline_ms: i64, due: TimerCallback) -> None:
        """Call `due` at `deadline_ms` or soon after, never earlier."""
        self._order += 1
        heappush(self._heap, (int(deadline_ms), self._order, due))
        if self.driver is not None and self._heap[0][1] == self._order:
            self.driver.wake_at(deadline_ms)

    def next_deadline_ms(self) -> i64:
        """The earliest deadline, or NOTHING."""
        return i64(self._heap[0][0]) if self._heap else NOTHING

    def tick(self, now_ms: i64) -> None:
        """Call whatever is due; what that enters for now comes in the event loop's next turn."""
        last = self._order
        while self._heap and self._heap[0][0] <= now_ms and self._heap[0][1] <= last:
            due = heappop(self._heap)[2]
            due.due(now_ms)
