"""One process per store."""

import subprocess
import sys
from pathlib import Path

import pytest

from storage.api import StoreError
from storage.sql.lock import StoreLock

HOLD = """
import sys
from pathlib import Path
from storage.sql.lock import StoreLock
lock = StoreLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_is_named_and_its_end_frees_the_store(tmp_path: Path) -> None:
    database = tmp_path / "store.db"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"in use by process {holder.pid}"):
            StoreLock(database)
        holder.kill()
        holder.wait(10)
    StoreLock(database).release()


def test_a_lock_that_was_released_may_be_taken_again(tmp_path: Path) -> None:
    StoreLock(tmp_path / "store.db").release()
    StoreLock(tmp_path / "store.db").release()
