"""The waiting entries of one priority of a queue, in order; returned entries regain their place.

Positions are grouped in chunks of `CHUNK`, and a chunk exists while an entry waits in it. So an
entry that is taken leaves a gap to which it can return at any time, and empty ranges of
positions take neither memory nor search time. Entries of a long backlog are in the store alone,
except for a window of them (`pages.py`, `paging.py`): the entries of one range of positions are
divided between the chunk and the page of the same number.
"""

from typing import Final, final

from mypy_extensions import i64

from broker.routing.credit.memory import ENTRY_BYTES
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.queues.pages import FAR, PagedEntries
from broker.routing.queues.paging import Paged
from storage.batch import Batch

SHIFT: Final[i64] = 6
CHUNK: Final[i64] = 1 << SHIFT
MASK: Final[i64] = CHUNK - 1

PAGED_AT_ONCE: Final[i64] = 128
"""Maximum chunks that one round removes from memory: that takes about 1 ms."""


@final
class BacklogChunk:
    """The entries at the CHUNK positions from `number * CHUNK` on; `count` slots are in use.

    `is_pinned`: an entry has returned here, and other objects may refer to it, so that the
    entries must stay in memory.
    """

    def __init__(self, number: i64) -> None:
        self.number: i64 = number
        self.count: i64 = 0
        self.is_pinned = False
        self.slots: Final[list[QueueEntry | None]] = [None] * int(CHUNK)

    def gather(self, at: i64, at_most: i64, found: list[QueueEntry]) -> None:
        """Append the entries from slot `at` on to `found`, until it holds `at_most`."""
        while at < CHUNK and i64(len(found)) < at_most:
            entry = self.slots[at]
            if entry is not None:
                found.append(entry)
            at += 1

    def spill(self, batch: Batch) -> i64:
        """Note the entries that only memory has for the store; return their size in bytes."""
        noted: i64 = 0
        for entry in self.slots:
            if entry is not None and entry.stored_number == NOT_STORED:
                entry.queue.persistence.spill(entry, batch)
                noted += entry.message.encoded_size + ENTRY_BYTES
        return noted

    def is_stored(self, up_to: i64) -> bool:
        """Return whether no entry has a store number above `up_to`."""
        for entry in self.slots:  # noqa: SIM110 - generators are slow here
            if entry is not None and entry.stored_number > up_to:
                return False
        return True


