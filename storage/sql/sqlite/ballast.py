"""A file beside the store that reserves room on the disk for the commits of consumers.

On a full disk SQLite cannot even delete a row: the log has to grow by the pages of the commit
(`docs/design/storage.md`). The room of this file is then given to the store, so that consumers
can settle their messages. The file stays, empty, to show an operator, or the broker at its next
start, that its room has been released.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar, final

from sqlalchemy.exc import SQLAlchemyError

from storage.api import StoreError
from storage.sql.sqlite import sqlite

T = TypeVar("T")

SUFFIX: Final = ".ballast"

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)

UNSUPPORTED: Final = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
"""Errors of file systems that cannot allocate room without writing."""

WRITTEN_AT_ONCE: Final = 1024 * 1024

SMALL_PART: Final = 64
"""A commit is small if its bytes times this are at most the ballast's size."""

STAT_BLOCK: Final = 512
"""Bytes per block of `stat.st_blocks`."""


@final
class Ballast:
    """A file of `size` bytes, of which `held` are allocated at present. With size 0 there is none.

    `releases` counts how often room was released to the store. Whenever the file is made or made
    larger, room of half its size is left to the log.
    """

    def __init__(self, database: Path, size: int) -> None:
        self.size: Final = size
        self.held = 0
        self.releases = 0
        self._database: Final = database
        self._path: Final = database.with_name(database.name + SUFFIX)

    def prepare(self) -> None:
        """Examine the file that an earlier broker has left, before the store is opened.

        If less than the ballast's size is free, the ballast is released: opening takes room, too.
        If no ballast is wanted any more, its file is removed.
        """
        if not self.size:
            self._path.unlink(missing_ok=True)
            return
        if self._path.exists():
            if self._path.stat().st_size > self.size:
                os.truncate(self._path, self.size)
            found = self._path.stat()
            self.held = min(found.st_size, found.st_blocks * STAT_BLOCK)
        if self.held and sqlite.free_bytes(self._database) < self.size:
            self._shorten(0)

    def release(self, wanted: int) -> bool:
        """Release room for a commit of `wanted` bytes; return False if there is none for it.

        The first half is for all commits; a log that is shorter than this half gets its room. The
        second is for small commits, such as those of consumers: large ones come from producers,
        which had credit when the disk ran full, and would leave no room to drain the store with.
        """
        half = self.size // 2
        if self.held > half:
            self._shorten(half)
        elif self.held and wanted <= self.size // SMALL_PART:
            self._shorten(0)
        else:
            return False
        self.releases += 1
        self._lengthen_log(half)
        return True

    def _shorten(self, size: int) -> None:
        """Keep no more than `size` bytes allocated.

        Not synced, so that the log can grow at once: a file system that frees the room only once
        the truncation is on the disk writes it there by itself before it reports a full disk.
        """
        self.held = size
        try:
            os.truncate(self._path, size)
        except FileNotFoundError:
            self.held = 0  # its deletion has freed the room

    def _lengthen_log(self, size: int) -> None:
        """Allocate `size` bytes to the log, so that no other program takes them.

        SQLite ignores zeros behind the last commit of the log, and writes over them.
        """
        now = sqlite.log_size(self._database)
        if not 0 < now < size:
            return
        descriptor = os.open(sqlite.log_of(self._database), os.O_RDWR | os.O_CLOEXEC)
        try:
            _fallocate(descriptor, now, size)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
        finally:
            os.close(descriptor)

    def take_back(self) -> None:
        """Allocate the missing bytes, or as many of them as the disk has room for.

        Raise StoreError if that fails for another reason than lack of room.
        """
        if self.held == self.size:
            return
        free = sqlite.free_bytes(self._database)
        spare = free + sqlite.log_size(self._database) - self.size // 2
        possible = min(self.size, self.held + max(0, min(free, spare)))
        if possible < min(self.size, self.held + self.size // 8):
            return
        try:
            self._allocate(possible)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise StoreError(
                    f"the ballast {self._path} cannot be made: {error.strerror};"
                    " disk_ballast = 0 does without one"
                ) from None

    def _allocate(self, size: int) -> None:
        """Allocate `size` bytes in total; after an OSError the file has as many as before."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _fallocate(descriptor, self.held, size)
            if os.fstat(descriptor).st_blocks * STAT_BLOCK < size:
                _fill(descriptor, self.held, size)
            os.fsync(descriptor)
            self.held = size
        finally:
            if self.held != size:
                os.ftruncate(descriptor, self.held)
            os.close(descriptor)


def _fallocate(descriptor: int, at: int, end: int) -> None:
    """Allocate the bytes from `at` to `end` without writing, if the file system can do that.

    Some file systems report success without allocating: the blocks of the file show the truth.
    """
    if not hasattr(os, "posix_fallocate"):
        return  # macOS
    try:
        os.posix_fallocate(descriptor, at, end - at)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


def _fill(descriptor: int, at: int, size: int) -> None:
    """Write random bytes from `at` to `size`, which no file system can compress."""
    while at < size:
        at += os.pwrite(descriptor, os.urandom(min(WRITTEN_AT_ONCE, size - at)), at)


def with_room(
    driver: sqlite3.Connection, work: Callable[[], T], make_room: Callable[[], bool]
) -> T:
    """Return the result of `work`; repeat it if the disk was full and `make_room` has made room.

    If SQLite could not roll back the transaction, its outcome is in doubt: `work` is not repeated.
    """
    while True:
        try:
            return work()
        except (SQLAlchemyError, sqlite3.Error) as error:
            is_full = sqlite.code_of(error) == sqlite3.SQLITE_FULL
            if not is_full or driver.in_transaction or not make_room():
                raise
