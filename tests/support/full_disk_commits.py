"""A program that tests kill: it commits to a store on a disk that is full for a while.

    python -m tests.support.full_disk_commits DATABASE

It prints to standard output what has been committed, and what it does next.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final

from storage.batch import Batch
from storage.sql.sqlite.store import SqliteStore
from tests.unit.storage.test_batch import stored

BALLAST: Final = 4 * 1024 * 1024

MESSAGES: Final = 2000

APPENDED_AT_ONCE: Final = 100

REMOVED_AT_ONCE: Final = 40


def fill(folder: Path) -> None:
    """Fill the disk with a file that stands for another program's."""
    with (folder / "foreign").open("ab", buffering=0) as foreign:
        try:
            while True:
                foreign.write(bytes(4096))
        except OSError:
            pass


async def main(database: Path) -> None:
    """Append until the disk is full, remove messages on the full disk, then check for new room."""
    store = SqliteStore(database, ballast_bytes=BALLAST)
    await store.open()
    for first in range(1, MESSAGES, APPENDED_AT_ONCE):
        batch = Batch()
        for number in range(first, first + APPENDED_AT_ONCE):
            batch.append(stored(number))
        await store.commit(batch)
    fill(database.parent)
    print("full", flush=True)
    for first in range(1, MESSAGES // 2, REMOVED_AT_ONCE):
        batch = Batch()
        for number in range(first, first + REMOVED_AT_ONCE):
            batch.remove(number)
        await store.commit(batch)
        print("removed", first + REMOVED_AT_ONCE - 1, flush=True)
    released = (await store.facts()).ballast_releases
    (database.parent / "foreign").unlink()
    store.free_bytes()  # checks for room, and allocates the ballast again
    await store.nodes()  # runs after that
    print("released", released, flush=True)
    print("held", (await store.facts()).ballast_bytes, flush=True)
    print("full" if store.is_full() else "roomy", flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
