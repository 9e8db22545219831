"""F28 with a few cycles: a sink's commit happens completely or not at all, and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.plan import Plan
from tests.faults.server import Place
from tests.faults.staging import MOMENTS, commits_killed


@pytest.mark.requirement("PIP-12", "PIP-13", "PIP-16")
async def test_a_commit_happens_or_does_not(tmp_path: Path) -> None:
    report = await commits_killed(Plan(place=Place(tmp_path), cycles=len(MOMENTS)))
    print(*report.lines, sep="\n")
    assert report.problems == []


async def test_a_broker_that_keeps_nothing_is_found_out(tmp_path: Path) -> None:
    """Negative control: before the commit everything that was staged is lost."""
    report = await commits_killed(Plan(place=Place(tmp_path, store="memory"), cycles=2))
    assert any("again" in problem for problem in report.problems)
