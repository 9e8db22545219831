"""The report job: throughput, latency, backlog and redeliveries by address.

The first part has pure functions from an event log frame to frames, the second writes CSV, an SVG
and an HTML page of them. `plots.py` draws.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from pathlib import Path
from typing import Final

from pyspark_amqp.engines.engine import Record, Table
from pyspark_amqp.jobs.statements import query

STEPS: Final = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600)
"""Seconds that one point of a curve may cover."""

POINTS: Final = 120
"""Maximum points of a curve, approximately."""

PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}

STAGES: Final = ("queued", "processed", "total")
"""Times of a message: enqueued to first given, last given to accepted, and enqueued to accepted."""


@dataclass(frozen=True)
class Span:
    """The times of an event log's first and last row, and the seconds of one point of a curve."""

    begin: datetime
    end: datetime
    step: int


def span_of(events: Table) -> Span | None:
    """Return the span of an event log, None if it has no rows."""
    statement = "SELECT min(e.at) AS begin, max(e.at) AS end FROM {events} e"
    (found,) = query(statement, events=events).rows()
    if found["begin"] is None:
        return None
    seconds = (found["end"] - found["begin"]) / timedelta(seconds=1)
    step = next((each for each in STEPS if seconds / each <= POINTS), STEPS[-1])
    return Span(found["begin"], found["end"], step)


CURVES: Final = """
SELECT address, timestamp_micros(us) AS at, enqueued, given, accepted,
  greatest(sum(enqueued - gone) OVER (
    PARTITION BY address ORDER BY us ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ), 0) AS backlog
FROM (
  SELECT address, us,
    count_if(kind = 'enqueued') AS enqueued,
    count_if(kind IN {given}) AS given,
    count_if(kind IN {accepted}) AS accepted,
    sum(CASE
      WHEN position = {bulk}
        THEN coalesce(try_cast(regexp_extract(reason, '^([0-9]+) messages', 1) AS BIGINT), 0)
      WHEN {is_end} THEN 1
      ELSE 0
    END) AS gone
  FROM (SELECT *, unix_micros(e.at) - unix_micros(e.at) % {step_us} AS us FROM {events} e) e
  GROUP BY address, us
) counted
ORDER BY address, us
"""
"""A row for each address and each step, unless they have no events.

It counts the messages that were enqueued, given and accepted, and those that waited or were being
processed at its end (`backlog`). The row of a deleted or purged queue begins its reason with a
number of messages.
"""


def curves(events: Table, step: int) -> Table:
    """Return the rows of CURVES for steps of `step` seconds."""
    return query(CURVES, events=events, step_us=step * 1_000_000)


BY_ADDRESS: Final = """
SELECT address,
  sum(enqueued) AS enqueued,
  sum(given) AS given,
  sum(accepted) AS accepted,
  sum(released) AS released,
  sum(modified) AS modified,
  sum(expired) AS expired,
  sum(deadlettered) AS deadlettered,
  sum(greatest(given - 1, 0)) AS redelivered,
  max(given) AS mostGiven,
  {percentiles}
FROM (
  SELECT *,
    CASE WHEN firstAt >= enqueuedAt THEN unix_micros(firstAt) - unix_micros(enqueuedAt) END
      AS queued,
    CASE WHEN acceptedAt >= lastAt THEN unix_micros(acceptedAt) - unix_micros(lastAt) END
      AS processed,
    CASE WHEN acceptedAt >= enqueuedAt THEN unix_micros(acceptedAt) - unix_micros(enqueuedAt) END
      AS total
  FROM (
    SELECT {key},
      count_if(kind = 'enqueued') AS enqueued,
      count_if(kind = 'released') AS released,
      count_if(kind = 'modified') AS modified,
      count_if(kind = 'expired') AS expired,
      count_if(kind = 'deadlettered') AS deadlettered,
      count_if(kind IN {given}) AS given,
      count_if(kind IN {accepted}) AS accepted,
      min(CASE WHEN kind = 'enqueued' THEN e.at END) AS enqueuedAt,
      min(CASE WHEN kind IN {given} THEN e.at END) AS firstAt,
      max(CASE WHEN kind IN {given} THEN e.at END) AS lastAt,
      max(CASE WHEN kind IN {accepted} THEN e.at END) AS acceptedAt
    FROM {events} e
    WHERE position > {bulk}
    GROUP BY {key}
  ) messages
) timed
GROUP BY address
ORDER BY enqueued DESC, address
""".replace(
    "{percentiles}",
    ",\n  ".join(
        f"percentile_approx({stage}, {share}, 10000) / 1000 AS {stage}_{name}"
        for stage in STAGES
        for name, share in PERCENTILES.items()
    ),
)
"""A row for each address: what became of its messages, and percentiles in ms.

A time between two events is unknown without either, or if they are reversed.
"""


