"""Pages: the entries of a backlog that are in the store alone, by number, in arrays."""

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
"""A page covers PAGE positions, those of one chunk of a backlog."""

NO_NUMBERS: Final = bytes(64 * 8)

FAR: Final[i64] = 1 << 60
"""Number greater than that of every chunk and page."""


@mypyc_attr(acyclic=True)
@final
class PagedEntries:
    """Messages at the PAGE positions from `number * PAGE` on, not in memory: ten bytes for each.

    `numbers` has their store numbers by slot, 0 for an empty slot. `expiring` of the `count`
    messages expire, none before `first_expiry_ms` (wall time). `groups` has the known message
    groups by slot; messages that were not in memory since the start have none yet. `is_asked`:
    the page is being loaded. `is_gone`: its messages were discarded.
    """

    def __init__(self, number: i64) -> None:
        self.number: Final[i64] = number
        self.count: i64 = 0
        self.bytes: i64 = 0
        self.expiring: i64 = 0
        self.first_expiry_ms: i64 = NEVER
        self.is_asked = False
        self.is_gone = False
        self.numbers: Final = array("q", NO_NUMBERS)
        self.groups: dict[int, Group] | None = None
        # by slot; None while all have the origin `_origin`
        self._origins: list[Origin] | None = None
        self._origin: Origin = NOWHERE

    def add(self, slot: i64, stored_number: i64, *, size: i64, expires_at_ms: i64) -> None:
        """Add the message of `slot`, which is in the store alone from now on; `size` in bytes."""
        self.numbers[slot] = stored_number
        self.count += 1
        self.bytes += size
        if expires_at_ms != NEVER:
            self.expiring += 1
            if self.first_expiry_ms == NEVER or expires_at_ms < self.first_expiry_ms:
                self.first_expiry_ms = expires_at_ms

    def came_from(self, slot: i64, origin: Origin) -> None:
        """Keep `origin` of the message added last, at `slot`: the store does not have its key."""
        if self.count == 1:
            self._origin = origin
        if self._origins is None:
            if origin is self._origin:
                return
            self._origins = [self._origin] * 64
        self._origins[slot] = origin

    def has_from(self, slot: i64) -> bool:
        """Return whether there is a message at `slot` or behind it."""
        while slot < PAGE:
            if self.numbers[slot] != 0:
                return True
            slot += 1
        return False

    def origin_of(self, slot: i64) -> Origin:
        """Return the origin of the message at `slot`."""
        origins = self._origins
        return self._origin if origins is None else origins[slot]


@final
class Pages:
    """The pages of one backlog in order, independent of its chunks and of the store."""

    def __init__(self) -> None:
        self._pages: Final[list[PagedEntries]] = []

    def size(self) -> i64:
        """Return the number of pages."""
        return i64(len(self._pages))

    def index(self, number: i64) -> i64:
        """Return the index of the first page whose number is at least `number`."""
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

    def index_behind(self, position: i64) -> i64:
        """Return the index of the first page that has a message at a higher position."""
        number = (position + 1) >> SHIFT
        index = self.index(number)
        while self.number_at(index) == number:
            if self._pages[index].has_from((position + 1) & MASK):
                break
            index += 1
        return index

    def number_at(self, index: i64) -> i64:
        """Return the number of the page at `index`; FAR if it is behind the last page."""
        return self._pages[index].number if index < i64(len(self._pages)) else FAR

    def is_behind(self, position: i64) -> bool:
        """Return whether a page covers the next position or higher ones."""
        return self.index((position + 1) >> SHIFT) < i64(len(self._pages))

    def page_of(self, number: i64) -> PagedEntries:
        """Return the page of `number` for one more message, created if missing.

        A page that is being loaded takes no more messages; a second one of its number is created.
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
        """Return whether one of the pages has the message at `position`."""
        number = position >> SHIFT
        index = self.index(number)
        while self.number_at(index) == number:
            if self._pages[index].numbers[position & MASK] != 0:
                return True
            index += 1
        return False

    def take(self, index: i64, *, at_most: i64, bytes_max: i64) -> list[PagedEntries]:
        """Mark pages from `index` on as being loaded, and return them.

        Up to `at_most` pages with `bytes_max` bytes together, but at least one; none if the first
        is being loaded already.
        """
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
        """Mark the pages of `number` as being loaded; return those that were not already."""
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
        """Mark pages with expired messages as being loaded, and return them.

        Up to `at_most` pages with `bytes_max` bytes together, but at least one if there is any.
        """
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
        """Remove `pages`, which are in order: they have been loaded."""
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
        """Remove and return pages, from the first on, with up to `at_most` messages together."""
        dropped: list[PagedEntries] = []
        for page in self._pages:
            if page.count > at_most:
                break
            at_most -= page.count
            page.is_gone = True
            dropped.append(page)
        del self._pages[: len(dropped)]
        return dropped
