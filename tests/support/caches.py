"""Folders of what the tests fetch or build once, for all checkouts of a user."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

KEPT_DAYS: Final = 30
"""An installation that no test has asked for in this time is removed."""

INSTALLED: Final = "installed"
LOCK: Final = "lock"


def user_cache(name: str) -> Path:
    """Return the folder `name` among the user's caches, as the XDG specification places them."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # a relative path is to be ignored, as the specification says
    return (caches if caches.is_absolute() else Path.home() / ".cache") / name


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let only one process at a time work in `folder`, which is made if it is missing.

    The modification time of LOCK in it is when a process has last begun to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.utime(folder / LOCK)
        yield


@contextmanager
def installation(name: str, pinned: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the folder for what the files `pinned` name, and whether that is still missing there.

    A change of these files leads to another folder, as does another version of Python. The caller
    installs what is missing, and calls `note_installed`: later on nothing is fetched. Of several
    processes of pytest, also those of other checkouts, one is here at a time, so that one installs.
    """
    digest = hashlib.sha256(sys.version.encode())
    for file in pinned:
        digest.update(file.read_bytes())
    all_of_them = user_cache("jms-broker-tests-interop")
    folder = all_of_them / f"{name}-{digest.hexdigest()[:12]}"
    with alone(folder):
        is_missing = not (folder / INSTALLED).exists()
        if is_missing:
            _remove_old(all_of_them)
        yield folder, is_missing


def note_installed(folder: Path) -> None:
    """Note that all that `folder` is for has been installed in it."""
    (folder / INSTALLED).touch()


def _remove_old(folder: Path) -> None:
    """Remove the installations in `folder` which no test has asked for in KEPT_DAYS days."""
    oldest = time.time() - KEPT_DAYS * 86_400
    for lock in folder.glob(f"*/{LOCK}"):
        if lock.stat().st_mtime < oldest:
            shutil.rmtree(lock.parent)
