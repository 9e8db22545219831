"""A commit of a sink and a settlement of a lease let the event loop do other work in between."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.stretches import measure

COUNT = 20_000

LONGEST_MS = 40.0
"""A generous limit of thread CPU time: the code is interpreted here, which takes ten times as long.

In one piece, each of the two would take more than 100 ms.
"""


@pytest.fixture(autouse=True)
def no_collections() -> Iterator[None]:
    """Collect no garbage during the test: a collection may take longer than the limit."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.requirement("OPS-01")
async def test_no_turn_of_the_loop_is_long(tmp_path: Path) -> None:
    figures = await measure(COUNT, tmp_path / "store.db")
    for step in ("commit", "settle"):
        longest = figures[step].longest_cpu_ms()
        assert longest < LONGEST_MS, f"{step}: {longest:.1f} ms"
