"""A store is open in one process at a time, by any path, and SQLite's own locks stay."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from storage.api import StoreError
from storage.sql.sqlite.lock import HELD, StoreLock
from storage.sql.sqlite.store import SqliteStore

HOLD = """
import sys
from pathlib import Path
from storage.sql.sqlite.lock import StoreLock
lock = StoreLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_is_named_and_its_end_frees_the_store(tmp_path: Path) -> None:
    database, link = tmp_path / "store.db", tmp_path / "link.db"
    link.symlink_to(database)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(link)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        for path in (database, link):
            with pytest.raises(StoreError, match=f"{database} is in use by process {holder.pid}"):
                StoreLock(path)
        holder.kill()
        holder.wait(10)
    StoreLock(database).release()


def test_a_lock_that_was_released_may_be_taken_again(tmp_path: Path) -> None:
    for _ in range(2):
        lock = StoreLock(tmp_path / "store.db")
        lock.release()
        lock.release()


FULL: Final = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
"""
"""Code that makes every file unable to grow, as on a full disk."""


def test_a_lock_is_held_though_no_room_is_left_to_name_its_holder(tmp_path: Path) -> None:
    script = FULL + HOLD + "print(lock.notices)"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "store.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="in use by process unknown"):
            StoreLock(tmp_path / "store.db")
        told, _ = holder.communicate()
    assert "the lock file cannot name this process (File too large)" in told


def descriptors() -> list[str]:
    return sorted(each.name for each in Path("/proc/self/fd").iterdir())


def test_a_refused_lock_leaves_no_descriptor(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path / "store.db")
    before = descriptors()
    for _ in range(3):
        with pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
            StoreLock(tmp_path / "store.db")
    assert descriptors() == before
    lock.release()


def test_a_reader_makes_no_database(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        StoreLock(tmp_path / "store.db", only_reads=True)
    assert not (tmp_path / "store.db").exists()


def test_a_process_opens_a_database_once(tmp_path: Path) -> None:
    """Closing a second descriptor, even by another path, would drop SQLite's locks."""
    database, other = tmp_path / "store.db", tmp_path / "other.db"
    database.touch()
    other.hardlink_to(database)
    descriptor = HELD.open(database, os.O_RDONLY)
    with pytest.raises(StoreError, match=f"{other} is in use by process {os.getpid()}, this one"):
        HELD.open(other, os.O_RDONLY)
    HELD.close(descriptor)
    HELD.close(HELD.open(other, os.O_RDONLY))


# -- SQLite's own locks

TAKE: Final = """
import sqlite3, sys
try:
    sqlite3.connect(sys.argv[1], timeout=0).execute("PRAGMA journal_mode=DELETE")
except sqlite3.OperationalError as error:
    print(error)
"""
"""A program that SQLite refuses while another process holds its locks on the database."""


def is_locked(database: Path) -> bool:
    tried = subprocess.run(
        [sys.executable, "-c", TAKE, str(database)], capture_output=True, text=True, check=True
    )
    return tried.stdout == "database is locked\n"


async def test_sqlite_keeps_its_locks_whatever_else_this_process_does(tmp_path: Path) -> None:
    database, link = tmp_path / "store.db", tmp_path / "link.db"
    link.symlink_to(database)
    store, other = SqliteStore(database), SqliteStore(tmp_path / "other.db")
    await store.open()
    await other.open()
    for path in (database, link):
        with pytest.raises(StoreError, match="in use by process"):
            await SqliteStore(path).open()
    await store.facts()
    await store.back_up(str(tmp_path / "copy.db"), lambda *_: None)
    store.free_bytes()
    await other.close()
    assert await asyncio.to_thread(is_locked, database)
    await store.close()
    assert not await asyncio.to_thread(is_locked, database)


def test_closing_another_descriptor_drops_them(tmp_path: Path) -> None:
    """`is_locked` notices this mistake, which the store must not make."""
    connection = sqlite3.connect(tmp_path / "store.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE t (n)")
    assert is_locked(tmp_path / "store.db")
    os.close(os.open(tmp_path / "store.db", os.O_RDONLY))
    assert not is_locked(tmp_path / "store.db")
    connection.close()
