"""A batch of a lease: messages that were acquired together, cut into slices that never change.

A slice can be read from any connection, any number of times, and has the same messages in the
same order each time. So the slice of each message is stored, and is never computed again.
"""

from __future__ import annotations

import zlib
from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.record_mapping import as_stored, leased_count
from storage.batch import Batch
from storage.leases import StoredLeaseBatch

SLICES_MAX: Final[i64] = 256
"""Maximum slices of one batch: each is a task of the program that reads them, and the store keeps
the index of a message's slice in one byte."""


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


@final
class LeaseBatchBuilder:
    """Makes a batch of acquired `entries`, in portions: many at once would hold the event loop.

    All messages of a group are in one slice, chosen by the group's name. The others are dealt out
    in runs of equal length. `numbers` are those of the messages in the store.
    """

    def __init__(self, number: i64, slice_count: i64, entries: list[QueueEntry]) -> None:
        self.lease_batch: Final = LeaseBatch(number, slice_count, [])
        self.numbers: Final[list[int]] = []
        self._counts: Final[list[int]] = []
        self._entries: Final = entries
        # how many entries have been looked at, and those of them that are in no group
        self._seen: i64 = 0
        self._alone: i64 = 0
        self._dealt: i64 = 0

    def go_on(self, at_most: i64, batch: Batch) -> bool:
        """Look at, or add, up to `at_most` entries; return whether the batch has all of them.

        A message that is not in the store is noted for it.
        """
        entries = self._entries
        while self._seen < i64(len(entries)):
            if at_most == 0:
                return False
            at_most -= 1
            if not entries[self._seen].message.group:
                self._alone += 1
            self._seen += 1
        while len(self.numbers) < len(entries):
            if at_most == 0:
                return False
            at_most -= 1
            self._add(entries[len(self.numbers)], batch)
        return True

    def _add(self, entry: QueueEntry, batch: Batch) -> None:
        _store(entry, batch)
        lease_batch = self.lease_batch
        group = entry.message.group
        if group:
            checksum = zlib.crc32(group.encode(errors="surrogatepass"))
            lease_batch.slices.append(checksum % int(lease_batch.slice_count))
        else:
            lease_batch.slices.append(int(self._dealt * lease_batch.slice_count // self._alone))
            self._dealt += 1
        lease_batch.add(entry)
        self.numbers.append(int(entry.stored_number))
        self._counts.append(leased_count(entry))

    def as_stored(self, lease: str) -> StoredLeaseBatch:
        """Return the record that the store keeps of the whole batch, which is one of `lease`."""
        lease_batch = self.lease_batch
        return StoredLeaseBatch(
            lease=lease,
            batch_number=lease_batch.number,
            slice_count=lease_batch.slice_count,
            numbers=self.numbers,
            slices=bytes(lease_batch.slices),
            counts=self._counts,
        )


def _store(entry: QueueEntry, batch: Batch) -> None:
    """Note the message for the store, if it is not there for good.

    A lease outlives this process, so the messages that it holds must, too.
    """
    if entry.is_volatile:
        batch.remove(entry.stored_number)
    if entry.stored_number == NOT_STORED or entry.is_volatile:
        entry.is_volatile = False
        queue = entry.queue
        entry.stored_number = queue.context.next_stored_number()
        batch.append(as_stored(entry, queue.persistence.stored_as))


def accept(entries: list[QueueEntry], batch: Batch) -> None:
    """Accept entries of lease batches that are being settled."""
    for entry in entries:
        entry.queue.accept(entry, batch)
