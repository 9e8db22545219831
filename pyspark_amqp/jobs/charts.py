"""The charts of a report: where lines, points, bars and ticks are in an image of SVG.

A chart without data is None, so that no empty one is drawn. Lines and bars begin at zero; latencies
are points on a logarithmic axis, which has no zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from pyspark_amqp.jobs.quantities import duration, moment, number, short_number

if TYPE_CHECKING:
    from pyspark_amqp.jobs.report import Report

SHOWN: Final = 8
"""Maximum addresses in a chart: those with the most messages."""

WIDTH: Final = 560
LEFT: Final = 52
"""Pixels of an image, and of its axis with texts. Names of addresses take NAMES."""

NAMES: Final = 150
TOP: Final = 10
BOTTOM: Final = 26
HEIGHT: Final = 230
RIGHT: Final = 14
ROW: Final = 26
"""Pixels of an address in a chart with a row for each."""

TICKS: Final = 5

SHARES: Final = ("p50", "p90", "p99", "max")

FAILURES: Final = {
    "redelivered": "delivered again",
    "deadlettered": "dead-lettered",
    "expired": "expired",
}

TIME_STEPS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600)
"""Seconds between two ticks of an axis of time; beyond, whole days."""


@dataclass(frozen=True)
class Tick:
    """A tick of an axis, at that pixel."""

    at: float
    text: str


@dataclass(frozen=True)
class Line:
    """A line by its name, its number among the colours, its path, and its texts at each time."""

    name: str
    colour: int
    path: str
    texts: list[str]


@dataclass(frozen=True)
class TimeChart:
    """A chart of lines over time. `places` are the pixels of the `times`."""

    title: str
    height: int
    across: list[Tick]
    up: list[Tick]
    lines: list[Line]
    places: list[float]
    times: list[str]


@dataclass(frozen=True)
class Mark:
    """A point or a bar of an address: its pixels, its number among the colours, its text."""

    x: float
    width: float
    colour: int
    text: str


@dataclass(frozen=True)
class RowChart:
    """A chart with a row for each address, of points or of bars."""

    title: str
    height: int
    is_of_bars: bool
    across: list[Tick]
    rows: list[tuple[str, float, list[Mark]]]
    legend: list[tuple[str, int]]


def throughput(report: Report) -> TimeChart | None:
    """Return the messages per second that were enqueued, delivered and accepted."""
    step = report.span.step
    times = _times(report)
    curves = {}
    for column, name in (
        ("enqueued", "enqueued"),
        ("given", "delivered"),
        ("accepted", "accepted"),
    ):
        sums = dict.fromkeys(times, 0.0)
        for row in report.points:
            sums[row["at"]] += row[column] / step
        curves[name] = list(sums.values())
    return _time_chart("Throughput, messages per second", report, times, curves)


def backlog(report: Report) -> TimeChart | None:
    """Return the messages that wait or are being processed, by address."""
    times = _times(report)
    curves = {}
    for address in _shown(report):
        known = {row["at"]: row["backlog"] for row in report.points if row["address"] == address}
        level, levels = 0.0, []
        for at in times:
            level = known.get(at, level)
            levels.append(level)
        curves[address] = levels
    return _time_chart("Backlog, messages", report, times, curves)


def latency(report: Report) -> RowChart | None:
    """Return the time from enqueued to accepted, as points of each address on a log axis."""
    found = {
        row["address"]: [row[f"total_{share}"] for share in SHARES]
        for row in report.addresses[:SHOWN]
        if row["total_p50"] is not None
    }
    if not found:
        return None
    # a time of 0 is shown as 1 µs, the precision of the event log
    least = max(min(values[0] for values in found.values()), 0.001)
    low = math.floor(math.log10(least))
    most = max(values[-1] for values in found.values())
    high = max(math.ceil(math.log10(max(most, least))), low + 1)

    def place(ms: float) -> float:
        return _across((math.log10(max(ms, 0.001)) - low) / (high - low), NAMES)

    rows = [
        [
            Mark(place(ms), 0, index, f"{share}: {duration(ms)}")
            for index, (share, ms) in enumerate(zip(SHARES, values, strict=True))
        ]
        for values in found.values()
    ]
    ticks = [Tick(place(10.0**each), duration(10.0**each)) for each in range(low, high + 1)]
    return _row_chart(
        "From enqueued to accepted (logarithmic)",
        list(found),
        rows,
        ticks,
        SHARES,
        is_of_bars=False,
    )


def failures(report: Report) -> RowChart | None:
    """Return the deliveries that failed, as bars of each address from zero on."""
    found = {
        row["address"]: [row[column] or 0 for column in FAILURES]
        for row in report.addresses
        if any(row[column] for column in FAILURES)
    }
    found = dict(list(found.items())[:SHOWN])
    if not found:
        return None
    values = steps(max(map(sum, found.values())))
    rows = []
    for counts in found.values():
        below, marks = 0, []
        for colour, (name, count) in enumerate(zip(FAILURES.values(), counts, strict=True)):
            begin, end = (_across(each / values[-1], NAMES) for each in (below, below + count))
            if count:
                marks.append(Mark(begin, end - begin, colour, f"{name}: {number(count)}"))
            below += count
        rows.append(marks)
    ticks = [Tick(_across(each / values[-1], NAMES), short_number(each)) for each in values]
    return _row_chart(
        "Messages that did not go through at once",
        list(found),
        rows,
        ticks,
        tuple(FAILURES.values()),
        is_of_bars=True,
    )


# -- places


def steps(most: float) -> list[float]:
    """Return the values of the ticks of an axis from zero to `most` or a little more."""
    rough = most / TICKS or 1
    power = 10.0 ** math.floor(math.log10(rough))
    size = next(power * each for each in (1, 2, 5, 10) if power * each >= rough)
    return [size * each for each in range(math.ceil(most / size or 1) + 1)]


def _across(share: float, left: int) -> float:
    return round(left + share * (WIDTH - left - RIGHT), 1)


def _shown(report: Report) -> list[str]:
    return [str(row["address"]) for row in report.addresses[:SHOWN]]


def _times(report: Report) -> list[datetime]:
    """Return the begins of all steps, from the first event to the last."""
    step = timedelta(seconds=report.span.step)
    first = min(row["at"] for row in report.points)
    last = max(row["at"] for row in report.points)
    return [first + step * count for count in range((last - first) // step + 1)]


def _time_chart(
    title: str, report: Report, times: Sequence[datetime], curves: dict[str, list[float]]
) -> TimeChart | None:
    """Return a chart of the curves that are not zero all the time."""
    curves = {name: values for name, values in curves.items() if any(values)}
    if not curves:
        return None
    # one step alone is drawn as a level
    last = times[-1] + timedelta(seconds=report.span.step)
    begin, span = times[0], last - times[0]
    ups = steps(max(map(max, curves.values())))

    def up(value: float) -> float:
        return round(HEIGHT - BOTTOM - value / ups[-1] * (HEIGHT - BOTTOM - TOP), 1)

    places = [_across((at - begin) / span, LEFT) for at in [*times, last]]
    lines = []
    for colour, (name, values) in enumerate(curves.items()):
        corners = (
            f"{place},{up(value)} {behind},{up(value)}"
            for place, behind, value in zip(places, places[1:], values, strict=False)
        )
        lines.append(Line(name, colour, " ".join(corners), [number(each) for each in values]))
    return TimeChart(
        title,
        HEIGHT,
        [Tick(_across((at - begin) / span, LEFT), moment(at, span)) for at in _clock(begin, last)],
        [Tick(up(value), short_number(value)) for value in ups],
        lines,
        places[:-1],
        [f"{at:%Y-%m-%d %H:%M:%S}" for at in times],
    )


def _clock(begin: datetime, end: datetime) -> Iterable[datetime]:
    """Yield round times between two times, six at most."""
    seconds = (end - begin) / timedelta(seconds=1)
    step = next((each for each in TIME_STEPS if seconds / each <= TICKS), 0)
    step = step or 86_400 * math.ceil(seconds / TICKS / 86_400)
    at = begin.timestamp() // step * step
    while at <= end.timestamp():
        if at >= begin.timestamp():
            yield datetime.fromtimestamp(at, begin.tzinfo)
        at += step


def _row_chart(
    title: str,
    names: list[str],
    marks: list[list[Mark]],
    across: list[Tick],
    legend: tuple[str, ...],
    *,
    is_of_bars: bool,
) -> RowChart:
    rows = [
        (name, TOP + ROW * (index + 0.5), found)
        for index, (name, found) in enumerate(zip(names, marks, strict=True))
    ]
    height = TOP + ROW * len(names) + BOTTOM
    used = {mark.colour for found in marks for mark in found}
    shown = [(name, colour) for colour, name in enumerate(legend) if colour in used]
    return RowChart(title, height, is_of_bars, across, rows, shown)


CHARTS: Final[tuple[Callable[[Report], TimeChart | RowChart | None], ...]] = (
    throughput,
    backlog,
    latency,
    failures,
)
