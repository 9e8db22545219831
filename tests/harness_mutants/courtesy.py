"""The list of the cases that may pass on a broker that accepts everything and delivers nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.conformance.harness import Rule

LIST: Final = Path(__file__).with_name("courtesy.txt")


def line_of(case: Rule) -> str:
    """Return the line that lists a case: its source, clause and name."""
    return f"{case.source} {case.clause} {case.name}"


def listed() -> list[str]:
    """Return the lines of the list, without comments."""
    return [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
