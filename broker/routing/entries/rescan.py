"""Entries that a selective consumer looks at again, though it has passed their positions."""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry

RETURNED_MAX: Final = 1000
"""Maximum returned entries remembered one by one; with more, all from the first are rescanned."""

NOWHERE: Final = -1


@final
class RescanSet:
    """Entries of a queue that returned to positions that one consumer has passed, by priority.

    Of entries paused for this consumer only the first position is known. `share` is the number
    of entries that it may still judge in the dispatch with the number `dispatch`.
    """

    def __init__(self) -> None:
        self.dispatch: i64 = 0
        self.share: i64 = 0
        self._returned: Final[list[list[QueueEntry]]] = [[] for _ in range(10)]
        self._size = 0
        self._paused: Final[list[int]] = [NOWHERE] * 10

    def add(self, entry: QueueEntry, passed: list[int]) -> None:
        """Remember `entry`, which has returned to a position that the consumer has `passed`."""
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
        """Move `passed` back, to look again at all entries from the first returned one on."""
        for priority in range(10):
            entries = self._returned[priority]
            if entries:
                passed[priority] = min(passed[priority], int(entries[0].position) - 1)
                entries.clear()
        self._size = 0

    def first(self, priority: i64) -> QueueEntry | None:
        """Return the first returned entry of that priority, or None; it may have left by now."""
        entries = self._returned[priority]
        return entries[0] if entries else None

    def drop_first(self, priority: i64) -> None:
        """Forget the entry that `first` returns."""
        del self._returned[priority][0]
        self._size -= 1

    def pause(self, entry: QueueEntry) -> None:
        """Remember that `entry` is paused: this consumer may have it later."""
        priority = entry.message.priority
        place = int(entry.position)
        if self._paused[priority] == NOWHERE or place < self._paused[priority]:
            self._paused[priority] = place

    def resume(self, passed: list[int]) -> None:
        """Move `passed` back to the first paused entries: their pauses may be over."""
        for priority in range(10):
            if self._paused[priority] != NOWHERE:
                self.go_back(passed, priority, self._paused[priority])
                self._paused[priority] = NOWHERE

    def go_back(self, passed: list[int], priority: int, place: int) -> None:
        """Move `passed` back to just before `place`, if it is behind that.

        Forget the returned entries from there on: they are met again, but in their order.
        """
        if passed[priority] < place:
            return
        passed[priority] = place - 1
        entries = self._returned[priority]
        at = len(entries)
        while at > 0 and entries[at - 1].position >= place:
            at -= 1
        self._size -= len(entries) - at
        del entries[at:]
