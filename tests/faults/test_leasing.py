"""F29 with a few cycles: leased messages read the same after any kill, and are settled once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.leasing import MOMENTS, leases_killed
from tests.faults.plan import Plan
from tests.faults.server import Place


@pytest.mark.requirement("PIP-02", "PIP-05", "PIP-06", "PIP-07", "PIP-10")
async def test_a_lease_goes_on_where_it_was(tmp_path: Path) -> None:
    report = await leases_killed(Plan(place=Place(tmp_path), cycles=2 * len(MOMENTS)))
    print(*report.lines, sep="\n")
    assert report.problems == []


async def test_a_broker_that_keeps_nothing_is_found_out(tmp_path: Path) -> None:
    """Negative control: with the broker, its leases and all messages are gone."""
    report = await leases_killed(Plan(place=Place(tmp_path, store="memory"), cycles=2))
    assert any("fencing_token" in problem for problem in report.problems)
