"""The disk that holds the stores of measured brokers."""

import math
import os
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from tests.bench.places import BenchError, cache_folder

SECTOR_BYTES: Final = 512  # the unit in which the kernel counts, whatever a disk has
MEMORY: Final = {"tmpfs", "ramfs"}  # where a sync costs nothing


class FileSystem(NamedTuple):
    """The kind and the device of a mounted file system."""

    kind: str
    device: str


def file_system(path: Path, mounts: str) -> FileSystem:
    """Return the file system of `path`; `mounts` has the lines of /proc/self/mounts."""
    found, longest = FileSystem("unknown", ""), -1
    for line in mounts.splitlines():
        device, where, kind = line.split()[:3]
        mounted = Path(where.replace("\\040", " "))
        # if two are mounted on one place, the later one counts
        if path.is_relative_to(mounted) and len(mounted.parts) >= longest:
            found, longest = FileSystem(kind, device), len(mounted.parts)
    return found


def file_system_of(folder: Path) -> FileSystem:
    """Return the file system of that folder now."""
    return file_system(folder.resolve(), Path("/proc/self/mounts").read_text())


def disk_folder() -> Path:
    """Return the first folder for temporary files that is not in memory, else raise BenchError."""
    for folder in (Path(tempfile.gettempdir()), Path("/var/tmp"), cache_folder("bench")):
        if folder.is_dir() and file_system_of(folder).kind not in MEMORY:
            return folder
    raise BenchError("all folders for temporary files are in memory: set TMPDIR to one on a disk")


def written_bytes(folder: Path) -> float:
    """Return the bytes written so far to the folder's block device; not a number if unknown."""
    device = folder.stat().st_dev
    counts = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    if not counts.exists():  # a file system on several devices, or on another file system
        return math.nan
    return int(counts.read_text().split()[6]) * SECTOR_BYTES
