"""What of a backlog is in the store alone: the numbers of its messages, in arrays."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64, mypyc_attr

from broker.message import NEVER, NOWHERE, Origin
from broker.routing.entries import expiry

if TYPE_CHECKING:
    from broker.routing.entries.groups import Group

PAGE: Final[i64] = 64
SHIFT: Final[i64] = 6
MASK: Final[i64] = PAGE - 1
"""A page has the positions of one chunk of a backlog."""

NO_NUMBERS: Final = bytes(64 * 8)

FAR: Final[i64] = 1 << 60
"""Behind every chunk."""


@mypyc_attr(acyclic=True)
@final
class PagedEntries:
    """Messages at positions `number * PAGE` and up which are not in memory: ten bytes for each.

    `numbers` names them to the store, by slot, 0 where there is none. `mortal` of them expire,
    none before `first_expiry_ms`. `groups` has those that are known by slot; what was not in
    memory since the start has none yet. `is_asked`: it is being loaded. `is_gone`: dropped.
    """

    def __init__(self, number: i64) -> None:
        self.number: Final[i64] = number
        self.count: i64 = 0
        self.bytes: i64 = 0
        self.mortal: i64 = 0
        self.first_expiry_ms: i64 = NEVER
        self.is_asked = False
        self.is_gone = False
        self.numbers: Final = array("q", NO_NUMBERS)
        self.groups: dict[int, Group] | None = None
        # by slot, where they differ
        self._origins: list[Origin] | None = None
        self._origin: Origin = NOWHERE

    def add(self, slot: i64, stored_number: i64, *, size: i64, expires_at_ms: i64) -> None:
        """A message of that slot is in the store alone."""
        self.numbers[slot] = stored_number
        self.count += 1
        self.bytes += size
        if expires_at_ms != NEVER:
            self.mortal += 1
            if self.first_expiry_ms == NEVER or expires_at_ms < self.first_expiry_ms:
                self.first_expiry_ms = expires_at_ms

    def came_from(self, slot: i64, origin: Origin) -> None:
        """Keep the origin of the message that was added last, the key of which no store keeps."""
        if self.count == 1:
            self._origin = origin
        if self._origins is None:
            if origin is self._origin:
                return
            self._origins = [self._origin] * 64
        self._origins[slot] = origin

    def origin_of(self, slot: i64) -> Origin:
        """Where the message of that slot came from."""
        origins = self._origins
        return self._origin if origins is None else origins[slot]


@final
class Pages:
    """The pages of one backlog in their order. They know nothing of chunks, nor of the store."""

    def __init__(self) -> None:
        self._pages: Final[list[PagedEntries]] = []

    def size(self) -> i64:
        """How many there are."""
        return i64(len(self._pages))

    def index(self, number: i64) -> i64:
        """Where the first page of at least that number lies."""
        pages = self._pages
        high = i64(len(pages))
        if high > 0 and pages[high - 1].number < number:
            return high
        low: i64 = 0
        while low < high:
            middle = (low + high) >> 1
            if pages[middle].number < number:
                low = middle + 1
            else:
                high = middle
        return low

    def number_at(self, index: i64) -> i64:
        """The number of the page that lies there, FAR behind the last."""
        return self._pages[index].number if index < i64(len(self._pages)) else FAR

    def is_behind(self, position: i64) -> bool:
        """Whether there is a page for what comes behind that position."""
        return self.index((position + 1) >> SHIFT) < i64(len(self._pages))

    def page_of(self, number: i64) -> PagedEntries:
        """The page of that number for one more message, made where there is none.

        A page that is being loaded has its messages already counted; another takes its number.
        """
        index = self.index(number)
        if index < i64(len(self._pages)):
            page = self._pages[index]
            if page.number == number and not page.is_asked:
                return page
        page = PagedEntries(number)
        self._pages.insert(int(index), page)
        return page

    def has(self, position: i64) -> bool:
        """Whether the message of that position is in one of them."""
        number = position >> SHIFT
        index = self.index(number)
        while self.number_at(index) == number:
            if self._pages[index].numbers[position & MASK] != 0:
                return True
            index += 1
        return False

    def take(self, index: i64, *, at_most: i64, bytes_max: i64) -> list[PagedEntries]:
        """Pages from there on that are to be loaded now; none where the first is on its way."""
        taken: list[PagedEntries] = []
        size: i64 = 0
        while index < i64(len(self._pages)) and i64(len(taken)) < at_most:
            page = self._pages[index]
            if page.is_asked or (taken and size + page.bytes > bytes_max):
                break
            page.is_asked = True
            size += page.bytes
            taken.append(page)
            index += 1
        return taken

    def take_at(self, number: i64) -> list[PagedEntries]:
        """The pages of that number which are not on their way."""
        index = self.index(number)
        taken: list[PagedEntries] = []
        while self.number_at(index) == number:
            page = self._pages[index]
            if not page.is_asked:
                page.is_asked = True
                taken.append(page)
            index += 1
        return taken

    def take_expired(self, wall_ms: i64, *, at_most: i64, bytes_max: i64) -> list[PagedEntries]:
        """Pages that have something expired, and are not on their way: one at least."""
        taken: list[PagedEntries] = []
        size: i64 = 0
        for page in self._pages:
            if page.is_asked or not expiry.has_expired(page.first_expiry_ms, wall_ms):
                continue
            size += page.bytes
            if i64(len(taken)) == at_most or (taken and size > bytes_max):
                break
            page.is_asked = True
            taken.append(page)
        return taken

    def remove(self, pages: list[PagedEntries]) -> None:
        """These are in memory again. They come in their order."""
        if not pages:
            return
        index = self.index(pages[0].number)
        count = i64(len(pages))
        if self._pages[index : index + count] == pages:
            del self._pages[index : index + count]
            return
        gone = set(pages)
        self._pages[:] = [page for page in self._pages if page not in gone]

    def drop(self, at_most: i64) -> list[PagedEntries]:
        """Forget pages, the first before the others, with up to so many messages together."""
        dropped: list[PagedEntries] = []
        for page in self._pages:
            if page.count > at_most:
                break
            at_most -= page.count
            page.is_gone = True
            dropped.append(page)
        del self._pages[: len(dropped)]
        return dropped
