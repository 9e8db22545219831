"""A batch of a lease: messages that were acquired together, cut into slices that never change.

A slice can be read from any connection, any number of times, and has the same messages in the
same order each time. So the slice of each message is stored, and is never computed again.
"""

from __future__ import annotations

import zlib
from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import QueueEntry
from storage.batch import Batch

SLICES_MAX: Final[i64] = 256
"""Maximum slices of one batch: each is a task of the program that reads them, and the store keeps
the index of a message's slice in one byte."""


def cut(groups: list[str], slices: i64) -> list[int]:
    """Return the index of each message's slice, from 0 to `slices` - 1.

    `groups` has the group of each message, empty for none. All messages of a group are in one
    slice, chosen by the group's name. The others are dealt out in runs of equal length.
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
    """Entries in the order of their acquisition, and the index of each entry's slice.

    While a start restores them, there may be fewer entries than numbers were stored.
    """

    def __init__(self, number: i64, slice_count: i64, slices: list[int]) -> None:
        self.number: Final[i64] = number
        self.slice_count: Final[i64] = slice_count
        self.slices: Final = slices
        self.entries: Final[list[QueueEntry]] = []
        self.bytes: i64 = 0

    def add(self, entry: QueueEntry) -> None:
        """Add the next entry, in the order of `slices`."""
        self.entries.append(entry)
        self.bytes += entry.message.size

    def leave_out(self) -> None:
        """Remove the place of the next message, which is lost, from `slices`."""
        del self.slices[len(self.entries)]

    def take_out(self, entries: dict[QueueEntry, None]) -> None:
        """Remove those of `entries` that the batch has, with their places in `slices`."""
        kept: list[QueueEntry] = []
        slices: list[int] = []
        for at, entry in enumerate(self.entries):
            if entry in entries:
                self.bytes -= entry.message.size
            else:
                kept.append(entry)
                slices.append(self.slices[at])
        self.entries[:] = kept
        self.slices[:] = slices

    def sizes(self) -> list[int]:
        """Return the number of messages in each slice."""
        found = [0] * int(self.slice_count)
        for index in self.slices:
            found[index] += 1
        return found

    def slice(self, index: i64) -> list[QueueEntry]:
        """Return the entries of the slice `index`, in order."""
        return [self.entries[at] for at in range(len(self.entries)) if self.slices[at] == index]


def new_lease_batch(number: i64, slice_count: i64, entries: list[QueueEntry]) -> LeaseBatch:
    """Return a batch of `entries`, cut into `slice_count` slices."""
    groups = [entry.message.group for entry in entries]
    lease_batch = LeaseBatch(number, slice_count, cut(groups, slice_count))
    for entry in entries:
        lease_batch.add(entry)
    return lease_batch


def accept(entries: list[QueueEntry], batch: Batch) -> None:
    """Accept entries of lease batches that are being settled."""
    for entry in entries:
        entry.queue.accept(entry, batch)
