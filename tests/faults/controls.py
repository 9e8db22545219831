"""Negative controls: brokers that break a promise, each of which a check must catch.

    python -m tests.faults.controls

They show that a check can fail. Each control changes a copy of the sources, against which the check
runs in a process of its own; a line says what caught it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.faults import power_trace
from tests.scenario.mutations import Mutation, copy_to, mutated

TIMEOUT_S: Final = 240
NAMES: Final = (
    "broker",
    "storage",
    "tests/__init__.py",
    "tests/conformance",
    "tests/faults",
    "tests/interop/__init__.py",
    "tests/interop/broker_process.py",
    "tests/scenario",
    "tests/support",
)

POWER_CUT: Final = ("tests.faults.power_cut", "--images", "150", "--seed", "1", "--size", "2")
DAMAGE: Final = ("tests.faults.damage", "--count", "20", "--seed", "1")


@dataclass(frozen=True)
class Control:
    """Changes that break a promise, and the check that must notice it.

    `word` occurs in the line that the check prints for that promise.
    """

    name: str
    changes: tuple[Mutation, ...]
    check: tuple[str, ...]
    word: str


def change(path: str, old: str, new: str) -> Mutation:
    return Mutation(old, path, old, new)


CONTROLS: Final = (
    Control(
        "synchronous=OFF",
        (
            change(
                "storage/sql/sqlite/sqlite.py", "PRAGMA synchronous=FULL", "PRAGMA synchronous=OFF"
            ),
            change("storage/sql/sqlite/sqlite.py", "FULL: Final = 2", "FULL: Final = 0"),
        ),
        POWER_CUT,
        "lost",
    ),
    Control(
        "an outcome before its commit",
        (
            change(
                "broker/journal.py",
                "await self._store.commit(",
                "asyncio.get_running_loop().create_task(self._store.commit(batch)) or (",
            ),
        ),
        POWER_CUT,
        "lost",
    ),
    Control(
        "no checksum",
        (
            change(
                "storage/sql/segments/segment.py",
                "found: i64 = int(extend(0, data))",
                "found: i64 = int(extend(0, b''))",
            ),
        ),
        DAMAGE,
        "wrongly delivered",
    ),
    Control(
        "what a kill may have repeated does not say so",
        (change("storage/sql/contents.py", "mark(connection, IN_USE) == 0", "True"),),
        POWER_CUT,
        "unflagged",
    ),
    Control(
        "mark not raised",
        (
            change(
                "storage/batch.py",
                "self.delivered[queue] = int(position)",
                "assert position >= 0",
            ),
        ),
        POWER_CUT,
        "unflagged",
    ),
)

NONE: Final = (
    Control("none: power cuts", (), POWER_CUT, ""),
    Control("none: damaged files", (), DAMAGE, ""),
)
"""Controls without changes, for which a check must report nothing."""


def verdict(control: Control) -> str | None:
    """Run the check against the changed copy; return its first finding, None if there is none.

    The result begins with "something else" if no finding has the control's word. Raise RuntimeError
    if the check did not run.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_to(folder, NAMES)
        for each in control.changes:
            file = folder / each.path
            file.write_text(mutated(each, file.read_text()))
        done = subprocess.run(
            [sys.executable, "-m", *control.check],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    said = done.stdout.splitlines()
    if not said or said[0].partition(":")[0] not in ("passed", "FAILED"):
        raise RuntimeError(
            f"the check of {control.name!r} did not run:\n{done.stdout}{done.stderr}"
        )
    if done.returncode == 0:
        return None
    wrong = [line.strip() for line in said[1:] if control.word in line]
    return wrong[0] if wrong else f"something else: {done.stdout}"


def is_caught(control: Control, said: str | None) -> bool:
    """Return whether the check failed for the expected reason, or passed if nothing was changed."""
    if not control.changes:
        return said is None
    return said is not None and not said.startswith("something else")


def main() -> int:
    """Print a line for each control; return 1 unless all were caught."""
    reason = power_trace.reason_not_to()
    wrong = 0
    for control in (*CONTROLS, *NONE):
        if control.check is POWER_CUT and reason is not None:
            print(f"SKIPPED control: {control.name}: {reason}")
            continue
        said = verdict(control)
        caught = is_caught(control, said)
        wrong += not caught
        by = control.check[0].rpartition(".")[2]
        answer = f"caught by {by}: {said}" if said is not None else f"nothing said by {by}"
        print(f"{'' if caught else 'WRONG: '}control: {control.name}: {answer}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
