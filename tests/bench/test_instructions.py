"""Counted instructions: the arithmetic, and what callgrind writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import instructions
from tests.bench.places import BenchError
from tests.bench.work import QUICK


def test_the_cost_of_a_run_itself_does_not_count() -> None:
    links = 1_000_000
    little, much = (100, links + 100 * 4_000), (500, links + 500 * 4_000)
    assert instructions.slope(little, much) == 4_000


def test_a_share_of_a_scale_has_less_of_all_messages() -> None:
    half = instructions.share_of(QUICK, 0.5)
    assert half.messages == QUICK.messages / 2
    assert half.durable_small == QUICK.durable_small / 2
    assert half.jms_seconds == QUICK.jms_seconds


def test_the_total_of_a_dump(tmp_path: Path) -> None:
    dump = tmp_path / "callgrind.1"
    dump.write_text("version: 1\nevents: Ir\n\nfn=(1) main\n1 20\n\ntotals: 123456789\n")
    assert instructions.total_of(dump) == 123_456_789


def test_a_dump_that_is_never_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instructions, "DUMP_SECONDS", 0.0)
    with pytest.raises(BenchError, match=r"has not written .*callgrind\.7"):
        instructions.total_of(tmp_path / "callgrind.7")


def test_the_table_has_means_ranges_and_ratios() -> None:
    ours, theirs = {"small": [4_000.0, 4_200.0]}, {"small": [8_000.0, 8_400.0]}
    line = "| small | 4,100 (4,000 to 4,200) | 8,200 (8,000 to 8,400) | 0.500 |"
    assert instructions.table(ours, theirs)[-1] == line
    assert instructions.table(ours, {})[-1] == "| small | 4,100 (4,000 to 4,200) | - | - |"


def test_each_row_is_there() -> None:
    assert {row.name for row in instructions.ROWS} == set(instructions.NAMES)
