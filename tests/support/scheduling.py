"""The order of test files, and the files that share a process (`--dist loadfile`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler import LoadFileScheduling

TESTS: Final = Path(__file__).resolve().parents[1]

DIST: Final = "dist"
"""The option of xdist that says how tests are distributed, and a key of `workerinput`."""

IDLE: Final = ("attacks", "conformance", "contract", "docs", "faults")
"""Folders whose tests wait for programs, disks and times, so that a core is idle meanwhile."""

SPARK: Final = "spark"
DRIVERS: Final = frozenset(
    f"test_{name}.py" for name in ("cluster", "crashes", "jms_identity", "secured", "tutorial")
)
"""Files with Spark that take as long as all others, since most of their tests start a driver."""


def is_by_file(config: pytest.Config) -> bool:
    """Return whether tests are distributed by files, in the main process or in another.

    xdist sets the option to "no" in the others; the main process tells them (`workerinput`).
    """
    told: Mapping[str, object] = getattr(config, "workerinput", {})
    return told.get(DIST, config.getoption(DIST, "no")) == "loadfile"


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the items file by file: those with Spark first, which take longest.

    Files of IDLE folders and of others take turns: processes that run side by side then have a core
    to share while some of them only wait.
    """
    first: list[pytest.Item] = []
    files: tuple[dict[Path, list[pytest.Item]], ...] = ({}, {})
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder == SPARK:
            first.append(item)
        else:
            files[folder in IDLE].setdefault(item.path, []).append(item)
    turns = zip_longest(*(each.values() for each in files), fillvalue=())
    return [*first, *(item for turn in turns for file in turn for item in file)]


class FewSparks(LoadFileScheduling):
    """Gives each process a file at a time, and the files with Spark to two processes.

    Each process with one of them starts Java, which takes some 40 s of a core until it is warm.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = Path(super()._split_scope(nodeid))
        if file.parent.name != SPARK:
            return str(file)
        return "Spark with drivers" if file.name in DRIVERS else "Spark"
