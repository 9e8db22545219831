"""The memory that the broker may use, by its machine or its container."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1024 * 1024

LEAST: Final = 128 * MEBIBYTE
"""Minimum budget in bytes: with less, a broker would hold up producers all the time."""

CGROUPS: Final = Path("/sys/fs/cgroup")
OWN_CGROUP: Final = Path("/proc/self/cgroup")


def default_memory_max(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> int:
    """Return a quarter of the available memory in bytes, at least LEAST."""
    return max(LEAST, available(cgroups, own) // 4)


def available(cgroups: Path = CGROUPS, own: Path = OWN_CGROUP) -> int:
    """Return the machine's memory in bytes, or the process's least cgroup limit if that is less."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([physical, *_limits(cgroups, own)])


def _limits(cgroups: Path, own: Path) -> list[int]:
    """Return the memory limits of the process's cgroup and those above it, in bytes.

    The limits are those of version 2, and the one of version 1. Inside a container the mount
    shows the container's own group as its root.
    """
    files = [cgroups / "memory" / "memory.limit_in_bytes", cgroups / "memory.max"]
    group = _own_group(own)
    while group not in ("", "/"):
        files.append(cgroups / group.lstrip("/") / "memory.max")
        group = group.rpartition("/")[0]
    found = []
    for file in files:
        try:
            text = file.read_text().strip()
        except OSError:
            continue  # another version of cgroups, or none
        if text.isdecimal():
            found.append(int(text))
    return found


def _own_group(own: Path) -> str:
    """Return the path of the process's group in version 2's hierarchy, empty if unknown."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return ""
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")
