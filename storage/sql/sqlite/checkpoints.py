"""Times of checkpoints, which move the log into the file: before it is long, but not too often.

SQLite would do so by itself, but report no failure. If the disk fails to take the moved pages,
nothing is lost, since the log stays until they are synced; but nothing more may be promised on
such a disk (P8), and the log would grow until the disk is full.
"""

from __future__ import annotations

from typing import Final, final

from storage.batch import Batch

PAGES: Final = 1000
"""Pages that the log should have when it is moved: SQLite's own default."""

PAGE_BYTES: Final = 4096

PAGES_OF_COMMIT: Final = 2
CHANGES_OF_PAGE: Final = 8
"""Rows on one page that a commit changes together, as a first guess."""

OUT_AT_MOST: Final = 16
"""Maximum factor by which the guess is taken to be too high or too low."""


def bytes_of(batch: Batch) -> int:
    """Return the bytes of the messages and chunks in a batch."""
    size = int(batch.bytes)
    if batch.contents is not None:
        size += sum(len(data) for _, _, data in batch.contents.chunks)
    return size


@final
class Checkpoints:
    """An estimate of the log's length: guessed batch by batch, corrected whenever it is moved.

    `postponed` counts how often the disk had no room for the file to grow by the pages in the log;
    `is_postponed` as long as that is so.
    """

    def __init__(self) -> None:
        self._guessed = 0
        self._due_at = PAGES
        self.postponed = 0
        self.is_postponed = False

    def written(self, batch: Batch) -> None:
        """Add a batch that was written into the log to the guess."""
        changes = len(batch.removed) + len(batch.counted) + len(batch.fallen_due)
        self._guessed += (
            PAGES_OF_COMMIT + bytes_of(batch) // PAGE_BYTES + changes // CHANGES_OF_PAGE
        )

    def is_due(self) -> bool:
        """Return whether the log should be moved now."""
        return self._guessed >= self._due_at

    def postpone(self) -> None:
        """Note that the log could not be moved, since the disk is full. The move stays due."""
        self.postponed += 1
        self.is_postponed = True

    def moved(self, pages: int) -> None:
        """Note that the log was moved and had `pages` pages: it is due again at about PAGES."""
        self.is_postponed = False
        due_at = self._guessed * PAGES // max(pages, 1)
        self._due_at = min(max(due_at, PAGES // OUT_AT_MOST), PAGES * OUT_AT_MOST)
        self._guessed = 0
