"""Messages of one queue that could not be moved to its dead-letter or expiry node.

The queue keeps them without delivering them, and the moves are tried again (`moves.py`).
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.entries.dead_letter import EXPIRED, Cause
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.record_mapping import stored_position

HELD_MAX: Final[i64] = 10_000
"""Number of held messages, all of them in memory, at which a queue delivers nothing more."""

HELD_BYTES_MAX: Final[i64] = 64 * 1024 * 1024
"""Bytes of held messages in memory at which a queue delivers nothing more."""


@final
class HeldEntries:
    """Entries by their `stored_position`, in the order in which they were held back.

    `bytes` is their encoded size in memory, for large messages without the body.
    """

    def __init__(self) -> None:
        self.bytes: i64 = 0
        self._entries: Final[dict[int, tuple[QueueEntry, Cause]]] = {}

    def size(self) -> i64:
        """Return the number of entries."""
        return i64(len(self._entries))

    def is_full(self) -> bool:
        """Return whether there are HELD_MAX entries or HELD_BYTES_MAX bytes."""
        return self.size() >= HELD_MAX or self.bytes >= HELD_BYTES_MAX

    def add(self, entry: QueueEntry, cause: Cause) -> None:
        """Hold back `entry`, which is to be moved because of `cause`."""
        self._entries[int(stored_position(entry))] = (entry, cause)
        self.bytes += entry.message.encoded_size

    def remove(self, position: i64) -> QueueEntry | None:
        """Remove and return the entry of that `stored_position`; None if there is none."""
        found = self._entries.pop(int(position), None)
        if found is None:
            return None
        entry = found[0]
        self.bytes -= entry.message.encoded_size
        return entry

    def get(self, position: i64) -> QueueEntry | None:
        """Return the entry of that `stored_position`; None if there is none."""
        found = self._entries.get(int(position))
        return None if found is None else found[0]

    def cause_of(self, entry: QueueEntry) -> Cause | None:
        """Return why `entry` is to be moved; None if it is not held back."""
        found = self._entries.get(int(stored_position(entry)))
        return found[1] if found is not None and found[0] is entry else None

    def entries(self) -> list[QueueEntry]:
        """Return all entries in the order in which they were held back."""
        return [entry for entry, _ in self._entries.values()]

    def some(self, at_most: i64, *, expired: bool) -> list[tuple[QueueEntry, Cause]]:
        """Return up to `at_most` of the `expired` entries, or of the others, with their causes."""
        found: list[tuple[QueueEntry, Cause]] = []
        for each in self._entries.values():
            if i64(len(found)) >= at_most:
                break
            if (each[1] is EXPIRED) == expired:
                found.append(each)
        return found

    def drain(self, at_most: i64) -> list[QueueEntry]:
        """Remove and return up to `at_most` entries, for a queue that is deleted."""
        found: list[QueueEntry] = []
        while self._entries and i64(len(found)) < at_most:
            entry = self._entries.popitem()[1][0]
            self.bytes -= entry.message.encoded_size
            found.append(entry)
        return found
