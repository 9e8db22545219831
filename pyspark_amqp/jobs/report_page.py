"""The files of a report: a page of HTML that needs no other file, and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_amqp.jobs.charts import CHARTS, RIGHT, WIDTH, RowChart, TimeChart
from pyspark_amqp.jobs.csv_file import write_csv
from pyspark_amqp.jobs.quantities import duration, number
from pyspark_amqp.jobs.report import BEHIND, BEHIND_MAX, Report, total

if TYPE_CHECKING:
    import jinja2

    from pyspark_amqp.engines.engine import Record

NAMES: Final = ("report.html", "addresses.csv", "curves.csv")

FOLDER: Final = files("pyspark_amqp.jobs") / "templates"

TITLES: Final = {
    "redelivered": "delivered more than once",
    "deadlettered": "dead-lettered",
    "expired": "expired",
    "slowest": "that took longest from enqueued to accepted",
}
"""Titles of the lists of messages, by the names of BEHIND."""


@dataclass(frozen=True)
class Judged:
    """The audit of the same event log: its table of checks, some offending messages, and notes."""

    holds: bool
    is_of_nothing: bool
    checks: Sequence[Record]
    offenders: Sequence[Record]
    notes: Sequence[str]

    @property
    def text(self) -> str:
        """Return the verdict in words."""
        if self.is_of_nothing:
            return "nothing to judge"
        return "all checks hold" if self.holds else "NOT all checks hold"


def write(report: Report, folder: Path, judged: Judged | None = None) -> list[Path]:
    """Write the page and two CSV files into `folder`; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / name for name in NAMES]
    paths[0].write_text(page(report, judged), encoding="utf-8")
    for path, rows in ((paths[1], report.addresses), (paths[2], report.points)):
        write_csv(path, list(rows[0]) if rows else [], (row.values() for row in rows))
    return paths


def page(report: Report, judged: Judged | None = None) -> str:
    """Return the report as a page of HTML; `judged` is left out if no audit was made."""
    charts = [chart for chart in (make(report) for make in CHARTS) if chart is not None]
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            judged=judged,
            charts=charts,
            lists=_lists(report),
            numbers={row["address"]: at for at, row in enumerate(report.addresses, 1)},
            titles=TITLES,
            most=BEHIND_MAX,
            total=lambda name: total(report, name),
        )
    )


def _lists(report: Report) -> dict[str, dict[str, list[Record]]]:
    """Return the messages behind the numbers, by the name of BEHIND and by address."""
    found: dict[str, dict[str, list[Record]]] = {name: {} for name in BEHIND}
    for name, rows in report.behind.items():
        for row in rows:
            found[name].setdefault(row["address"], []).append(row)
    return found


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (FOLDER / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "duration": duration}
    made.tests |= {
        "of_time": lambda chart: isinstance(chart, TimeChart),
        "of_rows": lambda chart: isinstance(chart, RowChart),
    }
    made.globals |= {"width": WIDTH, "right": RIGHT}
    return made
