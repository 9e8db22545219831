"""Tells a process from every other one, so that another program can wait for its end.

A number alone does not: inside a container, and on another machine, it is that of another process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PROCESSES: Final = Path("/proc")

ENDED_STATES: Final = frozenset({"Z", "X"})
"""States of a process that has ended, and which its parent has not noticed yet: it has no files."""

START_FIELD: Final = 19
"""The index of the time of the start among the fields after the name (`proc_pid_stat(5)`)."""


def process_identity(pid: int, processes: Path = PROCESSES) -> str:
    """Return `PID@START` of the running process `pid`, its start in ticks since the boot.

    It is empty if there is no such process, or if the system does not show it.
    """
    try:
        text = (processes / str(pid) / "stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()  # the name before it may have spaces
    if len(fields) <= START_FIELD or fields[0] in ENDED_STATES:
        return ""
    return f"{pid}@{fields[START_FIELD]}"


def is_running(identity: str, processes: Path = PROCESSES) -> bool:
    """Return whether the process of `identity` runs on this machine, and can be seen."""
    pid = identity.partition("@")[0]
    return pid.isdecimal() and process_identity(int(pid), processes) == identity
