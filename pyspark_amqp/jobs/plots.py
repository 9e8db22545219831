"""The plots of a report: four in one SVG, drawn by matplotlib."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pyspark_amqp.jobs.report import Report

SHOWN: Final = 6
"""Maximum addresses that have a colour of their own: those with the most messages."""

SETTINGS: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "jms-broker",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}

Curve = dict[datetime, float]


def draw(report: Report) -> str:
    """Return the SVG's text, which is the same for the same report."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(SETTINGS):  # type: ignore[arg-type]
        figure = Figure(figsize=(10, 6.5), layout="constrained")
        FigureCanvasSVG(figure)
        (left, right), (below, beside) = figure.subplots(2, 2)
        names = [str(row["address"]) for row in report.addresses[:SHOWN]]
        _draw_throughput(left, report)
        _draw_backlog(right, report, names)
        _draw_latency(below, report, names)
        _draw_redeliveries(beside, report, names)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def series(report: Report, column: str, address: str | None = None) -> Curve:
    """Return the sum of a column by step, at one address or at all (None); 0 without events."""
    step = timedelta(seconds=report.span.step)
    found: Curve = {}
    for row in report.points:
        if address is None or row["address"] == address:
            found[row["at"]] = found.get(row["at"], 0) + row[column]
    if not found:
        return {}
    at, end = min(found), max(found)
    return {
        moment: found.get(moment, 0)
        for moment in (at + step * number for number in range((end - at) // step + 1))
    }


def levels(report: Report, address: str, until: datetime) -> Curve:
    """Return the backlog of one address until `until`; it does not change without events."""
    found = {row["at"]: row["backlog"] for row in report.points if row["address"] == address}
    if found and max(found) < until:
        found[until] = found[max(found)]
    return found


def _draw_throughput(axes: Axes, report: Report) -> None:
    for column in ("enqueued", "given", "accepted"):
        curve = series(report, column)
        rates = [value / report.span.step for value in curve.values()]
        axes.plot(list(curve), rates, label=column, linewidth=1.2)  # type: ignore[arg-type]
    axes.set_title("Throughput, messages/s")
    axes.legend()
    _dates(axes)


def _draw_backlog(axes: Axes, report: Report, names: list[str]) -> None:
    until = max(row["at"] for row in report.points)
    for name in names:
        curve = levels(report, name, until)
        axes.step(
            list(curve),  # type: ignore[arg-type]
            list(curve.values()),
            where="post",
            label=_short(name),
            linewidth=1.2,
        )
    axes.set_title("Backlog, messages")
    axes.set_ylim(bottom=0)
    axes.legend()
    _dates(axes)


def _draw_latency(axes: Axes, report: Report, names: list[str]) -> None:
    shares = ("p50", "p90", "p99")
    for index, share in enumerate(shares):
        values = [max(row[f"total_{share}"] or 0, 0.001) for row in report.addresses[: len(names)]]
        places = [number + (index - 1) * 0.25 for number in range(len(names))]
        axes.bar(places, values, width=0.25, label=share)
    axes.set_yscale("log")
    axes.set_title("From enqueued to accepted, ms")
    axes.set_xticks(range(len(names)), [_short(name) for name in names])
    axes.legend()


def _draw_redeliveries(axes: Axes, report: Report, names: list[str]) -> None:
    rows = report.addresses[: len(names)]
    places = list(range(len(names)))
    bottom = [0.0] * len(names)
    for column, label in (("redelivered", "given again"), ("deadlettered", "dead letters")):
        values = [float(row[column] or 0) for row in rows]
        axes.bar(places, values, width=0.5, bottom=bottom, label=label)
        bottom = [low + value for low, value in zip(bottom, values, strict=True)]
    axes.set_title("Deliveries that failed")
    axes.set_xticks(places, [_short(name) for name in names])
    axes.legend()


def _dates(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=6)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(formatter)


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"
