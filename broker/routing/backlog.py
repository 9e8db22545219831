"""The waiting entries of one priority in their order, with room for those that come back.

Positions lie in chunks of `CHUNK`, and a chunk exists while an entry waits in
it. So an entry that was taken leaves a gap and returns to it at any time, and
what is empty costs neither memory nor a search.
"""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entry import QueueEntry

CHUNK: Final[i64] = 64
SHIFT: Final[i64] = 6
MASK: Final[i64] = CHUNK - 1


@final
class Chunk:
    """The entries at positions `number * CHUNK` and up; `count` of the slots are taken."""

    def __init__(self, number: i64) -> None:
        self.number: i64 = number
        self.count: i64 = 0
        self.slots: Final[list[QueueEntry | None]] = [None] * 64

    def gather(self, at: i64, at_most: i64, found: list[QueueEntry]) -> None:
        """Add the entries from slot `at` on to `found`, until it holds `at_most`."""
        while at < CHUNK and i64(len(found)) < at_most:
            entry = self.slots[at]
            if entry is not None:
                found.append(entry)
            at += 1


@final
class Backlog:
    """Entries by ascending position. `waiting` counts them."""

    def __init__(self) -> None:
        self.waiting: i64 = 0
        self.next_position: i64 = 0
        self._head = Chunk(0)
        self._at: i64 = 0
        self._tail: Chunk = self._head
        self._chunks: Final[list[Chunk]] = [self._head]

    def append(self, entry: QueueEntry) -> None:
        """Take `entry` at the end; its position must be `next_position`."""
        position = entry.position
        tail = self._tail
        if position >> SHIFT != tail.number:
            tail = self._next_chunk(position >> SHIFT)
        tail.slots[position & MASK] = entry
        tail.count += 1
        self.next_position = position + 1
        self.waiting += 1

    def _next_chunk(self, number: i64) -> Chunk:
        """A chunk at the end, which is the emptied last one where that can be used again."""
        tail = self._tail
        if tail.count == 0:
            tail.number = number
        else:
            tail = Chunk(number)
            self._tail = tail
            self._chunks.append(tail)
        if self._head is tail:
            self._at = 0
        return tail

    def first(self) -> QueueEntry | None:
        """The entry that waits longest; it stays."""
        if self.waiting == 0:
            return None
        head = self._head
        if head.count == 0:
            del self._chunks[0]
            head = self._head = self._chunks[0]
            self._at = 0
        entry = head.slots[self._at]
        while entry is None:
            self._at += 1
            entry = head.slots[self._at]
        return entry

    def has(self, entry: QueueEntry) -> bool:
        """Whether `entry` waits here."""
        number = entry.position >> SHIFT
        index = self._index(number)
        if index == i64(len(self._chunks)):
            return False
        chunk = self._chunks[index]
        return chunk.number == number and chunk.slots[entry.position & MASK] is entry

    def put_back(self, entry: QueueEntry) -> None:
        """Return `entry` to where it was."""
        position = entry.position
        self.waiting += 1
        chunk = self._chunk_of(position >> SHIFT)
        chunk.slots[position & MASK] = entry
        chunk.count += 1
        if chunk is self._head:
            self._at = min(self._at, position & MASK)

    def _chunk_of(self, number: i64) -> Chunk:
        """The chunk of that number, made where there is none. It never lies behind the tail."""
        index = self._index(number)
        found = self._chunks[index]
        if found.number == number:
            return found
        chunk = Chunk(number)
        self._chunks.insert(int(index), chunk)
        if index == 0:
            self._new_head(chunk)
        return chunk

    def _new_head(self, chunk: Chunk) -> None:
        old = self._head
        if old.count == 0 and old is not self._tail:
            del self._chunks[1]
        self._head = chunk
        self._at = MASK

    def _index(self, number: i64) -> i64:
        """Where the first chunk of at least that number lies."""
        low: i64 = 0
        high = i64(len(self._chunks))
        while low < high:
            middle = (low + high) >> 1
            if self._chunks[middle].number < number:
                low = middle + 1
            else:
                high = middle
        return low

    def remove(self, entry: QueueEntry) -> None:
        """Take `entry` from wherever it waits. It must be here."""
        number = entry.position >> SHIFT
        chunk = self._head
        index: i64 = 0
        if chunk.number != number:
            index = self._index(number)
            chunk = self._chunks[index]
        chunk.slots[entry.position & MASK] = None
        chunk.count -= 1
        self.waiting -= 1
        if chunk.count == 0 and index > 0 and chunk is not self._tail:
            del self._chunks[index]

    def after(self, position: i64, at_most: i64) -> list[QueueEntry]:
        """Up to `at_most` waiting entries whose positions are greater than `position`, in order."""
        found: list[QueueEntry] = []
        start = position + 1
        index = self._index(start >> SHIFT)
        while index < i64(len(self._chunks)) and i64(len(found)) < at_most:
            chunk = self._chunks[index]
            at = start & MASK if chunk.number == start >> SHIFT else i64(0)
            chunk.gather(at, at_most, found)
            index += 1
        return found
