"""The progress of a run on standard error: a bar on a terminal, else a line from time to time."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .harness import Result
from .verdict import Verdict

LINE_S: Final = 10.0
"""Seconds between two lines of progress where there is no terminal."""


class Watcher(ABC):
    """The reader of a run's progress."""

    @abstractmethod
    def judged(self, result: Result) -> None:
        """Note the result of a case."""

    @abstractmethod
    def said(self, words: str) -> None:
        """Tell at once what happened to the broker."""


class Silent(Watcher):
    """A watcher that prints nothing."""

    def judged(self, result: Result) -> None:
        """Note nothing."""

    def said(self, words: str) -> None:
        """Tell nothing."""


class ProgressBar(Watcher):
    """A bar on a terminal."""

    def __init__(self, progress: Progress, count: int) -> None:
        self._progress: Final = progress
        self._task: Final = progress.add_task("", total=count)

    def judged(self, result: Result) -> None:
        clause = f"{result.case.source} {result.case.clause}"
        self._progress.update(self._task, advance=1, description=clause)

    def said(self, words: str) -> None:
        self._progress.console.print(words, markup=False, highlight=False)


class ProgressLines(Watcher):
    """A line every `interval_s` seconds, for the log of a build."""

    def __init__(self, out: IO[str], count: int, interval_s: float = LINE_S) -> None:
        self._out: Final = out
        self._count: Final = count
        self._interval_s: Final = interval_s
        self._verdicts: Final[Counter[Verdict]] = Counter()
        self._printed_at = time.monotonic()

    def judged(self, result: Result) -> None:
        self._verdicts[result.verdict] += 1
        now = time.monotonic()
        if now - self._printed_at < self._interval_s:
            return
        self._printed_at = now
        told = ", ".join(f"{number} {each.value}" for each, number in self._verdicts.items())
        done = self._verdicts.total()
        self.said(f"{done} of {self._count} cases: {told}; last {result.case.name}")

    def said(self, words: str) -> None:
        print(words, file=self._out, flush=True)


@contextmanager
def watching(count: int) -> Iterator[Watcher]:
    """Yield the watcher of a run of `count` cases that suits standard error."""
    if not sys.stderr.isatty():
        yield ProgressLines(sys.stderr, count)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        yield ProgressBar(progress, count)
