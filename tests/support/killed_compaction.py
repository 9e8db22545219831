"""A program that compacts an archive and is killed at its file operation number N, for each N.

`python killed_compaction.py ROOT SCRATCH` prints a line of JSON for each kill: the operation that
was prevented, and the rows that a reader finds in each file.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from pyspark_amqp.jobs.compact import compact
from pyspark_amqp.jobs.layout import EVENTS, Archive

OPERATIONS: Final = frozenset(
    {
        *("open", "os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.unlink"),
        *("os.listdir", "os.scandir", "shutil.rmtree", "ctypes.dlsym", "fcntl.flock"),
    }
)


def read(root: Path) -> dict[str, list[int]]:
    """Return the ids of the rows of each file that a reader of Parquet finds."""
    files = sorted((root / EVENTS).glob("date=*/*.parquet"))
    return {
        f"{file.parent.name}/{file.name}": pq.read_table(file, partitioning=None)["id"].to_pylist()
        for file in files
    }


def killed_at(number: int, root: Path) -> str:
    """Compact in a child that is killed at that file operation; return its name.

    Return "" if the child finished before.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, _arguments: object) -> None:
            nonlocal count
            if event in OPERATIONS:
                count += 1
                if count == number:
                    os.write(writes, event.encode())
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        compact(Archive(root), [EVENTS])
        os._exit(0)
    os.close(writes)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reads) as told:
        event = told.read()
    assert os.WIFSIGNALED(status) == bool(event), f"the child ended with {status}"
    return event


def main(original: Path, scratch: Path) -> None:
    """Kill at each operation, each on a new copy, and then compact that copy without a kill."""
    number, event = 0, "begin"
    while event:
        number += 1
        root = scratch / str(number)
        shutil.copytree(original, root)
        event = killed_at(number, root)
        seen = read(root)
        assert killed_at(0, root) == ""
        left = [each.name for each in (root / "_staging").iterdir()]
        print(json.dumps({"event": event, "seen": seen, "after": read(root), "left": left}))
        shutil.rmtree(root)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
