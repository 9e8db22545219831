"""The broker that the doctor checks: its settings, and the broker that runs with them, if any."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from broker.security.authenticate import open_users
from broker.security.users import Users
from broker.settings import SQLITE, Settings

LOCKS: Final = Path("/proc/locks")

Record = Mapping[str, object]


class RunningBroker(ABC):
    """A broker that runs, and answers over `$management`."""

    @property
    @abstractmethod
    def build(self) -> str:
        """The build as the broker reports it: compiled or interpreted; empty if it does not."""

    @abstractmethod
    def records(self, kind: str) -> Sequence[Record] | None:
        """Return all entities of a kind; None if the broker does not show them."""

    @abstractmethod
    def ask(self, operation: str, kind: str, name: str) -> Record | None:
        """Return the body of a response; None if the broker refuses the request."""


@dataclass(frozen=True, kw_only=True)
class CheckedBroker:
    """The settings of a broker, None if unknown, and the running broker, None if it is not reached.

    `now_s` is the time in s since 1970. `watch_s` is how long growth is looked for.
    """

    settings: Settings | None
    running: RunningBroker | None = None
    now_s: float
    watch_s: float = 0.0

    @cached_property
    def users(self) -> Users:
        """The users of the settings, without those of the store. SettingsError if unreadable."""
        assert self.settings is not None
        return open_users(self.settings)

    def told(self, kind: str) -> Sequence[Record] | None:
        """Return all entities of a kind of the running broker; None if nothing shows them."""
        return None if self.running is None else self.running.records(kind)

    @cached_property
    def database(self) -> Path | None:
        """The file of the SQLite store of the settings, None for other stores."""
        if self.settings is None or not self.settings.store.startswith(SQLITE):
            return None
        return Path(os.path.realpath(self.settings.store.removeprefix(SQLITE)))

    @cached_property
    def pid(self) -> int | None:
        """The process that has the store of the settings open, None if there is none."""
        return None if self.database is None else holder_of(self.database)


def holder_of(database: Path) -> int | None:
    """Return the process that has locked the SQLite store, None if there is none.

    The lock is not tried: a broker that starts at this moment would be refused its store.
    """
    lock = database.with_name(database.name + ".lock")
    try:
        pid = int(lock.read_text())
        inode = lock.stat().st_ino
        locks = LOCKS.read_text()
    except (OSError, ValueError):
        return None  # no store, no lock, or a system without a list of locks
    return pid if any(_is_lock(line, pid, inode) for line in locks.splitlines()) else None


def _is_lock(line: str, pid: int, inode: int) -> bool:
    """Return whether a line of LOCKS is a flock of that process on the file with that inode."""
    fields = line.split()
    return "FLOCK" in fields and str(pid) in fields and f":{inode} " in f"{line} "


def existing_folder(path: Path) -> Path:
    """Return the folder of `path`, or the nearest one above it that exists."""
    return next(each for each in (path.parent, *path.parent.parents) if each.is_dir())
