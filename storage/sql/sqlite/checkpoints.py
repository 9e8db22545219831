"""When the log is moved into the file: before it is long, and not so often that it costs much.

SQLite would do so by itself, and tell nobody where that fails. A disk that does not take what is
moved loses nothing then, since the log stays as long as that has not been synced; but it is a
disk of which nothing more may be promised (P8), and the log would grow until it is full.
"""

from __future__ import annotations

from typing import Final, final

from storage.batch import Batch

PAGES: Final = 1000
"""So many pages the log is to have when it is moved: SQLite's own measure."""

PAGE_BYTES: Final = 4096

PAGES_OF_COMMIT: Final = 2
CHANGES_OF_PAGE: Final = 8
"""A first guess: a page has so many rows that are changed together."""

OUT_AT_MOST: Final = 16
"""The guess is at most so many times too high or too low."""


def bytes_of(batch: Batch) -> int:
    """How many bytes of messages and chunks a batch brings."""
    size = int(batch.bytes)
    if batch.contents is not None:
        size += sum(len(data) for _, _, data in batch.contents.chunks)
    return size


@final
class Checkpoints:
    """How long the log may be by now: guessed batch by batch, set right whenever it is moved.

    `postponed` counts how often the file had no room on the disk to grow by what is in the log;
    `is_postponed` as long as that is so.
    """

    def __init__(self) -> None:
        self._guessed = 0
        self._due_at = PAGES
        self.postponed = 0
        self.is_postponed = False

    def written(self, batch: Batch) -> None:
        """A batch has come into the log."""
        changes = len(batch.removed) + len(batch.counted) + len(batch.fallen_due)
        self._guessed += (
            PAGES_OF_COMMIT + bytes_of(batch) // PAGE_BYTES + changes // CHANGES_OF_PAGE
        )

    def is_due(self) -> bool:
        """Whether the log is to be moved now."""
        return self._guessed >= self._due_at

    def postpone(self) -> None:
        """The log could not be moved, since the disk is full. It stays due."""
        self.postponed += 1
        self.is_postponed = True

    def moved(self, pages: int) -> None:
        """The log had so many pages: the next time is when it has PAGES of them."""
        self.is_postponed = False
        due_at = self._guessed * PAGES // max(pages, 1)
        self._due_at = min(max(due_at, PAGES // OUT_AT_MOST), PAGES * OUT_AT_MOST)
        self._guessed = 0
