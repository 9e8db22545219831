"""Locks that let one process at a time use a store, on any path; they end with the process.

Two locks are held. One is on a file beside the database, which also names the holder. The other
is on the database itself, for paths that lead to the same file from another folder (a bind mount).

SQLite loses its own locks when any other descriptor of the database is closed in this process
(`docs/design/storage.md`). So a process has one descriptor of a database at most, opened here
before SQLite opens the file and closed after SQLite has closed it; nothing else opens that file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from pathlib import Path
from threading import Lock
from typing import Final, final

from storage.api import StoreError
from storage.sql.sqlite.files import (
    FILE_MODE,
    refuse_foreign,
    refuse_mounted_file,
    refuse_second_names,
    resolved,
    unusable,
)

NONE: Final = -1
"""Value of an attribute that holds no open descriptor."""


@final
class Held:
    """Databases of which this process has a descriptor, by device and inode."""

    def __init__(self) -> None:
        self._guard: Final = Lock()
        self._inodes: Final[set[tuple[int, int]]] = set()

    def open(self, database: Path, flags: int) -> int:
        """Open `database`; StoreError, and nothing is opened, if this process has it already."""
        with self._guard:
            if database.exists() and _inode(database.stat()) in self._inodes:
                raise StoreError(
                    f"the store {database} is in use by process {os.getpid()}, this one, which"
                    " has opened it under another path"
                )
            descriptor = os.open(database, flags | os.O_CLOEXEC, FILE_MODE)
            self._inodes.add(_inode(os.fstat(descriptor)))
            return descriptor

    def close(self, descriptor: int) -> None:
        with self._guard:
            self._inodes.discard(_inode(os.fstat(descriptor)))
            os.close(descriptor)


def _inode(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


HELD: Final = Held()


@final
class StoreLock:
    """The sole right to use a store, from creation to `release`.

    Creates an empty database if there is none, unless `only_reads`. Raises StoreError if
    another process has the store, which it names, or if the path is not the file's only name.
    """

    def __init__(self, database: Path, *, only_reads: bool = False) -> None:
        self._store: Final = resolved(database)
        self._only_reads: Final = only_reads
        self._file = self._database = NONE
        self.notices: Final[list[str]] = []
        refuse_second_names(self._store)
        try:
            self._lock_file()
            self._lock_database()
            refuse_mounted_file(self._store)
            if not only_reads:
                refuse_foreign(self._store)
        except BaseException:
            self.release()
            raise

    def _lock_file(self) -> None:
        path = self._store.with_name(self._store.name + ".lock")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            if self._only_reads and error.errno == errno.EROFS:
                return  # the lock on the database needs no file of its own
            raise unusable(path, error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 32).decode(errors="replace").strip() or "unknown"
            raise StoreError(
                f"the store {self._store} is in use by process {holder}; stop that one first"
            ) from None
        except OSError as error:
            raise StoreError(
                f"the store {self._store} cannot be locked ({error.strerror}): its file system"
                " must offer locks, a local one does"
            ) from None
        self._name_holder()

    def _name_holder(self) -> None:
        """Write this process's id over the content of the lock file: a full disk allows that."""
        line = f"{os.getpid()}\n".encode()
        try:
            os.pwrite(self._file, line, 0)
            os.ftruncate(self._file, len(line))
        except OSError as error:
            self.notices.append(
                f"the lock file cannot name this process ({error.strerror}), but it is locked:"
                f" {self._store}.lock"
            )

    def _lock_database(self) -> None:
        if sys.platform != "linux":
            return  # elsewhere this lock would shut out SQLite's own locks
        flags = os.O_RDONLY if self._only_reads else os.O_RDONLY | os.O_CREAT
        try:
            self._database = HELD.open(self._store, flags)
        except OSError as error:
            raise unusable(self._store, error) from None
        try:
            fcntl.flock(self._database, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"the store {self._store} is in use by a process that has opened it under another"
                f" path, such as a bind mount; `fuser -v '{self._store}'` names it, stop it first"
            ) from None
        except OSError as error:  # NFS needs a writable descriptor, and would shut out SQLite
            self.notices.append(
                f"the file system cannot lock the store itself ({error.strerror}), only its lock"
                f" file: let no program open it under another path: {self._store}"
            )

    def release(self) -> None:
        """Release the store for other processes, once SQLite has closed it. Idempotent.

        The lock file stays: removing it would race with processes that open it.
        """
        if self._database != NONE:
            HELD.close(self._database)
        if self._file != NONE:
            os.close(self._file)
        self._file = self._database = NONE
