"""Paging of long backlogs: a window is in memory, the rest in the store until it is needed.

When a backlog has grown beyond its window, its entries leave memory as soon as the store has
them, except for the window at its beginning and the chunk that is being filled. They are loaded
in portions of some hundreds when the queue is searched: shortly before the first consumer needs
them, and for all others when they get there. No caller waits for a load: one that finds no entry
returns, and is woken once entries have been loaded.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.log_events import MESSAGES_UNREADABLE
from broker.message import NEVER, NOWHERE, Message, Origin
from broker.routing.credit.memory import ENTRY_BYTES
from broker.routing.errors import LimitReached
from broker.routing.queues import queue_limits
from broker.routing.queues.pages import FAR, PAGE, SHIFT, PagedEntries, Pages
from storage.batch import Batch
from storage.records import StoredMessage

if TYPE_CHECKING:
    from broker.routing.queues.backlog import Backlog
    from broker.routing.queues.queue import Queue

WINDOW: Final = 1024
"""Messages of one priority of a queue that stay in memory when others have to leave it."""

WINDOW_BYTES: Final[i64] = 8 * 1024 * 1024
"""Maximum bytes of such messages, though at least one chunk of them stays. All windows together
have at most a quarter of the memory budget."""

WINDOWS_IN_ALL: Final[i64] = 4096
"""Maximum chunks in all windows together, at least one in each: 262,144 messages."""

PORTION_BYTES: Final[i64] = 4 * 1024 * 1024
"""Maximum bytes of messages loaded at once, though at least one page."""

SPILLED_AT_ONCE: Final[i64] = 2 * 1024 * 1024
"""Maximum bytes of messages noted for the store in one round because memory is short."""

LONG: Final[i64] = 2
"""Chunks in memory beyond which a backlog may have messages to be written to the store."""

PARKED_MAX: Final = 1000
"""Maximum requests that wait for messages to be loaded."""


class NotLoaded(Exception):  # noqa: N818 - nothing is wrong
    """The messages asked for are being loaded: ask again once `Parked.loaded` is called."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Reader:
    """Reads the messages of a load from the store."""

    @abstractmethod
    def read(self, load: Load) -> None:
        """Read the messages of `load`, and call its `finish`, now or later."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Parked:
    """A request that met NotLoaded."""

    @abstractmethod
    def loaded(self) -> None:
        """Ask again: messages have been loaded, though perhaps not yet all of them."""


@final
class Paging:
    """The state shared by all backlogs of one broker: their windows, and loads they wait for.

    `window` is the longest window of a backlog in chunks; -1 leaves all entries in memory. `long`
    has the backlogs with more than LONG chunks in memory, now or before: their messages are
    written to the store when memory is short. `wanted` loads have not begun, `grown` backlogs are
    to be shortened, and `backlogs` is the number of those with pages.
    """

    def __init__(self, window: i64 = -1) -> None:
        self.long: Final[dict[Paged, None]] = {}
        self.window: i64 = -1 if window <= 0 else max(1, window // PAGE)
        self.reader: Reader | None = None
        self.wanted: list[Load] = []
        self.grown: list[Paged] = []
        self.parked: list[Parked] = []
        self.backlogs: i64 = 0
        # messages with lower store numbers may have been delivered before the start
        self.suspected_below: i64 = 0
        self._up_to: i64 = 0
        # origin of the message loaded last: mostly that of the next one, too
        self._origin: Origin = NOWHERE

    def origin_of(self, publisher: str) -> Origin:
        """Return the origin of a message of which only `publisher` is known, empty if unknown."""
        if not publisher:
            return NOWHERE
        if self._origin.publisher != publisher:
            self._origin = Origin(publisher)
        return self._origin

    def begin(self) -> None:
        """Begin the loads that are wanted by now."""
        reader = self.reader
        if reader is None:
            return
        wanted = self.wanted
        self.wanted = []
        for load in wanted:
            reader.read(load)

    def page_out(self, up_to: i64) -> None:
        """Remove from memory what backlogs have beyond their windows, up to store number `up_to`.

        `up_to` is the highest number that the store has. Nothing is done while a request is
        parked: messages loaded for it might leave memory before all of them are there.
        """
        if up_to == self._up_to or self.parked:
            return
        self._up_to = up_to
        grown = self.grown
        self.grown = []
        for paged in grown:
            if not paged.page_out(up_to):
                self.grown.append(paged)

    def go_on_next_round(self) -> None:
        """Call `page_out` to effect in the next round: there is more to remove from memory."""
        self._up_to = 0

    def spill(self, batch: Batch) -> None:
        """Note about SPILLED_AT_ONCE bytes that only memory has of long backlogs for the store."""
        left = SPILLED_AT_ONCE
        for paged in list(self.long):
            noted = paged.spill(left, batch)
            if noted == 0:
                continue
            left -= noted
            if left <= 0:
                return

    def park(self, parked: Parked) -> None:
        """Have `parked` called when messages are loaded; raise LimitReached if too many wait."""
        if len(self.parked) == PARKED_MAX:
            raise LimitReached(f"{PARKED_MAX} requests wait for messages to be loaded")
        self.parked.append(parked)

    def resume(self) -> None:
        """Call the parked requests after a load; backlogs that it lengthened may be shortened."""
        self._up_to = 0
        parked = self.parked
        self.parked = []
        for each in parked:
            each.loaded()


@final
class Paged:
    """The paging of one backlog of `queue`."""

    def __init__(self, queue: Queue, priority: i64, paging: Paging) -> None:
        self.pages: Final = Pages()
        self.memory: Final = queue.context.memory
        self._queue: Final = queue
        self._priority: Final[i64] = priority
        self._paging: Final = paging
        self._has_grown = False
        self._is_counted = False

    def window(self) -> i64:
        """Return how many chunks may stay in memory, at least 1; FAR if paging is off."""
        paging = self._paging
        if paging.window < 0:
            return FAR
        backlogs = max(i64(1), paging.backlogs)
        if self.memory.spills:
            backlogs = max(backlogs, i64(len(paging.long)))
        average = self._queue.state.bytes // max(i64(1), self._queue.contents()) + ENTRY_BYTES
        size = min(WINDOW_BYTES, self.memory.quarter() // backlogs)
        most = min(min(paging.window, WINDOWS_IN_ALL // backlogs), size // (average * PAGE))
        return max(i64(1), most)

    def reserve(self) -> i64:
        """Return the number of chunks before the first page below which that page is loaded."""
        return self._portion() + 1

    def _portion(self) -> i64:
        paging = self._paging
        return max(1, (self.window() if paging.window > 0 else WINDOW // PAGE) // 2)

    def spill(self, most: i64, batch: Batch) -> i64:
        """Note about `most` bytes that only memory has for the store; return the number noted."""
        backlog = self._queue.backlogs.by_priority[self._priority]
        if backlog is None or backlog.chunks() <= LONG:
            self._paging.long.pop(self, None)
            return 0
        noted = backlog.spill(self.window(), most, batch)
        if not self._has_grown:
            self._has_grown = True
            self._paging.grown.append(self)
        return noted

    def grew(self, chunks: i64) -> None:
        """Check whether the backlog, now with `chunks` chunks in memory, has to be shortened."""
        if chunks > LONG and self._paging.window > 0:
            self._paging.long[self] = None
        if self._has_grown or self._paging.window < 0:
            return
        if chunks > self.window() + self._portion():
            self._has_grown = True
            self._paging.grown.append(self)

    def page_out(self, up_to: i64) -> bool:
        """Remove entries beyond the window from memory. False if some must stay yet."""
        self._has_grown = False
        backlog = self._queue.backlogs.by_priority[self._priority]
        if backlog is None:
            return True
        is_done = backlog.page_out(self.window(), up_to)
        self._has_grown = not is_done
        self.count()
        return is_done

    def go_on_next_round(self) -> None:
        """Remove more entries from memory in the next round, even if nothing has become durable."""
        self._paging.go_on_next_round()

    def count(self) -> None:
        """Count the backlog among the paged ones if it has pages, else count it out."""
        if self._queue.state.is_deleted:
            self._paging.long.pop(self, None)
        is_paged = self.pages.size() > 0
        if is_paged != self._is_counted:
            self._is_counted = is_paged
            self._paging.backlogs += 1 if is_paged else -1

    def ask(self, index: i64) -> None:
        """Request a portion of pages from `index` on, unless that one is being loaded."""
        self._want(self.pages.take(index, at_most=self._portion(), bytes_max=PORTION_BYTES))

    def ask_for(self, position: i64) -> bool:
        """Request the page that has the message at `position`. False if no page has it."""
        if not self.pages.has(position):
            return False
        self._want(self.pages.take_at(position >> SHIFT))
        return True

    def ask_expired(self, wall_ms: i64, at_most: i64) -> None:
        """Request pages with expired messages, of up to `at_most` positions together.

        The messages are moved or discarded when they are loaded.
        """
        self._want(
            self.pages.take_expired(wall_ms, at_most=at_most // PAGE, bytes_max=PORTION_BYTES)
        )

    def _want(self, pages: list[PagedEntries]) -> None:
        if pages:
            self._paging.wanted.append(Load(self._queue, self._priority, pages))


@final
class Load:
    """Pages of one backlog whose messages are to be loaded."""

    def __init__(self, queue: Queue, priority: i64, pages: list[PagedEntries]) -> None:
        self._queue: Final = queue
        self._priority: Final[i64] = priority
        self._pages: Final = pages

    def numbers(self) -> list[int]:
        """Return the store numbers of the messages, ascending."""
        return sorted([number for page in self._pages for number in page.numbers if number != 0])

    def finish(self, messages: list[StoredMessage], batch: Batch) -> None:
        """Put `messages` into the backlog. What the store no longer has or cannot read is lost.

        Messages that have expired meanwhile are moved or discarded as such.
        """
        queue = self._queue
        backlog = queue.backlogs.by_priority[self._priority]
        if queue.state.is_deleted or backlog is None:
            return
        pages = [page for page in self._pages if not page.is_gone]
        backlog.give_up(pages)
        loaded = {int(stored.number): stored for stored in messages}
        for page in pages:
            self._take_in(page, loaded, backlog=backlog, batch=batch)
        if queue.state.owes_room:
            queue_limits.make_owed_room(queue, batch)
        paged = backlog.paged
        if paged is not None:
            paged.count()
            paged.grew(backlog.chunks())
        queue.wake()

    def _take_in(
        self,
        page: PagedEntries,
        loaded: dict[int, StoredMessage],
        *,
        backlog: Backlog,
        batch: Batch,
    ) -> None:
        """Put the messages of `page` into the backlog, and report those that are lost."""
        queue = self._queue
        lost = LostMessages(page.count, page.bytes, page.expiring)
        start = page.number << SHIFT
        for slot, number in enumerate(page.numbers):
            stored = loaded.get(number)
            if stored is None:
                continue
            entry = queue.entry_of(stored, start + slot, origin=page.origin_of(slot))
            entry.group = None if page.groups is None else page.groups.get(slot)
            lost.found(entry.message)
            queue.bring_in(entry, backlog, batch)
        if lost.count > 0:
            backlog.waiting -= lost.count
            queue.state.lose(lost.count, lost.bytes, lost.expiring)
            queue.context.routing.notices.append(
                MESSAGES_UNREADABLE.notice(
                    f"{lost.count} messages of {queue.address} could not be read, and are left out"
                )
            )


@final
class LostMessages:
    """The messages of a page that a load has not found, with their bytes and those with expiry."""

    def __init__(self, count: i64, size: i64, expiring: i64) -> None:
        self.count: i64 = count
        self.bytes: i64 = size
        self.expiring: i64 = expiring

    def found(self, message: Message) -> None:
        """Leave out `message`, which was found."""
        self.count -= 1
        self.bytes -= message.size
        if message.expires_at_ms != NEVER:
            self.expiring -= 1