def by_address(events: Table) -> Table:
    """Return the rows of BY_ADDRESS."""
    return query(BY_ADDRESS, events=events)


# -- files


@dataclass(frozen=True)
class Report:
    """The results, on the driver: a row for each address, and one for each point of a curve."""

    span: Span
    addresses: list[Record]
    points: list[Record]


def gather(events: Table) -> Report | None:
    """Run the queries; return None if the event log is empty."""
    span = span_of(events)
    if span is None:
        return None
    return Report(span, by_address(events).rows(), curves(events, span.step).rows())


def summary(report: Report) -> dict[str, object]:
    """Return the totals that the command prints."""
    return {
        "addresses": len(report.addresses),
        **{
            name: sum(row[name] or 0 for row in report.addresses)
            for name in ("enqueued", "accepted", "redelivered")
        },
        "since": report.span.begin.isoformat(),
        "until": report.span.end.isoformat(),
    }


def write(report: Report, folder: Path) -> list[Path]:
    """Write `report.html`, `report.svg` and two CSV files into `folder`; return their paths."""
    from pyspark_amqp.jobs.plots import draw

    folder.mkdir(parents=True, exist_ok=True)
    svg = draw(report)
    paths = [folder / name for name in ("report.html", "report.svg", "addresses.csv", "curves.csv")]
    paths[0].write_text(page(report, svg), encoding="utf-8")
    paths[1].write_text(svg, encoding="utf-8")
    _write_csv(paths[2], report.addresses)
    _write_csv(paths[3], report.points)
    return paths


def _write_csv(path: Path, rows: Sequence[Record]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if rows:
            writer.writerow(rows[0])
        writer.writerows([_cell(value) for value in row.values()] for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, datetime) else str(value)


STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;"
    "color:#1b1f24}table{border-collapse:collapse;width:100%;font-size:13px}"
    "th,td{padding:.25rem .5rem;border-bottom:1px solid #d8dee4;text-align:right}"
    "th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}"
)

TABLE: Final = {
    "address": "address",
    "enqueued": "enqueued",
    "accepted": "accepted",
    "redelivered": "redelivered",
    "mostGiven": "most often given",
    "expired": "expired",
    "deadlettered": "dead letters",
    **{f"total_{name}": f"total {name}, ms" for name in PERCENTILES},
    "queued_p50": "queued p50, ms",
    "processed_p50": "processed p50, ms",
}


def page(report: Report, svg: str) -> str:
    """Return the report as a page of HTML that needs no other file."""
    total = {
        name: sum(row[name] or 0 for row in report.addresses)
        for name in ("enqueued", "accepted", "redelivered")
    }
    begin, end = (f"{each:%Y-%m-%d %H:%M:%S}" for each in (report.span.begin, report.span.end))
    summary = (
        f"<p>{total['enqueued']:,} enqueued, {total['accepted']:,} accepted,"
        f" {total['redelivered']:,} given again, {len(report.addresses)} addresses."
        f" A point of a curve is {report.span.step} s.</p>"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8"><title>Messages</title>',
            f"<style>{STYLE}</style></head><body>",
            f"<h1>Messages, {begin} to {end} UTC</h1>",
            summary,
            svg[svg.index("<svg") :],
            *_table(report.addresses),
            "</body></html>",
            "",
        ]
    )


def _table(rows: Iterable[Record]) -> list[str]:
    heads = "".join(f"<th>{escape(title)}</th>" for title in TABLE.values())
    lines = [f"<table><thead><tr>{heads}</tr></thead><tbody>"]
    for row in rows:
        cells = "".join(f"<td>{escape(_shown(row[name]))}</td>" for name in TABLE)
        lines.append(f"<tr>{cells}</tr>")
    return [*lines, "</tbody></table>"]


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
