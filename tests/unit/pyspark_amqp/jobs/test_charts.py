"""The charts of a report: axes, places, and no chart without data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from pyspark_amqp.jobs.charts import (
    BOTTOM,
    HEIGHT,
    NAMES,
    SHOWN,
    backlog,
    failures,
    latency,
    steps,
    throughput,
)
from pyspark_amqp.jobs.report import Report, Span

START: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
ZERO: Final = HEIGHT - BOTTOM


def at(second: int, address: str = "q", **counts: int) -> dict[str, object]:
    none = dict.fromkeys(("enqueued", "given", "accepted", "backlog"), 0)
    return {"address": address, "at": START + timedelta(seconds=second), **none, **counts}


def row(address: str = "q", total: float | None = None, **counts: int) -> dict[str, object]:
    times = dict.fromkeys((f"total_{name}" for name in ("p50", "p90", "p99", "max")), total)
    none = dict.fromkeys(("redelivered", "deadlettered", "expired"), 0)
    return {"address": address, **times, **none, **counts}


def report(rows: list[dict[str, object]], points: list[dict[str, object]]) -> Report:
    return Report(Span(START, START + timedelta(seconds=9), 1), rows, points)


@pytest.mark.requirement("PIP-66")
@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (0, [0, 1]),
        (1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (7, [0, 2, 4, 6, 8]),
        (100, [0, 20, 40, 60, 80, 100]),
        (2501, [0, 1000, 2000, 3000]),
    ],
)
def test_an_axis_begins_at_zero_and_has_round_values(most: float, expected: list[float]) -> None:
    assert steps(most) == pytest.approx(expected)


@pytest.mark.requirement("PIP-66")
def test_a_step_without_events_is_zero_in_throughput_and_no_change_in_backlog() -> None:
    told = report([row()], [at(0, enqueued=4, backlog=4), at(3, enqueued=2, backlog=6)])
    rates = throughput(told)
    assert rates is not None
    assert [line.name for line in rates.lines] == ["enqueued"], "others are zero all the time"
    assert rates.lines[0].texts == ["4", "0", "0", "2"]
    waiting = backlog(told)
    assert waiting is not None
    assert waiting.lines[0].texts == ["4", "4", "4", "6"]
    assert rates.up[0].at == waiting.up[0].at == ZERO
    assert rates.up[0].text == "0"
    assert len(rates.places) == len(rates.times) == 4


@pytest.mark.requirement("PIP-66")
def test_bars_begin_at_zero_and_stand_behind_one_another() -> None:
    chart = failures(report([row(redelivered=3, expired=2), row("other")], [at(0)]))
    assert chart is not None
    assert [name for name, _, _ in chart.rows] == ["q"], "the other has none"
    first, second = chart.rows[0][2]
    assert first.x == NAMES == chart.across[0].at
    assert second.x == pytest.approx(first.x + first.width, abs=0.2)
    assert [mark.text for mark in (first, second)] == ["delivered again: 3", "expired: 2"]
    assert chart.legend == [("delivered again", 0), ("expired", 2)]


@pytest.mark.requirement("PIP-66")
@pytest.mark.parametrize("total", [0.0, 0.004, 1.0, 10.0, 86_400_000.0])
def test_latencies_are_points_within_a_logarithmic_axis(total: float) -> None:
    chart = latency(report([row(total=total), row("waits")], [at(0)]))
    assert chart is not None
    ((_, _, marks),) = chart.rows
    assert all(chart.across[0].at <= mark.x <= chart.across[-1].at for mark in marks)
    assert len(chart.across) >= 2


@pytest.mark.requirement("PIP-66")
def test_without_data_there_is_no_chart() -> None:
    told = report([row()], [at(0)])
    assert [make(told) for make in (throughput, backlog, latency, failures)] == [None] * 4


@pytest.mark.requirement("PIP-66")
def test_only_the_addresses_with_the_most_messages_are_drawn() -> None:
    names = [f"q{number}" for number in range(SHOWN + 5)]
    told = report(
        [row(name, 1.0, redelivered=1) for name in names],
        [at(0, name, backlog=1) for name in names],
    )
    waiting, times, failed = backlog(told), latency(told), failures(told)
    assert waiting is not None
    assert times is not None
    assert failed is not None
    assert len(waiting.lines) == len(times.rows) == len(failed.rows) == SHOWN
