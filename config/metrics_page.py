"""Write the tables of metrics into `docs/operations/metrics.md`, from the table in the code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from broker.http.metric_table import BROKER, DETAILED, TRUNCATED, Metric
from config.settings_texts import ROOT

PAGE: Final = ROOT / "docs" / "operations" / "metrics.md"

PLACES: Final = {"broker": BROKER, "detailed": (*DETAILED, TRUNCATED)}
"""The tables by their names, which are in comments around each of them."""


def page_text(text: str) -> str:
    """Return the page with its tables made from the code."""
    for name, metrics in PLACES.items():
        begin, end = f"<!-- metrics: {name} -->\n", f"<!-- end: {name} -->\n"
        before, _, rest = text.partition(begin)
        _, _, behind = rest.partition(end)
        text = f"{before}{begin}\n{table(metrics)}\n{end}{behind}"
    return text


def table(metrics: Iterable[Metric]) -> str:
    """Return the table of these metrics."""
    lines = ["| metric | type | labels | meaning |", "|---|---|---|---|"]
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.full_name()}` | {metric.type} | {labels} | {metric.help} |")
    return "\n".join(lines) + "\n"


def write() -> None:
    """Write the page."""
    PAGE.write_text(page_text(PAGE.read_text()))
