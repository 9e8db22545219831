"""The files of an SQLite store: their paths and permissions, and errors that advise the operator.

SQLite keeps its log (`-wal`, `-shm`) beside the name by which the database was opened. A database
with two names has two logs, and messages committed under one name are missing under the other.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from storage.api import StoreError

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO

SUFFIXES: Final = ("", "-wal", "-shm", "-journal", ".lock", ".ballast")
"""Suffixes of a store's files, behind the name of the database."""

MOUNTS: Final = Path("/proc/self/mountinfo")

MOUNT_POINT: Final = 4
"""Index of the mount point among the fields of a line of MOUNTS (proc_pid_mountinfo(5))."""

ESCAPED: Final = {ord(each): f"\\{ord(each):03o}" for each in " \t\n\\"}
"""Escape sequences in MOUNTS for the characters that it uses itself, for str.translate."""


def resolved(database: Path) -> Path:
    """Return the absolute path of `database` without `..` and symbolic links."""
    return Path(os.path.realpath(database))


# -- folders and permissions


def prepare_folder(database: Path) -> None:
    """Make the missing folders of `database`, for its user alone, so that they survive a power cut.

    Raise StoreError, which names the folder, if one cannot be made.
    """
    for folder in reversed([database.parent, *database.parent.parents]):
        if os.path.isdir(folder):  # noqa: PTH112 - False, not an error, if it may not be entered
            continue
        try:
            folder.mkdir(FOLDER_MODE, exist_ok=True)
            sync(folder.parent)
        except OSError as error:
            raise StoreError(
                f"the folder {folder} of the store {database} is not there and cannot be made"
                f" ({error.strerror}): make it, writable for {_user()}, or choose another store"
            ) from None


def sync(path: Path) -> None:
    """Sync a file or folder to the disk. Not for a database that is open (`lock.py`)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def tighten(database: Path) -> list[str]:
    """Restrict access to the existing files of a store to their owner.

    Return a line for the log about each file that others could access, and about a folder in which
    others can replace files. Existing folders are never changed: other programs may use them, too.
    """
    told = []
    for suffix in SUFFIXES:
        file = database.with_name(database.name + suffix)
        mode = _mode(file)
        if mode & OTHERS:
            told.append(_tightened(file, mode))
    folder = _mode(database.parent)
    if folder & stat.S_IWOTH and not folder & stat.S_ISVTX:
        told.append(
            f"every user can replace the files of the store: its folder has mode {folder:04o};"
            f" chmod o-w {database.parent}"
        )
    return told


def _mode(path: Path) -> int:
    """Return the permissions of `path`, 0 if there is no such file. Never opens it (`lock.py`)."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0


def _tightened(file: Path, mode: int) -> str:
    problem = ""
    try:
        file.chmod(FILE_MODE)
    except OSError as error:
        problem = f" ({error.strerror})"
    if _mode(file) & OTHERS:  # some file systems ignore the change without an error
        return (
            f"other users can access a file of the store, mode {mode:04o} cannot be"
            f" changed{problem}: as its owner run chmod 600 {file}"
        )
    return f"other users could access a file of the store, {file}: mode {mode:04o} is 0600 now"


# -- what is refused


def refuse_second_names(database: Path) -> None:
    """Raise StoreError if the resolved path `database` is one of several names of its file.

    A missing file passes. A folder, or a path that cannot be examined, raises StoreError, too.
    """
    try:
        status = database.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise unusable(database, error) from None
    if stat.S_ISDIR(status.st_mode):
        raise StoreError(f"the store {database} is a folder: name a file in it")
    if status.st_nlink > 1:
        raise StoreError(
            f"the store {database} has {status.st_nlink} hard links, and SQLite's log goes by"
            " name: messages committed under one name can be missing under another. Nothing"
            f" has been opened. `find / -samefile '{database}'` lists the names: keep the"
            " one with a file NAME-wal beside it, or any one if there is none, and remove the"
            " others"
        )


def refuse_mounted_file(database: Path) -> None:
    """Raise StoreError if the file `database` is a mount point: its log would be outside of it."""
    point = os.fsencode(str(database).translate(ESCAPED))
    try:
        mounts = MOUNTS.read_bytes().splitlines()
    except OSError:  # not Linux, or no /proc
        return
    if any(line.split(b" ")[MOUNT_POINT] == point for line in mounts):
        raise StoreError(
            f"the store {database} is mounted as a single file, and SQLite's log would lie outside"
            " of the mount: messages committed here would be missing elsewhere. Mount its folder"
        )


def refuse_foreign(database: Path) -> None:
    """Raise StoreError if this process may not read and write the existing file `database`."""
    if not os.access(database, os.R_OK | os.W_OK):
        raise unusable(database, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def unusable(path: Path, error: OSError) -> StoreError:
    """Return an error that says why `path`, a file of a store, cannot be opened, and what to do."""
    folder = path.parent
    if not os.path.isdir(folder):  # noqa: PTH112 - as above
        return StoreError(
            f"the folder {folder} of the store is not there, or {_user()} may not enter it"
        )
    if error.errno == errno.EROFS:
        return StoreError(
            f"the folder {folder} of the store is on a read-only file system: mount it writable,"
            " or choose another store"
        )
    if not os.access(path, os.F_OK) and error.errno == errno.EACCES:
        return StoreError(
            f"the folder {folder} of the store is not writable for {_user()}:"
            f" `chown {os.geteuid()} '{folder}' && chmod u+rwx '{folder}'`, or choose another store"
        )
    is_foreign = error.errno in (errno.EACCES, errno.EPERM)
    advice = ": it must belong to the user that runs the broker, with mode 0600"
    return StoreError(
        f"{path}, a file of the store, cannot be opened by {_user()} ({error.strerror})"
        f"{advice if is_foreign else ''}"
    )


def _user() -> str:
    return f"user {os.geteuid()}"
