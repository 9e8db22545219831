"""Files of CSV that programs and spreadsheets read."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""The beginnings of texts that a spreadsheet takes for a formula."""


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a file of CSV in UTF-8: a line of names, and a line for each of `rows`."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if names:
            writer.writerow(names)
        writer.writerows([_cell(value) for value in row] for row in rows)


def _cell(value: object) -> str:
    """Return a value as text: empty for None, a text like a formula behind an apostrophe.

    Addresses, ids and reasons come from clients. A spreadsheet would compute a formula in them,
    which can read other cells and open links.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return value.isoformat() if isinstance(value, datetime) else str(value)
