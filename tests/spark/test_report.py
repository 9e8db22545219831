"""The report's numbers are those of the event log; its files can be read."""

from __future__ import annotations

import csv
import re
from datetime import timedelta
from pathlib import Path
from typing import Final

import duckdb
import pytest

from pyspark_amqp.engines.engine import Engine
from pyspark_amqp.jobs.audit import Look
from pyspark_amqp.jobs.auditing import judged_by
from pyspark_amqp.jobs.extent import bounds
from pyspark_amqp.jobs.report import by_address, curves, gather, messages_of, span_of
from pyspark_amqp.jobs.report_page import page, write
from pyspark_amqp.jobs.verdict import judge
from tests.spark.event_logs import START, Model, Writer, as_parquet


def story() -> Writer:
    """Return an event log: `a` gets two messages, one twice; `b` three, gone with the queue."""
    told = Writer()
    told.note("enqueued", 1, address="a")
    told.note("enqueued", 2, address="a")
    told.note("delivered", 1, address="a")
    told.note("released", 1, address="a")
    told.now = START + timedelta(seconds=2)
    told.note("delivered", 1, address="a")
    told.note("leased", 2, address="a")
    told.note("accepted", 1, address="a")
    told.note("settled", 2, address="a")
    for number in (3, 4, 5):
        told.note("enqueued", number, address="b")
    told.now = START + timedelta(seconds=4)
    told.note("purged", "", address="b", position=-1, reason="3 messages, with their queue")
    return told


@pytest.mark.requirement("PIP-66")
@pytest.mark.requirement("PIP-75")
def test_curves_and_sums(engine: Engine) -> None:
    events = story().table(engine)
    span = span_of(events)
    assert span is not None
    assert span.step == 1
    found = [
        (address, at.timestamp() - START.timestamp(), *others)
        for address, at, *others in (row.values() for row in curves(events, 1).rows())
    ]
    assert found == [
        ("a", 0, 2, 1, 0, 2),
        ("a", 2, 0, 2, 2, 0),
        ("b", 2, 3, 0, 0, 3),
        ("b", 4, 0, 0, 0, 0),
    ]
    b, a = by_address(messages_of(events)).rows()
    counts = ("enqueued", "given", "accepted", "released", "redelivered", "mostGiven")
    assert [a[name] for name in counts] == [2, 3, 2, 1, 1, 2]
    assert [b[name] for name in counts] == [3, 0, 0, 0, 0, 0]
    # message 1: given after 2 ms, again at 2001, accepted at 2003; message 2: at 2002, at 2004
    assert (a["queued_p50"], a["queued_max"]) == (2.0, 2000.0)
    assert (a["processed_p50"], a["processed_max"]) == (2.0, 2.0)
    assert (a["total_p50"], a["total_max"]) == (2002.0, 2002.0)
    assert b["total_p50"] is None


DUCKDB: Final = """
with messages as (
  select address, position, messageId, min("at") filter (where kind = 'enqueued') as came,
    max("at") filter (where kind = 'accepted') as went
  from read_parquet('{events}') group by all
)
select address, count(came), count(went),
  quantile_disc(epoch_us(went) - epoch_us(came), [0.5, 0.9, 0.99, 1.0])
from messages group by address order by address
"""


@pytest.mark.requirement("PIP-65")
@pytest.mark.requirement("PIP-66")
def test_a_busy_broker_as_files(engine: Engine, tmp_path: Path) -> None:
    told = Model(5, []).run(messages=500).told
    enqueued = [row[2] for row in told.rows].count("enqueued")
    assert enqueued > 500, "dead letters are enqueued once more"
    report = gather(as_parquet(told, engine, tmp_path))
    assert report is not None
    with duckdb.connect() as other:
        expected = other.execute(DUCKDB.format(events=tmp_path / "part.parquet")).fetchall()
    by_name = sorted(report.addresses, key=lambda row: str(row["address"]))
    names = ("p50", "p90", "p99", "max")
    assert [
        (
            *(row[name] for name in ("address", "enqueued", "accepted")),
            [round(row[f"total_{name}"] * 1000) for name in names],
        )
        for row in by_name
    ] == expected
    paths = write(report, tmp_path / "out")
    assert [path.name for path in paths] == ["report.html", "addresses.csv", "curves.csv"]
    html = paths[0].read_text()
    assert f"<dd>{enqueued:,}</dd>" in html
    with paths[1].open() as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["enqueued"]) for row in rows) == enqueued
    with paths[2].open() as file:
        assert sum(int(row["enqueued"]) for row in csv.DictReader(file)) == enqueued


@pytest.mark.requirement("PIP-66")
def test_odd_event_logs(duckdb_engine: Engine) -> None:
    assert gather(Writer().table(duckdb_engine)) is None
    told = Writer()
    told.note("accepted", address="<script>")
    report = gather(told.table(duckdb_engine))
    assert report is not None
    html = page(report)
    assert '<th scope="row">&lt;script&gt;</th>' in html
    assert "<script>&" not in html
    assert html.count("<figure>") == 1, "of one accepted message only the throughput is known"


@pytest.mark.requirement("PIP-66")
def test_each_number_leads_to_the_messages_behind_it(duckdb_engine: Engine) -> None:
    told = Model(3, ["exclusive"]).run(messages=300).told
    events = told.table(duckdb_engine)
    report = gather(events)
    assert report is not None
    judged = judged_by(*judge(events, bounds(events), look=Look(drained=True)))
    html = page(report, judged)
    assert "NOT all checks hold" in html
    links = set(re.findall(r'href="#([^"]+)"', html))
    assert {"audit", "offenders", "redelivered", "redelivered-1", "slowest-1"} <= links
    assert links <= set(re.findall(r'id="([^"]+)"', html)), "each link leads somewhere"
    (twice,) = [row["messageId"] for row in judged.offenders]
    assert html.count(f">{twice}<") >= 2, "among the offenders, and those delivered again"
