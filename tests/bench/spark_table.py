"""The figures of the benchmark of the pipeline, and their table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LOOP: Final = "proton"
"""Name of the row of a plain loop, to which others are compared."""

NOTHING: Final = "-"


@dataclass(frozen=True)
class Aim:
    """The goal of a row.

    It is a number of rows/s, a multiple of the plain loop's rate, or seconds: for each 10⁶ rows, or
    for all of the row.
    """

    per_second: float | None = None
    times_loop: float | None = None
    seconds_a_million: float | None = None
    seconds: float | None = None

    def texts(self) -> list[str]:
        """Return each goal in words."""
        told = []
        if self.per_second is not None:
            told.append(f"≥ {self.per_second:,.0f} rows/s")
        if self.times_loop is not None:
            told.append(f"≥ {self.times_loop:g} x the loop")
        if self.seconds_a_million is not None:
            told.append(f"≤ {self.seconds_a_million:g} s for 10⁶")
        if self.seconds is not None:
            told.append(f"≤ {self.seconds:g} s")
        return told

    def reached(self, figure: "Figure", loop: "Figure | None") -> bool | None:
        """Return whether the figure reaches every goal.

        None means that too few rows were measured to decide, or that there is no loop to compare
        with.
        """
        if figure.problem:
            return False
        judged: list[bool | None] = []
        if self.per_second is not None:
            judged.append(figure.per_second >= self.per_second)
        if self.times_loop is not None:
            times = times_of(figure, loop)
            judged.append(None if times is None else times >= self.times_loop)
        if self.seconds_a_million is not None:
            scaled = figure.seconds * A_MILLION / figure.rows if figure.rows else 0.0
            judged.append(scaled <= self.seconds_a_million if figure.rows >= A_MILLION else None)
        if self.seconds is not None:
            judged.append(figure.seconds <= self.seconds)
        if False in judged:
            return False
        return True if judged and None not in judged else None


A_MILLION: Final = 1_000_000
NO_AIM: Final = Aim()


@dataclass(frozen=True)
class Measured:
    """The number of rows that were processed, and how long that took.

    `cpu_seconds` is the processor time of a row that is a command of its own.
    """

    rows: int
    seconds: float
    batch_seconds: float | None = None
    cpu_seconds: float | None = None


@dataclass(frozen=True)
class Figure:
    """The result of one row.

    `seconds` is all of its time, as a user waits for it; `batch_seconds` the time that a stream
    spent in its batches, without its start and its end. `is_of_messages` if it reads messages, as
    the plain loop does. `cpu_seconds` is the processor time of a row that is a command of its own.
    """

    row: str
    title: str
    rows: int
    seconds: float
    batch_seconds: float | None = None
    problem: str = ""
    aim: Aim = NO_AIM
    is_of_messages: bool = True
    cpu_seconds: float | None = None

    @property
    def per_second(self) -> float:
        return self.rows / self.seconds if self.seconds > 0 else 0.0

    @property
    def batch_per_second(self) -> float | None:
        if not self.batch_seconds:
            return None
        return self.rows / self.batch_seconds


def times_of(figure: Figure, loop: Figure | None) -> float | None:
    """Return how many times as fast as the loop the row is; None if it cannot be compared."""
    if not figure.is_of_messages or loop is None or loop.problem or loop.per_second == 0:
        return None
    return figure.per_second / loop.per_second


def rounded(value: float) -> str:
    """Return a rate with at least three leading digits, no more than the measurement justifies."""
    if value >= 10_000:
        return f"{round(value, -3 if value >= 100_000 else -2):,.0f}"
    return f"{value:,.0f}"


def line(figure: Figure) -> str:
    """Return one row in one line, as progress."""
    if figure.problem:
        return f"{figure.row}: !! {figure.problem}"
    told = f"{figure.row}: {figure.rows:,} rows in {figure.seconds:.2f} s, "
    if figure.cpu_seconds is not None:
        told += f"{figure.cpu_seconds:.2f} s of processor time, "
    told += f"{rounded(figure.per_second)} rows/s"
    inside = figure.batch_per_second
    return told if inside is None else f"{told} ({rounded(inside)} in its batches)"


def table(figures: Sequence[Figure]) -> str:
    """Return a Markdown table with a row for each figure."""
    loop = next((each for each in figures if each.row == LOOP), None)
    head = [
        "row",
        "what",
        "rows",
        "s",
        "CPU s",
        "rows/s",
        "in its batches",
        "x loop",
        "aim",
        "reached",
    ]
    lines = [head, ["---"] * len(head), *(_cells(each, loop) for each in figures)]
    return "\n".join("| " + " | ".join(each) + " |" for each in lines)


def _cells(figure: Figure, loop: Figure | None) -> list[str]:
    times = times_of(figure, loop)
    inside = figure.batch_per_second
    reached = figure.aim.reached(figure, loop) if figure.aim.texts() else None
    is_good = not figure.problem
    return [
        f"`{figure.row}`",
        figure.title + (f" !! {figure.problem}" if figure.problem else ""),
        f"{figure.rows:,}",
        f"{figure.seconds:.2f}",
        NOTHING if figure.cpu_seconds is None else f"{figure.cpu_seconds:.2f}",
        rounded(figure.per_second) if is_good else NOTHING,
        rounded(inside) if is_good and inside is not None else NOTHING,
        f"{times:.1f}" if is_good and times is not None else NOTHING,
        ", ".join(figure.aim.texts()) or NOTHING,
        NOTHING if reached is None else "yes" if reached else "**no**",
    ]
