"""The parameters of one run of a fault, and its report."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Final

from tests.faults.checkers import Verdict
from tests.faults.history import Recorder
from tests.faults.server import Place


@dataclass(frozen=True)
class Plan:
    """A run's number of cycles, seed and broker. `step` is called after each cycle."""

    place: Place
    cycles: int
    seed: int = 1
    step: Callable[[], None] = lambda: None

    def address(self, name: str) -> str:
        """Return an address for this run only: a server's store was used by other runs before."""
        return name if self.place.is_sqlite else f"faults-{os.getpid()}-{self.seed}.{name}"


@dataclass
class Report:
    """The results of a run: lines to print, and problems, of which there must be none."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, what: str, verdict: Verdict, *, recorder: Recorder, plan: Plan) -> None:
        """Add a history's verdict and problems; write a history with problems to a file."""
        if not verdict.holds:
            recorder.write(plan.place.folder / "history.jsonl")
        self.lines.append(f"{what}: {verdict.line()}")
        self.problems += [f"{what}: {problem}" for problem in verdict.problems()]

    def check(self, holds: bool, problem: str) -> None:
        """Record `problem` unless `holds`."""
        if not holds:
            self.problems.append(problem)


Fault = Callable[[Plan], Coroutine[None, None, "Report"]]


class Impossible(Exception):  # noqa: N818 - says why there is no fault
    """The fault cannot be injected on this machine or store."""


NOTHING: Final = "none"


def spread(values: Iterable[float]) -> str:
    """Return the median and the maximum as text, NOTHING for no values."""
    known = list(values)
    if not known:
        return NOTHING
    return f"p50 {statistics.median(known):.0f} max {max(known):.0f}"
