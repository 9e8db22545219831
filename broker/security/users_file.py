"""The users file: its users, read again when it has changed, and changes of it in one step.

`users_toml.py` and `users_lines.py` say what its text means. It is written as TOML; a file with
lines, as earlier versions wrote it, becomes TOML with the first change.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from broker.security.account import UserAccount, UsersError
from broker.security.users_edit import changed_text
from broker.security.users_toml import UsersReader, UserTable

Change = Callable[[UserAccount | None], UserAccount | None]
"""Takes a user's account, None if there is none; returns what it becomes, None to remove it."""

Amendment = Callable[[UserAccount], UserAccount]
"""Takes a user's account, and returns what it becomes."""


UNWRITABLE: Final = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS),
        errno.EBUSY,  # the file is a mount of its own
        *(errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG),
    }
)
"""Errors of a folder or file that no retry will change. A full disk is none."""


class UnwritableError(UsersError):
    """The file cannot be changed by this process, now or later. Nothing was changed."""


class UsersFile:
    """A users file. Several processes may read it, and one at a time changes it."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._reader: Final = UsersReader()
        self._table = UserTable()
        self._read_at: tuple[int, int] | None = None

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self._path.absolute()

    def current(self) -> UserTable:
        """Return the content of the file, read again if it has changed; no users without a file.

        UsersError, with the file and the place, if it is invalid or cannot be read.
        """
        try:
            status = self._path.stat()
        except FileNotFoundError:
            if self._read_at is not None:  # else the table is empty, and stays the same object
                self._table = UserTable()
                self._read_at = None
            return self._table
        except OSError as error:
            raise UsersError(f"{self._path}: {error.strerror}") from None
        changed = (status.st_mtime_ns, status.st_ino)
        if changed != self._read_at:
            self._table = self._read(self._path)
            self._read_at = changed
        return self._table

    def last_valid(self) -> UserTable:
        """Return `current`, or the last valid content if the file is invalid now."""
        try:
            return self.current()
        except UsersError:
            return self._table

    def change(self, name: str, change: Change, *, now: datetime) -> UserAccount | None:
        """Replace the account `name` by what `change` makes of it; return the account before.

        The new file has another name until it is complete; that name also prevents two changes at
        the same time. UsersError, also that of `change`, leaves the file as it was; it is
        UnwritableError if this process cannot change the file at all.
        """
        target = self._path.resolve()
        new = target.with_name(f"{target.name}.new")
        try:
            descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            raise UsersError(
                f"{new} exists: another process is changing the users. Try again; if none is,"
                " remove that file"
            ) from None
        except OSError as error:
            raise _refusal(error, f"{new}: {error.strerror}") from None
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as out:
                before = self._read(target).accounts.get(name)
                out.write(self._changed(target, name, change(before), now=now))
                out.flush()
                os.fsync(out.fileno())
            _keep_owner(target, new)
            new.replace(target)
        except OSError as error:
            raise _refusal(error, f"{new}: {error.strerror}; nothing was changed") from None
        finally:
            new.unlink(missing_ok=True)
        return before

    def _read(self, path: Path) -> UserTable:
        text = _text_of(path)
        try:
            return self._reader.read(text)
        except UsersError as error:
            raise UsersError(f"{path}, {error}") from None

    def _changed(self, path: Path, name: str, account: UserAccount | None, *, now: datetime) -> str:
        text = _text_of(path)
        try:
            return changed_text(text, name, account, now=now, reader=self._reader)
        except UsersError as error:
            raise UsersError(f"{path}, {error}") from None


def _refusal(error: OSError, text: str) -> UsersError:
    return UnwritableError(text) if error.errno in UNWRITABLE else UsersError(text)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UsersError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsersError(f"{path}: not UTF-8") from None


def _keep_owner(old: Path, new: Path) -> None:
    """Keep the owner and mode of `old`, for its readers: root may add users for another account."""
    if not old.exists() or not hasattr(os, "chown"):
        return
    status = old.stat()
    with suppress(PermissionError):  # another account's file, in a folder of ours
        os.chown(new, status.st_uid, status.st_gid)
    new.chmod(status.st_mode & 0o777)
