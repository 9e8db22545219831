"""The waiting entries of one priority in their order, with room for those that come back.

New entries go into a ring, indexed by position. An entry that is taken leaves
a gap; one that comes back lands in its gap, or, where the ring has moved on,
in a small heap whose entries all precede the ring's.
"""

from heapq import heapify, heappop, heappush
from typing import Final, final

from mypy_extensions import i64

from broker.routing.entry import QueueEntry

RING_MIN: Final[i64] = 16
RING_KEPT: Final[i64] = 4096
"""A ring larger than this is given back when it runs empty."""


@final
class Backlog:
    """Entries by ascending position. `waiting` counts them."""

    def __init__(self) -> None:
        self.waiting: i64 = 0
        self.next_position: i64 = 0
        self._ring: list[QueueEntry | None] = [None] * 16
        self._mask: i64 = RING_MIN - 1
        self._head: i64 = 0
        self._returned: list[tuple[int, QueueEntry]] = []

    def append(self, entry: QueueEntry) -> None:
        """Take `entry` at the end; its position must be `next_position`."""
        position = entry.position
        if position - self._head > self._mask:
            self._make_room()
        self._ring[position & self._mask] = entry
        self.next_position = position + 1
        self.waiting += 1

    def _make_room(self) -> None:
        self._skip_gaps()
        if self.next_position - self._head <= self._mask:
            return
        old, old_mask = self._ring, self._mask
        mask = old_mask * 2 + 1
        ring: list[QueueEntry | None] = [None] * int(mask + 1)
        position = self._head
        while position < self.next_position:
            ring[position & mask] = old[position & old_mask]
            position += 1
        self._ring = ring
        self._mask = mask

    def _skip_gaps(self) -> None:
        """Move the head to the first entry in the ring, or behind the last position."""
        head, end, ring, mask = self._head, self.next_position, self._ring, self._mask
        while head < end and ring[head & mask] is None:
            head += 1
        self._head = head
        if head == end and mask >= RING_KEPT:
            self._ring = [None] * 16
            self._mask = RING_MIN - 1

    def first(self) -> QueueEntry | None:
        """The entry that waits longest; it stays."""
        if self._returned:
            return self._returned[0][1]
        if self.waiting == 0:
            return None
        entry = self._ring[self._head & self._mask]
        if entry is None:
            self._skip_gaps()
            entry = self._ring[self._head & self._mask]
        return entry

    def put_back(self, entry: QueueEntry) -> None:
        """Return `entry` to where it was."""
        self.waiting += 1
        if entry.position < self._head:
            heappush(self._returned, (int(entry.position), entry))
        else:
            self._ring[entry.position & self._mask] = entry

    def remove(self, entry: QueueEntry) -> None:
        """Take `entry` from wherever it waits. It must be here."""
        self.waiting -= 1
        position = entry.position
        if position < self._head:
            self._remove_returned(entry)
            return
        self._ring[position & self._mask] = None
        if position == self._head:
            self._head = position + 1
            if self._head == self.next_position and self._mask >= RING_KEPT:
                self._skip_gaps()

    def _remove_returned(self, entry: QueueEntry) -> None:
        if self._returned[0][1] is entry:
            heappop(self._returned)
        else:
            self._returned.remove((int(entry.position), entry))
            heapify(self._returned)

    def after(self, position: i64, at_most: i64) -> list[QueueEntry]:
        """Up to `at_most` waiting entries whose positions are greater than `position`, in order."""
        found: list[QueueEntry] = []
        for _, entry in sorted(self._returned):
            if entry.position > position:
                found.append(entry)
                if i64(len(found)) >= at_most:
                    return found
        at = max(position + 1, self._head)
        while at < self.next_position and i64(len(found)) < at_most:
            waiting = self._ring[at & self._mask]
            if waiting is not None:
                found.append(waiting)
            at += 1
        return found
