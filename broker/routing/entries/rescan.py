"""What a selective consumer looks at once more, though it has gone past the place."""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry

RETURNED_MAX: Final = 1000
"""Returned entries that are remembered one by one; with more it looks at their stretch again."""

NOWHERE: Final = -1


@final
class RescanSet:
    """Entries of one queue that came back behind one consumer's back, by priority and place.

    Those that wait for a pause of this consumer are known by the first place alone. `share`
    is how many entries it may still judge in the dispatch of that number.
    """

    def __init__(self) -> None:
        self.dispatch: i64 = 0
        self.share: i64 = 0
        self._returned: Final[list[list[QueueEntry]]] = [[] for _ in range(10)]
        self._size = 0
        self._paused: Final[list[int]] = [NOWHERE] * 10

    def add(self, entry: QueueEntry, passed: list[int]) -> None:
        """`entry` has come back to a place that `passed` says was gone past."""
        if self._size >= RETURNED_MAX:
            self._rewind(passed)
        priority = entry.message.priority
        if passed[priority] < entry.position:
            return
        entries = self._returned[priority]
        at = len(entries)
        while at > 0 and entries[at - 1].position > entry.position:
            at -= 1
        if at > 0 and entries[at - 1] is entry:
            return
        entries.insert(at, entry)
        self._size += 1

    def _rewind(self, passed: list[int]) -> None:
        """Have everything from the first of the returned entries on looked at again."""
        for priority in range(10):
            entries = self._returned[priority]
            if entries:
                passed[priority] = min(passed[priority], int(entries[0].position) - 1)
                entries.clear()
        self._size = 0

    def first(self, priority: i64) -> QueueEntry | None:
        """The first returned entry of that priority; it may have gone meanwhile."""
        entries = self._returned[priority]
        return entries[0] if entries else None

    def drop_first(self, priority: i64) -> None:
        """Forget the one that `first` tells."""
        del self._returned[priority][0]
        self._size -= 1

    def pause(self, entry: QueueEntry) -> None:
        """`entry` may go to this consumer later."""
        priority = entry.message.priority
        place = int(entry.position)
        if self._paused[priority] == NOWHERE or place < self._paused[priority]:
            self._paused[priority] = place

    def resume(self, passed: list[int]) -> None:
        """Pauses may be over: have everything from the first of them on looked at again."""
        for priority in range(10):
            if self._paused[priority] != NOWHERE:
                passed[priority] = min(passed[priority], self._paused[priority] - 1)
                self._paused[priority] = NOWHERE
