"""The model of a disk that keeps only what was synced: what a power cut may leave of a folder.

Writes followed by a completed sync of their file are always kept. Each other write may be there,
missing, or torn at sectors of 512 bytes, in any order; names of files appear and disappear with a
sync of the folder.
"""

from __future__ import annotations

import random
from enum import Enum
from typing import Final

from tests.faults.power_trace import (
    Event,
    Opened,
    Removed,
    SyncBegan,
    Synced,
    Truncate,
    Write,
)

SECTOR: Final = 512

Image = dict[str, bytes]


class Cut(Enum):
    """The fate of writes that were not synced."""

    KEPT = "kept"
    DROPPED = "dropped"
    SOME = "some"
    TORN = "torn"
    ENDS_TORN = "as far as it came"


class _File:
    """A file's content that is certainly on the disk, and the changes that may be."""

    def __init__(self) -> None:
        self.durable: Final = bytearray()
        self.pending: list[Write | Truncate] = []
        self.syncing: Final[dict[int, int]] = {}

    def sync(self, token: int) -> None:
        """Make everything durable that was written before the sync `token` began."""
        count = self.syncing.pop(token, len(self.pending))
        for change in self.pending[:count]:
            _apply(self.durable, change)
        del self.pending[:count]
        for other in self.syncing:
            self.syncing[other] = max(0, self.syncing[other] - count)


class Disk:
    """A folder, as the events applied so far have left it."""

    def __init__(self) -> None:
        self._durable: dict[str, _File] = {}
        self._current: dict[str, _File] = {}
        self._names: list[tuple[str, _File | None]] = []
        "Changes of names since the folder's last sync: a name's new file, or None."

    def has_pending(self) -> bool:
        """Return whether a cut now could leave more than one image."""
        return bool(self._names) or any(file.pending for file in self._current.values())

    def apply(self, event: Event) -> None:
        """Apply the next event; what is said and heard has no effect on a disk."""
        if isinstance(event, Write | Truncate):
            self._current[event.file].pending.append(event)
        elif isinstance(event, Opened):
            if event.file not in self._current:
                file = self._current[event.file] = _File()
                self._names.append((event.file, file))
        elif isinstance(event, Removed):
            del self._current[event.file]
            self._names.append((event.file, None))
        elif isinstance(event, SyncBegan):
            if event.file:
                file = self._current[event.file]
                file.syncing[event.token] = len(file.pending)
        elif isinstance(event, Synced):
            self._sync(event)

    def _sync(self, event: Synced) -> None:
        if event.file:
            self._current[event.file].sync(event.token)
        else:
            self._durable = dict(self._current)
            self._names.clear()

    def image(self, cut: Cut, draw: random.Random) -> Image:
        """Return the files that a power cut now may leave."""
        names = dict(self._durable)
        for name, file in self._names:
            if not _is_kept(cut, draw):
                continue
            if file is None:
                names.pop(name, None)
            else:
                names[name] = file
        return {name: _content(file, cut, draw) for name, file in names.items()}


def _is_kept(cut: Cut, draw: random.Random) -> bool:
    if cut is Cut.KEPT or cut is Cut.ENDS_TORN:
        return True
    return cut is not Cut.DROPPED and draw.random() < 0.5


def _content(file: _File, cut: Cut, draw: random.Random) -> bytes:
    content = bytearray(file.durable)
    if cut is Cut.DROPPED:
        return bytes(content)
    last = draw.randint(0, len(file.pending)) if cut is Cut.ENDS_TORN else len(file.pending)
    for number, change in enumerate(file.pending[: last + 1]):
        is_torn = cut is Cut.TORN or (cut is Cut.ENDS_TORN and number == last)
        if is_torn and isinstance(change, Write):
            for sector in _sectors(change):
                if draw.random() < 0.5:
                    _apply(content, sector)
        elif cut is not Cut.SOME or draw.random() < 0.5:
            _apply(content, change)
    return bytes(content)


def _sectors(write: Write) -> list[Write]:
    """Split the write into pieces that a disk writes completely or not at all."""
    pieces, at, end = [], write.offset, write.offset + len(write.data)
    while at < end:
        until = min(end, (at // SECTOR + 1) * SECTOR)
        piece = write.data[at - write.offset : until - write.offset]
        pieces.append(Write(write.file, at, piece))
        at = until
    return pieces


def _apply(content: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        if change.size < len(content):
            del content[change.size :]
        else:
            content.extend(bytes(change.size - len(content)))
        return
    if change.offset > len(content):
        content.extend(bytes(change.offset - len(content)))
    content[change.offset : change.offset + len(change.data)] = change.data
