"""Backup of a store that is in use: a copy of one state, read over a separate connection.

A read transaction holds that state while the copy is made in small steps. Commits continue
meanwhile; the log grows by what they write, since nothing in it can be overwritten.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Final
from urllib.parse import quote

from storage.api import StoreError
from storage.sql.contents import COPIED
from storage.sql.sqlite import sqlite
from storage.sql.sqlite.files import FILE_MODE, sync

STEP_PAGES: Final = 256
"""Pages per step: 1 MiB, some ms; then other programs may use the disk, and a stop is noticed."""

MARK_COPY: Final = (
    "INSERT INTO mark (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = 1"
)
"""Parameters: the name of the mark."""

Told = Callable[[int, int], None]
"""Called in the copying thread with the number of bytes copied so far, and that of all bytes."""


class Interrupted(Exception):  # noqa: N818 - a decision, not a fault
    """The broker stops while a backup is made."""


def back_up(database: Path, target: Path, *, told: Told, ending: Event) -> None:
    """Copy `database` into the new file `target`; after a StoreError there is no such file.

    `told` is called with the progress in bytes. Setting `ending` interrupts the copy.
    """
    if target.exists():
        raise StoreError(f"{target} is there already: name a new file")
    part = target.with_name(target.name + ".part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE))
    except OSError as error:
        raise StoreError(f"{part} cannot be made: {error.strerror}") from None
    try:
        _copy(database, part, told, ending=ending)
        sync(part)
        os.link(part, target)  # not a rename, which would overwrite
    except Interrupted:
        raise StoreError("the broker stops; there is no backup") from None
    except (*sqlite.DRIVER_ERRORS, OSError) as error:
        raise StoreError(f"{target} cannot be written: {sqlite.reason_of(error)}") from None
    finally:
        part.unlink()
        sync(target.parent)


def _copy(database: Path, part: Path, told: Told, *, ending: Event) -> None:
    source = sqlite.connect(f"file:{quote(str(database))}?mode=ro")
    copy = sqlite3.connect(part)
    try:
        source.execute("BEGIN")
        size = source.execute("PRAGMA page_size").fetchone()[0]
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()  # this read fixes the state

        def step(_: int, remaining: int, total: int) -> None:
            if ending.is_set():
                raise Interrupted
            told((total - remaining) * size, total * size)

        source.backup(copy, pages=STEP_PAGES, progress=step)
        copy.execute(MARK_COPY, (COPIED,))
        copy.commit()
    finally:
        copy.close()
        source.close()
