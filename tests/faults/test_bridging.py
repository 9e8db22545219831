"""F40 with a few cycles: over kills and cuts, a bridge's messages arrive once, in their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.bridging import bridges_fail
from tests.faults.plan import Plan
from tests.faults.server import Place


@pytest.mark.requirement("BRG-01")
async def test_messages_arrive_once_over_kills_and_cuts(tmp_path: Path) -> None:
    report = await bridges_fail(Plan(place=Place(tmp_path), cycles=3))
    print(*report.lines, sep="\n")
    assert report.problems == []


async def test_a_source_that_keeps_nothing_is_found_out(tmp_path: Path) -> None:
    """Negative control: a store in memory loses its messages with its process."""
    report = await bridges_fail(Plan(place=Place(tmp_path, store="memory"), cycles=1))
    assert any("lost" in problem for problem in report.problems)
