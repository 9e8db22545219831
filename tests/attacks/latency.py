"""Latencies of requests, corrected for requests that a stalled client could not send."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

NOTHING: Final = "-"


@dataclass(frozen=True)
class Sample:
    """A request: its start, in seconds of the machine's monotonic clock, and its duration."""

    began_s: float
    took_ms: float


@dataclass(frozen=True)
class Latency:
    """Percentiles of requests in ms; without any request all three are infinite."""

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float

    def text(self) -> str:
        """Return p50 / p99 / max for the table, or "-" if there were no requests."""
        if not self.count:
            return NOTHING
        return f"{rounded(self.p50_ms)} / {rounded(self.p99_ms)} / {rounded(self.max_ms)}"


def rounded(value: float) -> str:
    """Return a figure as text, with one decimal place if it is below 100."""
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def latency(samples: Iterable[Sample], *, every_ms: float) -> Latency:
    """Summarize the requests of a client that makes one each `every_ms` if it can.

    A request that takes a second delays those that the client would have made meanwhile: they are
    added, each with the rest of that second (correction for coordinated omission).
    """
    measured = [sample.took_ms for sample in samples]
    ordered = sorted(measured + [late for took in measured for late in held_up(took, every_ms)])
    if not ordered:
        return Latency(0, float("inf"), float("inf"), float("inf"))
    return Latency(
        len(measured), percentile(ordered, 50), percentile(ordered, 99), percentile(ordered, 100)
    )


def held_up(took_ms: float, every_ms: float) -> list[float]:
    """Return the latencies of the requests that one of `took_ms` delayed."""
    count = max(0, ceil(took_ms / every_ms) - 1)
    return [took_ms - every_ms * number for number in range(1, count + 1)]


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the value that `percent` of the ascending `ordered` do not exceed (nearest rank)."""
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]
