"""One process per store: a lock on a file of its own, which the system drops with the process.

Not on the database itself: SQLite loses its own locks when any other descriptor
of that file is closed in the process (`reliability.md` 3.1).
"""

import fcntl
import os
from pathlib import Path
from typing import Final

from storage.api import StoreError


class StoreLock:
    """Held from creation to `release`; StoreError, naming the holder, where another has it."""

    def __init__(self, database: Path) -> None:
        self._path: Final = database.with_name(database.name + ".lock")
        self._file: Final = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StoreError(
                f"the store {database} is in use by process {holder}; stop that one first"
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others have the store. The file stays: removing it would race with them."""
        os.close(self._file)
