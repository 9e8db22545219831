"""CSV has what programs need, and nothing that a spreadsheet would compute."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from pyspark_amqp.jobs.csv_file import write_csv

CELLS: Final = [
    ("orders", "orders"),
    ("", ""),
    (None, ""),
    (-5, "-5"),
    (-0.5, "-0.5"),
    (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00+00:00"),
    ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
    ("+1", "'+1"),
    ("-x", "'-x"),
    ("@SUM(A1)", "'@SUM(A1)"),
    ("\t=1", "'\t=1"),
    ("a=1", "a=1"),
    ("'=1", "'=1"),
]


@pytest.mark.requirement("PIP-66")
@pytest.mark.parametrize(("value", "text"), CELLS)
def test_a_cell_is_no_formula(tmp_path: Path, value: object, text: str) -> None:
    path = tmp_path / "some.csv"
    write_csv(path, ["value"], [[value]])
    with path.open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file) if text else [{"value": ""}]
    assert row == {"value": text}