@final
class Backlog:
    """The waiting entries of one priority, by ascending position.

    `waiting` counts them, including those in the store alone. `is_cut`: the result of the last
    `after` ends before entries that have to be loaded; `is_blocked`: it is empty for that reason.
    """

    def __init__(self, paged: Paged | None = None) -> None:
        self.waiting: i64 = 0
        self.next_position: i64 = 0
        self.is_blocked = False
        self.is_cut = False
        self.paged: Final = paged
        self._head = BacklogChunk(0)
        self._at: i64 = 0
        self._tail: BacklogChunk = self._head
        self._chunks: Final[list[BacklogChunk]] = [self._head]
        # index at which the last search ended: operations in order mostly stay in one chunk
        self._near: i64 = 0
        # the number of the first page, FAR if there is none
        self._limit: i64 = FAR
        # chunks of lower numbers have no entries that could leave memory
        self._examined: i64 = 0
        # chunks of lower numbers are in the store, except pinned ones and the first `_kept`
        self._spilled: i64 = 0
        self._kept: i64 = 0

    def append(self, entry: QueueEntry) -> None:
        """Append `entry`, whose position must be `next_position`."""
        position = entry.position
        tail = self._tail
        if position >> SHIFT != tail.number:
            tail = self._next_chunk(position >> SHIFT)
        tail.slots[position & MASK] = entry
        tail.count += 1
        self.next_position = position + 1
        self.waiting += 1

    def _next_chunk(self, number: i64) -> BacklogChunk:
        """Return a chunk for the end: the tail if it is empty, else a new one."""
        tail = self._tail
        if tail.count == 0:
            tail.number = number
            tail.is_pinned = False
        else:
            tail = BacklogChunk(number)
            self._tail = tail
            self._chunks.append(tail)
            if self.paged is not None:
                self.paged.grew(i64(len(self._chunks)))
        if self._head is tail:
            self._at = 0
        return tail

    def first(self) -> QueueEntry | None:
        """Return the first entry, which stays; None if there is none or it has to be loaded."""
        if self.waiting == 0:
            return None
        head = self._head
        if head.count == 0 or head.number >= self._limit:
            if not self._advance():
                return None
            head = self._head
        entry = head.slots[self._at]
        while entry is None:
            self._at += 1
            entry = head.slots[self._at]
        return entry

    def _advance(self) -> bool:
        """Go on from an empty head to the next chunk. False if the first entry is not in memory."""
        if self._head.count == 0 and len(self._chunks) > 1:
            del self._chunks[0]
            self._head = self._chunks[0]
            self._at = 0
        paged = self.paged
        if paged is None or self._limit == FAR:
            return True
        if self._index(self._limit) < paged.reserve():
            paged.ask(0)  # ahead of need
        return self._head.count > 0 and self._head.number < self._limit

    def has(self, entry: QueueEntry) -> bool:
        """Return whether `entry` waits here, in memory."""
        number = entry.position >> SHIFT
        index = self._index(number)
        if index == i64(len(self._chunks)):
            return False
        chunk = self._chunks[index]
        return chunk.number == number and chunk.slots[entry.position & MASK] is entry

    def put_back(self, entry: QueueEntry) -> None:
        """Return `entry` to its place."""
        self.waiting += 1
        self._place(entry).is_pinned = True

    def _place(self, entry: QueueEntry) -> BacklogChunk:
        position = entry.position
        chunk = self._chunk_of(position >> SHIFT)
        chunk.slots[position & MASK] = entry
        chunk.count += 1
        if chunk is self._head:
            self._at = min(self._at, position & MASK)
        return chunk

    def _chunk_of(self, number: i64) -> BacklogChunk:
        """Return the chunk of `number`, created if missing. `number` is not beyond the tail's."""
        index = self._index(number)
        found = self._chunks[index]
        if found.number == number:
            return found
        chunk = BacklogChunk(number)
        self._chunks.insert(int(index), chunk)
        if index == 0:
            self._new_head(chunk)
        return chunk

    def _new_head(self, chunk: BacklogChunk) -> None:
        old = self._head
        if old.count == 0 and old is not self._tail:
            del self._chunks[1]
        self._head = chunk
        self._at = MASK

    def _index(self, number: i64) -> i64:
        """Return the index of the first chunk whose number is at least `number`."""
        near = self._near
        if near < i64(len(self._chunks)) and self._chunks[near].number == number:
            return near
        low: i64 = 0
        high = i64(len(self._chunks))
        while low < high:
            middle = (low + high) >> 1
            if self._chunks[middle].number < number:
                low = middle + 1
            else:
                high = middle
        self._near = low
        return low

    def remove(self, entry: QueueEntry) -> None:
        """Remove `entry`, which must be here and in memory."""
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

    def remove_first(self) -> None:
        """Remove the entry that `first` has returned, if nothing has changed since.

        Unlike `remove` it need not find the place of the entry.
        """
        head = self._head
        head.slots[self._at] = None
        head.count -= 1
        self.waiting -= 1

    def after(self, position: i64, at_most: i64) -> list[QueueEntry]:
        """Return up to `at_most` waiting entries at positions greater than `position`, in order.

        Fewer if the entries that follow are not in memory (`is_cut`); if the result would be
        empty for that reason (`is_blocked`), their loading is requested.
        """
        self.is_blocked = False
        self.is_cut = False
        paged = self.paged
        if paged is None or self._limit == FAR:
            return self.loaded(position, at_most)
        page = paged.pages.index_behind(position)
        limit = paged.pages.number_at(page)
        found = self._gather(position, at_most, limit)
        if limit != FAR and i64(len(found)) < at_most:
            self.is_cut = True
            if not found:
                self.is_blocked = True
                paged.ask(page)
        return found

    def loaded(self, position: i64, at_most: i64) -> list[QueueEntry]:
        """Like `after`, but skip entries that are not in memory."""
        return self._gather(position, at_most, FAR)

    def _gather(self, position: i64, at_most: i64, limit: i64) -> list[QueueEntry]:
        found: list[QueueEntry] = []
        start = position + 1
        index = self._index(start >> SHIFT)
        while index < i64(len(self._chunks)) and i64(len(found)) < at_most:
            chunk = self._chunks[index]
            if chunk.number >= limit:
                break
            at = start & MASK if chunk.number == start >> SHIFT else i64(0)
            chunk.gather(at, at_most, found)
            index += 1
        return found

    def slots(self) -> list[list[QueueEntry | None]]:
        """Return the slots of each chunk in memory; None is an empty slot."""
        return [chunk.slots for chunk in self._chunks]

    # -- out of memory and back

    def recover(self, position: i64, stored_number: i64, *, size: i64, expires_at_ms: i64) -> None:
        """Add a message of the store without loading it, at a start; the order is arbitrary."""
        paged = self.paged
        assert paged is not None
        paged.pages.page_of(position >> SHIFT).add(
            position & MASK, stored_number, size=size, expires_at_ms=expires_at_ms
        )
        self.waiting += 1
        if position >= self.next_position:
            self.next_position = position + 1
            self._tail.number = self.next_position >> SHIFT
        self._look_for_pages(paged)

    def begin_behind(self, position: i64) -> None:
        """Begin new positions behind `position`, which no entry gets that comes from now on.

        Called only when nothing is in memory yet.
        """
        if position >= self.next_position:
            self.next_position = position + 1
            self._tail.number = self.next_position >> SHIFT

    def spill(self, keep: i64, most: i64, batch: Batch) -> i64:
        """Note messages behind the first `keep` chunks that only memory has for the store.

        Return their size in bytes: at most `most`, plus the excess of the last of these chunks.
        Pinned chunks are left out, and so is the last chunk, which is being filled.
        """
        if keep < self._kept:
            self._spilled = 0  # the chunks that were kept before may be spilled now
        self._kept = keep
        index = max(keep, self._index(self._spilled))
        first = index
        noted: i64 = 0
        while index < i64(len(self._chunks)) - 1 and noted < most:
            chunk = self._chunks[index]
            if not chunk.is_pinned:
                noted += chunk.spill(batch)
            self._spilled = chunk.number + 1
            index += 1
        if noted > 0:
            self._examined = min(self._examined, self._chunks[first].number)
        return noted

    def page_out(self, keep: i64, up_to: i64) -> bool:
        """Remove entries behind the first `keep` chunks from memory. False if some must stay yet.

        Entries that the store does not have, or not yet, stay in memory: `up_to` is the highest
        number that it has. So do pinned chunks, whose entries have a state that it does not have.
        No more than PAGED_AT_ONCE chunks are examined.
        """
        paged = self.paged
        assert paged is not None
        first = max(keep, self._index(self._examined))
        index = first
        # the last chunk is being filled, so it stays unless nothing is to be kept
        end = i64(len(self._chunks)) - (1 if keep > 0 else 0)
        left: list[BacklogChunk] = []
        is_done = True
        while index < end:
            chunk = self._chunks[index]
            if index - first == PAGED_AT_ONCE:
                paged.go_on_next_round()
                is_done = False
                break
            if not chunk.is_stored(up_to):
                is_done = False
                break
            if not chunk.is_pinned:
                _page_out(chunk, paged)
            if chunk.count > 0 or chunk is self._head or chunk is self._tail:
                left.append(chunk)
            self._examined = chunk.number + 1
            index += 1
        self._chunks[first:index] = left
        self._look_for_pages(paged)
        return is_done

    def bring_in(self, entry: QueueEntry) -> None:
        """Add an entry that was loaded from a page, after `give_up` of that page."""
        chunk = self._place(entry)
        self._examined = min(self._examined, chunk.number)

    def give_up(self, pages: list[PagedEntries]) -> None:
        """Remove `pages`: their entries are added to memory next (`bring_in`), or are lost."""
        paged = self.paged
        assert paged is not None
        paged.pages.remove(pages)
        self._look_for_pages(paged)

    def drop_pages(self, at_most: i64) -> list[PagedEntries]:
        """Remove pages with up to `at_most` messages together from the backlog; return them."""
        paged = self.paged
        if paged is None:
            return []
        dropped = paged.pages.drop(at_most)
        for page in dropped:
            self.waiting -= page.count
        self._look_for_pages(paged)
        paged.count()
        return dropped

    def _look_for_pages(self, paged: Paged) -> None:
        self._limit = paged.pages.number_at(0)

    def chunks(self) -> i64:
        """Return the number of chunks in memory."""
        return i64(len(self._chunks))


def _page_out(chunk: BacklogChunk, paged: Paged) -> None:
    """Move the entries of `chunk` that the store has to a page."""
    memory = paged.memory
    page: PagedEntries | None = None
    for slot in range(CHUNK):
        entry = chunk.slots[slot]
        if entry is None or entry.stored_number == NOT_STORED:
            continue
        if page is None:
            page = paged.pages.page_of(chunk.number)
        message = entry.message
        page.add(slot, entry.stored_number, size=message.size, expires_at_ms=message.expires_at_ms)
        page.came_from(slot, message.origin)
        if entry.group is not None:
            if page.groups is None:
                page.groups = {}
            page.groups[int(slot)] = entry.group
        memory.leaves(message)
        chunk.slots[slot] = None
        chunk.count -= 1
