"""Figures as text: a line per run, and the table for the README."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.bench.work import Measure, Run, Work

NOTHING: Final = "-"
ARTEMIS: Final = "artemis-"
"""Begins the name of that broker, to which some marks are relative."""
ALSO: Final = (
    ("per_second", "{:,.0f} msg/s"),
    ("beside_per_second", "{:,.0f} msg/s beside a slow consumer"),
    ("ratio_percent", "{:.0f} %"),
    ("cpu_us", "CPU {:.3f} µs/msg"),
    ("settling_us", "of it {:.3f} µs for settling"),
    ("client_cpu_us", "clients' CPU {:.2f} µs/msg"),
    ("p50_us", "p50 {:,.0f} µs"),
    ("p99_us", "p99 {:,.0f} µs"),
    ("p999_us", "p99.9 {:,.0f} µs"),
    ("syncs_per_1000", "{:.2f} syncs per 1,000 messages"),
    ("written_per_message", "{:,.0f} B written per message"),
    ("drain_per_second", "drained {:,.0f} msg/s"),
    ("drain_cpu_us", "at {:.2f} µs/msg"),
    ("drain_syncs_per_1000", "with {:.2f} syncs per 1,000"),
    ("drain_written_per_message", "{:,.0f} B written per message drained"),
    ("fill_per_second", "producer alone {:,.0f} msg/s"),
    ("fill_syncs_per_1000", "with {:.2f} syncs per 1,000"),
    ("rss_mib", "RSS {:.1f} MiB"),
    ("others_percent", "others took {:.0f} % of a core"),
    ("bytes_per_message", "{:.0f} B more per message held"),
    ("start_ms", "ready after {:,.0f} ms"),
    ("start_cpu_ms", "CPU until then {:,.0f} ms"),
    ("rest_mib", "RSS at rest {:.1f} MiB"),
    ("after_mib", "after {:.1f} MiB"),
    ("kib_each", "{:.1f} KiB a connection"),
    ("connections", "{:,.0f} connections"),
    ("opened_per_second", "opened at {:,.0f}/s"),
    ("handshake_ms", "CPU {:.2f} ms a handshake"),
    ("p99_ratio", "p99 {:.2f} times as long beside them"),
    ("beside_p99_us", "p99 beside them {:,.0f} µs"),
    ("knocks_per_second", "they came at {:,.0f}/s"),
    ("knock_p99_us", "their own p99 {:,.0f} µs"),
    ("plain_us", "{:.1f} µs/decision"),
    ("wildcard_us", "{:.0f} µs with wildcards"),
    ("slowest_ms", "{:.2f} ms at most"),
    ("tangled_ms", "{:.2f} ms by tangled rules"),
    ("attach_us", "{:.1f} µs/attach"),
    ("attach_without_us", "{:.1f} µs without rules"),
    ("checked", "{:,.0f} of them with a password check"),
    ("unanswered", "{:,.0f} without an answer in time"),
)


@dataclass
class Series:
    """All counted runs of one work on one broker."""

    work: Work
    broker: str
    manner: str
    runs: list[Run] = field(default_factory=list)

    @property
    def best(self) -> Run:
        """Return the run that is best by the row's first figure; its other figures go with it.

        If the row is about a ratio of two rates, either of which would favour one side, return the
        run with the median ratio.
        """
        if self.work.median_of:
            ranked = sorted(self.runs, key=lambda run: run.figures[self.work.median_of])
            return ranked[(len(ranked) - 1) // 2]
        ranking = self.work.measures[0]
        sign = 1 if ranking.more_is_better else -1
        return max(self.runs, key=lambda run: sign * run.figures[ranking.key])

    def cell(self, measure: Measure) -> str:
        """Return the best run's figure, with the range over all runs if there are several."""
        if measure.key not in self.best.figures:
            return NOTHING
        values = sorted(run.figures[measure.key] for run in self.runs)
        best = shown(self.best.figures[measure.key], measure)
        if len(values) == 1:
            return best
        return f"{best} ({shown(values[0], measure)} to {shown(values[-1], measure)})"


def shown(value: float, measure: Measure) -> str:
    """Return the value with at least three leading digits, no more than are significant."""
    if value >= 10_000:
        return f"{round(value, -3 if value >= 100_000 else -2):,.0f}"
    return f"{value:,.{measure.digits}f}"


def run_line(series: Series, number: str, run: Run) -> str:
    """Return one run in one line, with everything that was measured."""
    parts = [text.format(run.figures[key]) for key, text in ALSO if key in run.figures]
    trouble = "".join(f" !! {problem}" for problem in run.problems)
    head = f"{series.work.name:7} {series.broker} ({series.manner}) {number}: "
    return head + " · ".join(parts) + trouble


def reach_of(measure: Measure) -> str:
    if measure.times_artemis is not None:
        return f"≥ {measure.times_artemis:g} x Artemis"
    if measure.reach is None:
        return NOTHING
    return ("≥ " if measure.more_is_better else "≤ ") + shown(measure.reach, measure)


def verdict(series: Series, measure: Measure, artemis: Sequence[Series] = ()) -> str:
    """Return whether the best run reaches the mark, in words; NOTHING if that is not known.

    `artemis` has the runs of Artemis, for a mark that is relative to them.
    """
    value, reach = series.best.figures[measure.key], measure.reach
    if measure.times_artemis is not None:
        beside = next((each for each in artemis if each.work is series.work and each.runs), None)
        reach = None if beside is None else measure.times_artemis * beside.best.figures[measure.key]
    if reach is None:
        return NOTHING
    reached = value >= reach if measure.more_is_better else value <= reach
    return "yes" if reached else "**no**"


def table(ours: Sequence[Series], theirs: Mapping[str, Sequence[Series]]) -> str:
    """Return a Markdown table: a row per figure, with a column for every other broker."""
    lines = [["work", "figure", "reach", ours[0].broker, "reached", *theirs]]
    lines.append(["---"] * len(lines[0]))
    artemis = [each for name, all_ in theirs.items() if name.startswith(ARTEMIS) for each in all_]
    for series in ours:
        for measure in series.work.measures:
            title = series.work.title if measure is series.work.measures[0] else ""
            row = [title, measure.unit, reach_of(measure), series.cell(measure)]
            row.append(verdict(series, measure, artemis))
            row += [cell_beside(series, others, measure) for others in theirs.values()]
            lines.append(row)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell_beside(ours: Series, others: Sequence[Series], measure: Measure) -> str:
    """Return the figure of another broker for the same work, NOTHING if it did not do that."""
    cells = (series.cell(measure) for series in others if series.work is ours.work and series.runs)
    return next(cells, NOTHING)


def problems(all_series: Sequence[Series]) -> list[str]:
    """Return all problems, to be printed again at the end, where they cannot be missed."""
    return [
        f"{series.work.name} on {series.broker}: {problem}"
        for series in all_series
        for run in series.runs
        for problem in run.problems
    ]
