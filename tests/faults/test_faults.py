"""Each fault with a few cycles; `python -m tests.faults` runs them by the hundred."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.faults.catalogue import FAULTS, named
from tests.faults.plan import Impossible, Plan
from tests.faults.server import Place

pytestmark = pytest.mark.slow


QUICK: Final = [
    pytest.param(name, id=f"{name} {entry.words}") for name, entry in FAULTS.items() if entry.few
]


@pytest.mark.parametrize("name", QUICK)
async def test_no_promise_is_broken(name: str, tmp_path: Path) -> None:
    plan = Plan(place=Place(tmp_path), cycles=FAULTS[name].few)
    try:
        report = await FAULTS[name].fault(plan)
    except Impossible as reason:
        pytest.skip(str(reason))
    print(*report.lines, sep="\n")
    assert report.problems == []


async def test_a_broker_that_keeps_nothing_is_found_out(tmp_path: Path) -> None:
    """Negative control: this suite notices a broker that stores its messages in memory only."""
    plan = Plan(place=Place(tmp_path, store="memory"), cycles=1)
    report = await FAULTS["F1"].fault(plan)
    assert any("lost" in problem for problem in report.problems)


NAMES = [
    pytest.param("F1", ["F1"], id="one fault, not those that begin like it"),
    pytest.param("F9", ["F9"], id="a fault that has a variant"),
    pytest.param("F17", [f"F17{letter}" for letter in "abcdefghim"], id="all letters"),
    pytest.param("F17c", ["F17c"], id="one letter"),
    pytest.param("F", [], id="a beginning"),
    pytest.param("unknown", [], id="no fault"),
]


@pytest.mark.parametrize(("name", "meant"), NAMES)
def test_a_name_means(name: str, meant: list[str]) -> None:
    assert named(name) == meant
