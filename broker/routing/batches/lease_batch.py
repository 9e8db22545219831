"""A batch of a lease: messages that were acquired together, cut into slices once and for all.

A slice can be read by anybody, any number of times, and has the same messages in the same order
each time. So which message is in which is stored; nothing of it depends on how it was found out.
"""

from __future__ import annotations

import zlib
from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry

SLICES_MAX: Final[i64] = 256
"""Slices of one batch: each is a task of whoever reads them, and takes one byte in the store."""


def cut(groups: list[str], slices: i64) -> list[int]:
    """In which of so many slices each message is; `groups` has the group of each, empty for none.

    A group is in one slice, by its name. The others are dealt out in runs of equal length.
    """
    alone: i64 = 0
    for group in groups:
        if not group:
            alone += 1
    found: list[int] = []
    dealt: i64 = 0
    for group in groups:
        if group:
            found.append(zlib.crc32(group.encode(errors="surrogatepass")) % int(slices))
        else:
            found.append(int(dealt * slices // alone))
            dealt += 1
    return found


@final
class LeaseBatch:
    """Entries in the order of their acquisition, and which slice each is in.

    Before a restart has given them back, entries may be fewer than numbers were stored.
    """

    def __init__(self, number: i64, slice_count: i64, slices: list[int]) -> None:
        self.number: Final[i64] = number
        self.slice_count: Final[i64] = slice_count
        self.slices: Final = slices
        self.entries: Final[list[QueueEntry]] = []
        self.bytes: i64 = 0

    def add(self, entry: QueueEntry) -> None:
        """The next entry, in the order of `slices`."""
        self.entries.append(entry)
        self.bytes += entry.message.size

    def leave_out(self) -> None:
        """The next message is lost: its place in `slices` goes."""
        del self.slices[len(self.entries)]

    def sizes(self) -> list[int]:
        """How many messages each slice has."""
        found = [0] * int(self.slice_count)
        for index in self.slices:
            found[index] += 1
        return found

    def slice(self, index: i64) -> list[QueueEntry]:
        """The entries of a slice, in order."""
        return [self.entries[at] for at in range(len(self.entries)) if self.slices[at] == index]


def new_lease_batch(number: i64, slice_count: i64, entries: list[QueueEntry]) -> LeaseBatch:
    """A batch of `entries`, cut."""
    groups = [entry.message.group for entry in entries]
    lease_batch = LeaseBatch(number, slice_count, cut(groups, slice_count))
    for entry in entries:
        lease_batch.add(entry)
    return lease_batch
