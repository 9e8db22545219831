"""Which part of long backlogs is in memory, and how the rest gets there: by windows, ahead of need.

A backlog that grows beyond its window leaves memory, as soon as the store has it, but
for the window's beginning and the chunk that is being filled. It comes back in portions
of some hundreds, on request of who looks at it: the first consumer shortly before it
needs them, all others when they get there. Nobody waits: who finds nothing goes away, and is
woken once there is something.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.message import NEVER, NOWHERE, Origin
from broker.routing.credit.memory import ENTRY_BYTES
from broker.routing.entries.groups import join_group
from broker.routing.entries.record_mapping import as_entry
from broker.routing.errors import LimitReached
from broker.routing.queues.pages import FAR, PAGE, SHIFT, PagedEntries, Pages
from storage.batch import Batch
from storage.records import StoredMessage

if TYPE_CHECKING:
    from broker.routing.queues.backlog import Backlog
    from broker.routing.queues.queue import Queue

WINDOW: Final = 1024
"""Messages of a priority of a queue that stay in memory where others have to leave it."""

WINDOW_BYTES: Final[i64] = 8 * 1024 * 1024
"""The same in bytes, at least one chunk of messages. All windows together: a quarter of the
memory budget."""

WINDOWS_IN_ALL: Final[i64] = 4096
"""Chunks in the windows of all backlogs together, one for each at least: 262,144 messages."""

PORTION_BYTES: Final[i64] = 4 * 1024 * 1024
"""So much is loaded at once, or one page."""

SPILLED_AT_ONCE: Final[i64] = 2 * 1024 * 1024
"""Bytes of messages that go to the store in one round for want of memory."""

LONG: Final[i64] = 2
"""A backlog with more chunks than these has something that could go to the store."""

PARKED_MAX: Final = 1000
"""Requests that may wait for something to be loaded."""


class NotLoaded(Exception):  # noqa: N818 - nothing is wrong
    """What was asked for is on its way into memory: ask again when it has come."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Reader:
    """Gets from the store what a load wants."""

    @abstractmethod
    def read(self, load: Load) -> None:
        """Have `load` finished, now or later."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Parked:
    """Somebody who met NotLoaded."""

    @abstractmethod
    def loaded(self) -> None:
        """Something has been loaded; it may still not be everything."""


@final
class Paging:
    """What the backlogs of one broker share: how long their windows are, and what they wait for.

    `window` is that of each in chunks; -1 leaves everything in memory. `long` backlogs have more
    chunks in memory than the shortest window, or had: from these messages go to the store when
    memory is short.
    """

    def __init__(self, window: i64 = -1) -> None:
        self.long: Final[dict[Paged, None]] = {}
        self.window: i64 = -1 if window <= 0 else max(1, window // PAGE)
        self.reader: Reader | None = None
        self.wanted: list[Load] = []
        self.grown: list[Paged] = []
        self.parked: list[Parked] = []
        self.backlogs: i64 = 0
        # messages below that number may have been delivered before the start
        self.suspected_below: i64 = 0
        self._up_to: i64 = 0
        # of the message that came back last: most often that of the next one
        self._origin: Origin = NOWHERE

    def origin_of(self, publisher: str) -> Origin:
        """The origin of a message of which only the publisher is known, or not even that."""
        if not publisher:
            return NOWHERE
        if self._origin.publisher != publisher:
            self._origin = Origin(publisher)
        return self._origin

    def begin(self) -> None:
        """Have read what is wanted by now."""
        reader = self.reader
        if reader is None:
            return
        wanted = self.wanted
        self.wanted = []
        for load in wanted:
            reader.read(load)

    def page_out(self, up_to: i64) -> None:
        """Shorten the backlogs that have grown; `up_to` is the last number that the store has.

        Not while somebody is parked, or what has been loaded for it might go before all has come.
        """
        if up_to == self._up_to or self.parked:
            return
        self._up_to = up_to
        grown = self.grown
        self.grown = []
        for paged in grown:
            if not paged.page_out(up_to):
                self.grown.append(paged)

    def spill(self, batch: Batch) -> None:
        """Note for the store what long backlogs have in memory alone, SPILLED_AT_ONCE at most."""
        left = SPILLED_AT_ONCE
        for paged in list(self.long):
            noted = paged.spill(left, batch)
            if noted == 0:
                continue
            left -= noted
            if left <= 0:
                return

    def park(self, parked: Parked) -> None:
        """Tell `parked` when something has been loaded; LimitReached where too many wait."""
        if len(self.parked) == PARKED_MAX:
            raise LimitReached(f"{PARKED_MAX} requests wait for messages to be loaded")
        self.parked.append(parked)

    def resume(self) -> None:
        """Something has been loaded. What has grown with that may be shortened."""
        self._up_to = 0
        parked = self.parked
        self.parked = []
        for each in parked:
            each.loaded()


@final
class Paged:
    """How one backlog of `queue` is paged."""

    def __init__(self, queue: Queue, priority: i64, paging: Paging) -> None:
        self.pages: Final = Pages()
        self.memory: Final = queue.memory
        self._queue: Final = queue
        self._priority: Final[i64] = priority
        self._paging: Final = paging
        self._has_grown = False
        self._is_counted = False

    def window(self) -> i64:
        """How many chunks may stay in memory."""
        paging = self._paging
        if paging.window < 0:
            return FAR
        queue = self._queue
        backlogs = max(1, paging.backlogs)
        if self.memory.spills:
            backlogs = max(backlogs, i64(len(paging.long)))
        average = queue.bytes // max(1, queue.contents()) + ENTRY_BYTES
        size = min(WINDOW_BYTES, self.memory.quarter() // backlogs)
        return max(1, min(paging.window, WINDOWS_IN_ALL // backlogs, size // (average * PAGE)))

    def reserve(self) -> i64:
        """With fewer chunks than these before the first page, that is loaded ahead of need."""
        return self._portion() + 1

    def _portion(self) -> i64:
        paging = self._paging
        return max(1, (self.window() if paging.window > 0 else WINDOW // PAGE) // 2)

    def spill(self, most: i64, batch: Batch) -> i64:
        """Note for the store up to `most` bytes that only memory has; how many these are."""
        backlog = self._queue.backlogs[self._priority]
        if backlog is None or backlog.chunks() <= LONG:
            self._paging.long.pop(self, None)
            return 0
        noted = backlog.spill(self.window(), most, batch)
        if not self._has_grown:
            self._has_grown = True
            self._paging.grown.append(self)
        return noted

    def grew(self, chunks: i64) -> None:
        """The backlog has so many chunks in memory now."""
        if chunks > LONG and self._paging.window > 0:
            self._paging.long[self] = None
        if self._has_grown or self._paging.window < 0:
            return
        if chunks > self.window() + self._portion():
            self._has_grown = True
            self._paging.grown.append(self)

    def page_out(self, up_to: i64) -> bool:
        """Let leave what is beyond the window; False where some of it cannot yet."""
        self._has_grown = False
        backlog = self._queue.backlogs[self._priority]
        if backlog is None:
            return True
        is_done = backlog.page_out(self.window(), up_to)
        self._has_grown = not is_done
        self.count()
        return is_done

    def count(self) -> None:
        """Count among the paged backlogs, or no more."""
        if self._queue.is_deleted:
            self._paging.long.pop(self, None)
        is_paged = self.pages.size() > 0
        if is_paged != self._is_counted:
            self._is_counted = is_paged
            self._paging.backlogs += 1 if is_paged else -1

    def ask(self, index: i64) -> None:
        """Want a portion of pages from that one on, unless it is on its way."""
        self._want(self.pages.take(index, at_most=self._portion(), bytes_max=PORTION_BYTES))

    def ask_for(self, position: i64) -> bool:
        """Want the page of that position; False where the message there is in none."""
        if not self.pages.has(position):
            return False
        self._want(self.pages.take_at(position >> SHIFT))
        return True

    def ask_expired(self, wall_ms: i64, at_most: i64) -> None:
        """Want what has expired: it does so when it is loaded."""
        self._want(
            self.pages.take_expired(wall_ms, at_most=at_most // PAGE, bytes_max=PORTION_BYTES)
        )

    def _want(self, pages: list[PagedEntries]) -> None:
        if pages:
            self._paging.wanted.append(Load(self._queue, self._priority, pages))


@final
class Load:
    """Pages of one backlog that are to come into memory."""

    def __init__(self, queue: Queue, priority: i64, pages: list[PagedEntries]) -> None:
        self._queue: Final = queue
        self._priority: Final[i64] = priority
        self._pages: Final = pages

    def numbers(self) -> list[int]:
        """Which messages of the store these are, ascending."""
        return sorted([number for page in self._pages for number in page.numbers if number != 0])

    def finish(self, messages: list[StoredMessage], batch: Batch) -> None:
        """Let them wait in memory. What the store does not have any more, or cannot read, is gone.

        What has expired meanwhile goes the way of such messages.
        """
        queue = self._queue
        backlog = queue.backlogs[self._priority]
        if queue.is_deleted or backlog is None:
            return
        pages = [page for page in self._pages if not page.is_gone]
        backlog.give_up(pages)
        loaded = {int(stored.number): stored for stored in messages}
        for page in pages:
            self._take_in(page, loaded, backlog=backlog, batch=batch)
        paged = backlog.paged
        if paged is not None:
            paged.count()
            paged.grew(backlog.chunks())
        queue.router.wake(queue)

    def _take_in(
        self,
        page: PagedEntries,
        loaded: dict[int, StoredMessage],
        *,
        backlog: Backlog,
        batch: Batch,
    ) -> None:
        """Let the messages of `page` wait in memory."""
        queue = self._queue
        lost = page.count
        lost_bytes = page.bytes
        lost_mortal = page.mortal
        start = page.number << SHIFT
        for slot, number in enumerate(page.numbers):
            stored = loaded.get(number)
            if stored is None:
                continue
            entry = as_entry(queue, stored, start + slot, origin=page.origin_of(slot))
            message = entry.message
            lost -= 1
            lost_bytes -= message.size
            backlog.bring_in(entry)
            queue.memory.enters(message)
            group = None if page.groups is None else page.groups.get(slot)
            if group is not None:
                entry.group = group
            elif message.particulars is not None and message.group:
                join_group(entry, queue)
            if message.expires_at_ms != NEVER:
                lost_mortal -= 1
                queue.expire(entry, backlog, batch)
        if lost > 0:
            backlog.waiting -= lost
            queue.waiting -= lost
            queue.bytes -= lost_bytes
            queue.sweep.mortal -= lost_mortal
            queue.router.notices.append(
                f"{lost} messages of {queue.address} could not be read, and are left out"
            )


def recover(queue: Queue, *, number: i64, place: i64, size: i64, expires_at_ms: i64) -> None:
    """A message of `queue` that the store has waits again, at a start: it is not loaded."""
    priority = place % 10
    backlog = queue.backlog_of(priority)
    paged = backlog.paged
    if paged is None:
        return  # of a node that stores nothing, by its present settings
    backlog.recover(place // 10, number, size=size, expires_at_ms=expires_at_ms)
    paged.count()
    queue.waiting += 1
    queue.bytes += size
    queue.top = max(queue.top, priority)
    if expires_at_ms != NEVER:
        queue.sweep.joined(queue)


def drop_pages(queue: Queue, at_most: i64, batch: Batch) -> i64:
    """Forget up to `at_most` messages that are not in memory; how many."""
    dropped: i64 = 0
    for backlog in queue.backlogs:
        if backlog is not None:
            for page in backlog.drop_pages(at_most - dropped):
                dropped += page.count
                _forget(queue, page, batch)
    if dropped > 0 and queue.outlived is not None:
        queue.router.left(queue)
    return dropped


def _forget(queue: Queue, page: PagedEntries, batch: Batch) -> None:
    queue.waiting -= page.count
    queue.bytes -= page.bytes
    queue.sweep.mortal -= page.mortal
    for number in page.numbers:
        if number != 0:
            batch.remove(number)
        if number == queue.ack_latency.timed:
            queue.ack_latency.left()
    if page.groups is not None and queue.groups is not None:
        for group in page.groups.values():
            queue.groups.dropped(group, queue)
