"""The library that counts syncs, in a process of its own."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.places import BenchError
from tests.bench.syncs import Syncs

SYNCING = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(file, b"x")
if os.fork() == 0:
    os.fdatasync(file)
    os._exit(0)
os.wait()
os.fsync(file)
"""


@pytest.fixture
def syncs(tmp_path: Path) -> Syncs:
    if shutil.which("cc") is None and os.environ.get("CI") != "true":
        pytest.skip("no C compiler")
    return Syncs.of(tmp_path)


def run_syncing(syncs: Syncs, folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", SYNCING, str(folder / "file")],
        env=os.environ | syncs.environment,
        check=True,
    )


def test_syncs_of_a_process_and_its_children_are_counted(syncs: Syncs, tmp_path: Path) -> None:
    run_syncing(syncs, tmp_path)
    assert syncs.count == 2


def test_syncs_take_longer_only_while_they_are_slowed(syncs: Syncs, tmp_path: Path) -> None:
    before = time.monotonic()
    with syncs.slowed(500):
        run_syncing(syncs, tmp_path)
    slowed = time.monotonic() - before
    run_syncing(syncs, tmp_path)
    assert slowed >= 1.0
    assert time.monotonic() - before - slowed < slowed


def test_where_the_library_is_not_loaded_nothing_is_counted_as_none(syncs: Syncs) -> None:
    with pytest.raises(BenchError):
        _ = syncs.count
