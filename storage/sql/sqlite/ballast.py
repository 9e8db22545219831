"""A file beside the store that keeps room on the disk for the commits of consumers.

On a full disk SQLite cannot even delete a row: the log has to grow by the pages of the commit
(`reliability.md`, disk full). The room of this file is then given to the store, so that consumers
can settle what they have. The file stays, empty, so that whoever looks at it, a start for example,
sees that it has been released.
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
"""What a file system says that cannot allocate without writing."""

WRITTEN_AT_ONCE: Final = 1024 * 1024

SMALL_PART: Final = 64
"""A commit of at most that part of the ballast's size is a small one."""

STAT_BLOCK: Final = 512
"""Bytes of a block as `stat` counts them."""


@final
class Ballast:
    """A file of `size` bytes, of which `held` are allocated at present. A size of 0 makes no file.

    `releases` counts how often the store was given its room. Half the size is left to the log
    whenever the file is made or made larger.
    """

    def __init__(self, database: Path, size: int) -> None:
        self.size: Final = size
        self.held = 0
        self.releases = 0
        self._database: Final = database
        self._path: Final = database.with_name(database.name + SUFFIX)

    def prepare(self) -> None:
        """See what an earlier broker has left, before the store is opened.

        Where less than the ballast's size is free, it is released: opening takes room, too. Where
        no ballast is wanted any more, its file is removed.
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
        """Give room to the store for a commit of so many bytes; False where there is none for it.

        The first half is for everybody, and goes to the log where that is short. The second is
        for small commits, such as those of consumers: large ones come from producers, which had
        credit when the disk ran full, and would leave nothing to drain the store with.
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
        """Have no more than `size` bytes allocated.

        Not synced, so that the log is at once longer: a file system that gives the room to others
        only when that is on its disk writes it there by itself before it says that it is full.
        """
        self.held = size
        try:
            os.truncate(self._path, size)
        except FileNotFoundError:
            self.held = 0  # whoever has deleted it has made the room

    def _lengthen_log(self, size: int) -> None:
        """Let the log have `size` bytes on the disk, so that no other program takes them.

        Zeros behind the last commit are no part of the log to SQLite, which writes over them.
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
        """Allocate what is missing, or as much of it as the disk has room for.

        StoreError where that fails for another reason than room.
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
        """Have `size` bytes allocated; after an OSError the file has as many as before."""
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
    """Allocate what lies between, without writing, where the file system can do that.

    Some say that they have, and have not: whoever needs to know looks at the blocks of the file.
    """
    if not hasattr(os, "posix_fallocate"):
        return  # macOS
    try:
        os.posix_fallocate(descriptor, at, end - at)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


def _fill(descriptor: int, at: int, size: int) -> None:
    """Write what no file system can compress."""
    while at < size:
        at += os.pwrite(descriptor, os.urandom(min(WRITTEN_AT_ONCE, size - at)), at)


def with_room(
    driver: sqlite3.Connection, work: Callable[[], T], make_room: Callable[[], bool]
) -> T:
    """What `work` returned; it is done again where the disk was full, and `make_room` made some.

    A transaction that SQLite could not roll back is in doubt, and nothing is done again.
    """
    while True:
        try:
            return work()
        except (SQLAlchemyError, sqlite3.Error) as error:
            is_full = sqlite.code_of(error) == sqlite3.SQLITE_FULL
            if not is_full or driver.in_transaction or not make_room():
                raise
