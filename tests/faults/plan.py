"""What one run of a fault is asked for, and what it reports."""

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
    """How often, from which seed, against which broker. `step` is told of each cycle."""

    place: Place
    cycles: int
    seed: int = 1
    step: Callable[[], None] = lambda: None

    def address(self, name: str) -> str:
        """An address of this run's own: a store that is a server's has been used before."""
        return name if self.place.is_sqlite else f"faults-{os.getpid()}-{self.seed}.{name}"


@dataclass
class Report:
    """What came out: verdicts and figures to be printed; problems, of which there must be none."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def add(self, what: str, verdict: Verdict, *, recorder: Recorder, plan: Plan) -> None:
        """A history's verdict, and what is wrong in it; such a history is kept."""
        if not verdict.holds:
            recorder.write(plan.place.folder / "history.jsonl")
        self.lines.append(f"{what}: {verdict.line()}")
        self.problems += [f"{what}: {problem}" for problem in verdict.problems()]

    def check(self, holds: bool, problem: str) -> None:
        """Note a problem unless it holds."""
        if not holds:
            self.problems.append(problem)


Fault = Callable[[Plan], Coroutine[None, None, "Report"]]


class Impossible(Exception):  # noqa: N818 - why a fault cannot be had here
    """The fault cannot be injected on this machine or store."""


NOTHING: Final = "none"


def spread(values: Iterable[float]) -> str:
    """The middle and the largest."""
    known = list(values)
    if not known:
        return NOTHING
    return f"p50 {statistics.median(known):.0f} max {max(known):.0f}"
