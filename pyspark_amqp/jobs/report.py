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
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pyspark_amqp.jobs.lives import ACCEPTED, BULK, GIVEN, KEY, is_end
from pyspark_amqp.spark import utc

Record = dict[str, Any]

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


def span_of(events: DataFrame) -> Span | None:
    """Return the span of an event log, None if it has no rows."""
    found = events.agg(F.min("at").alias("begin"), F.max("at").alias("end")).collect()[0]
    if found["begin"] is None:
        return None
    seconds = (found["end"] - found["begin"]) / timedelta(seconds=1)
    step = next((each for each in STEPS if seconds / each <= POINTS), STEPS[-1])
    return Span(utc(found["begin"]), utc(found["end"]), step)


def curves(events: DataFrame, step: int) -> DataFrame:
    """Return a row for each address and each `step` seconds, unless they have no events.

    It counts the messages that were enqueued, given and accepted, and those that waited or were
    being processed at its end (`backlog`).
    """
    kind = F.col("kind")
    # the row of a deleted or purged queue begins its reason with a number of messages
    bulk = F.regexp_extract("reason", r"^(\d+) messages", 1).try_cast("bigint")
    gone = F.when(F.col("position") == BULK, F.coalesce(bulk, F.lit(0))).when(is_end(), F.lit(1))
    counted = events.groupBy(
        "address", F.window("at", f"{step} seconds").getField("start").alias("at")
    ).agg(
        _count(kind == "enqueued").alias("enqueued"),
        _count(kind.isin(*GIVEN)).alias("given"),
        _count(kind.isin(*ACCEPTED)).alias("accepted"),
        F.sum(F.coalesce(gone, F.lit(0))).alias("gone"),
    )
    until_now = Window.partitionBy("address").orderBy("at")
    waiting = F.sum(F.col("enqueued") - F.col("gone")).over(until_now)
    return counted.withColumn("backlog", F.greatest(waiting, F.lit(0))).drop("gone")


def by_address(events: DataFrame) -> DataFrame:
    """Return a row for each address: what became of its messages, and percentiles in ms."""
    kind = F.col("kind")
    messages = (
        events.filter(F.col("position") > BULK)
        .groupBy(*KEY)
        .agg(
            *(
                _count(kind == each).alias(each)
                for each in ("enqueued", "released", "modified", "expired", "deadlettered")
            ),
            _count(kind.isin(*GIVEN)).alias("given"),
            _count(kind.isin(*ACCEPTED)).alias("accepted"),
            F.min(F.when(kind == "enqueued", F.col("at"))).alias("enqueuedAt"),
            F.min(F.when(kind.isin(*GIVEN), F.col("at"))).alias("firstAt"),
            F.max(F.when(kind.isin(*GIVEN), F.col("at"))).alias("lastAt"),
            F.max(F.when(kind.isin(*ACCEPTED), F.col("at"))).alias("acceptedAt"),
        )
        .withColumn("queued", _ms("enqueuedAt", "firstAt"))
        .withColumn("processed", _ms("lastAt", "acceptedAt"))
        .withColumn("total", _ms("enqueuedAt", "acceptedAt"))
        .withColumn("again", F.greatest(F.col("given") - 1, F.lit(0)))
    )
    shares = F.array(*(F.lit(share) for share in PERCENTILES.values()))
    found = messages.groupBy("address").agg(
        *(
            F.sum(name).alias(name)
            for name in ("enqueued", "given", "accepted", "released", "modified", "expired")
        ),
        F.sum("deadlettered").alias("deadlettered"),
        F.sum("again").alias("redelivered"),
        F.max("given").alias("mostGiven"),
        *(F.percentile_approx(stage, shares, 10_000).alias(stage) for stage in STAGES),
    )
    for stage in STAGES:
        for index, name in enumerate(PERCENTILES):
            found = found.withColumn(f"{stage}_{name}", F.round(F.col(stage)[index], 3))
    return found.drop(*STAGES)


def _count(condition: Column) -> Column:
    return F.sum(condition.cast("int"))


def _ms(begin: str, end: str) -> Column:
    """Return the milliseconds from one time to another, null without either or if reversed."""
    micros = F.unix_micros(F.col(end)) - F.unix_micros(F.col(begin))
    return F.when(micros >= 0, micros / 1000)


# -- files


@dataclass(frozen=True)
class Report:
    """The results, on the driver: a row for each address, and one for each point of a curve."""

    span: Span
    addresses: list[Record]
    points: list[Record]


def gather(events: DataFrame) -> Report | None:
    """Run the queries; return None if the event log is empty."""
    span = span_of(events)
    if span is None:
        return None
    rows = by_address(events).orderBy(F.desc("enqueued"), "address")
    points = curves(events, span.step).orderBy("address", "at")
    return Report(
        span,
        [row.asDict() for row in rows.collect()],
        [{**row.asDict(), "at": utc(row["at"])} for row in points.collect()],
    )


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
