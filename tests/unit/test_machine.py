"""The memory that the broker may use: the machine's, or a container's limit."""

import os
from pathlib import Path

import pytest

from broker.machine import LEAST, MEBIBYTE, available, default_memory_max

PHYSICAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
NO_LIMIT_OF_VERSION_1 = 9223372036854771712

MACHINES = {
    # name: files below the mount, the line of the process's cgroup, available bytes
    "no cgroups": ({}, "", PHYSICAL),
    "no limit": ({"memory.max": "max"}, "0::/\n", PHYSICAL),
    "a container, which sees its own group as the root": (
        {"memory.max": str(256 * MEBIBYTE)},
        "0::/\n",
        256 * MEBIBYTE,
    ),
    "a service, by its own group": (
        {"system.slice/broker.service/memory.max": str(300 * MEBIBYTE)},
        "0::/system.slice/broker.service\n",
        300 * MEBIBYTE,
    ),
    "a group above has less": (
        {"a/memory.max": str(200 * MEBIBYTE), "a/b/memory.max": str(300 * MEBIBYTE)},
        "0::/a/b\n",
        200 * MEBIBYTE,
    ),
    "version 1": (
        {"memory/memory.limit_in_bytes": str(100 * MEBIBYTE)},
        "4:memory:/docker/1\n",
        100 * MEBIBYTE,
    ),
    "version 1 without a limit": (
        {"memory/memory.limit_in_bytes": str(NO_LIMIT_OF_VERSION_1)},
        "4:memory:/\n",
        PHYSICAL,
    ),
}


@pytest.mark.parametrize(("files", "own", "expected"), MACHINES.values(), ids=MACHINES.keys())
def test_what_is_available(tmp_path: Path, files: dict[str, str], own: str, expected: int) -> None:
    mount = tmp_path / "cgroup"
    for name, text in files.items():
        file = mount / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    (tmp_path / "own").write_text(own)
    assert available(mount, tmp_path / "own") == expected


@pytest.mark.parametrize(
    ("mebibytes", "expected"),
    [
        pytest.param(4096, 1024, id="a quarter"),
        pytest.param(256, LEAST // MEBIBYTE, id="never less than the least"),
    ],
)
def test_the_budget_of_a_container(tmp_path: Path, mebibytes: int, expected: int) -> None:
    (tmp_path / "memory.max").write_text(str(mebibytes * MEBIBYTE))
    assert default_memory_max(tmp_path, tmp_path / "none") == expected * MEBIBYTE
