"""The numbers of the last ten minutes, one sample for all viewers, and their curves."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, final

from broker.http.console.queue_samples import QueueSamples
from broker.links.container import Container
from broker.stats import Histogram

EVERY_S: Final = 5
"""Seconds between two samples."""

KEPT: Final = 121
"""Samples that are kept: ten minutes."""

WIDTH: Final = 600
HEIGHT: Final = 120
"""The size of a chart, in units of its picture."""

RECENT: Final = 12
"""Rates of the line in a tile: one minute."""

SPARK_WIDTH: Final = 120
SPARK_HEIGHT: Final = 24
"""The size of such a line."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Counters at one time, in ms of the broker's clock."""

    at_ms: int
    published: int
    delivered: int
    acknowledged: int
    dead_lettered: int
    connections: int


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Messages per second between two samples."""

    ago_s: int
    received: float
    delivered: float
    acknowledged: float
    connections: int


@final
class Sampler:
    """Takes samples, a few integers each, from the first request to the console on."""

    def __init__(self, container: Container) -> None:
        self._container: Final = container
        self._samples: Final[deque[Sample]] = deque(maxlen=KEPT)
        self.queues: Final = QueueSamples(container, KEPT)
        self._timer: asyncio.TimerHandle | None = None
        self._wanted_until_s = 0.0

    def wanted(self) -> None:
        """Note a request: take samples for ten minutes, if none are taken now."""
        self._wanted_until_s = asyncio.get_running_loop().time() + KEPT * EVERY_S
        if self._timer is None:
            self._samples.clear()
            self.queues.clear()
            self._go_on()

    def _go_on(self) -> None:
        """Take a sample now, and one in every EVERY_S seconds while the console is used."""
        loop = asyncio.get_running_loop()
        self.sample()
        is_wanted = loop.time() < self._wanted_until_s and not self._container.closing
        self._timer = loop.call_later(EVERY_S, self._go_on) if is_wanted else None

    def sample(self) -> None:
        """Take a sample of the broker, and of the queues that are looked at."""
        self.queues.sample()
        container = self._container
        stats = container.stats
        self._samples.append(
            Sample(
                at_ms=int(container.clock.now_ms()),
                published=int(stats.published),
                delivered=int(stats.delivered),
                acknowledged=int(stats.acknowledged),
                dead_lettered=int(stats.dead_lettered),
                connections=int(container.peer_count()),
            )
        )

    def rates(self) -> list[Rates]:
        """Return the rates between samples, the oldest first."""
        samples = list(self._samples)
        return [
            Rates(
                ago_s=(samples[-1].at_ms - after.at_ms) // 1000,
                received=_per_second(after.published - before.published, before, after),
                delivered=_per_second(after.delivered - before.delivered, before, after),
                acknowledged=_per_second(after.acknowledged - before.acknowledged, before, after),
                connections=after.connections,
            )
            for before, after in pairwise(samples)
        ]

    def dead_lettered(self) -> int:
        """Return the number of dead letters since the first sample that is kept."""
        since = self._samples[0].dead_lettered if self._samples else 0
        return int(self._container.stats.dead_lettered) - since

    def commit_p99_ms(self) -> float | None:
        """Return an upper bound of the time of 99 % of all commits, in ms; None without any."""
        return quantile_ms(self._container.stats.measured.commit_us, 0.99)


def _per_second(count: int, before: Sample, after: Sample) -> float:
    return 1000 * count / max(1, after.at_ms - before.at_ms)


def quantile_ms(histogram: Histogram, share: float) -> float | None:
    """Return the bound of the bucket, in ms, with which `share` of all values is reached."""
    counts = histogram.counts
    total = sum(counts)
    if total == 0:
        return None
    seen, bound = 0, int(histogram.least)
    for count in counts:
        seen += count
        if seen >= share * total:
            break
        bound <<= 1
    return bound / 1000


def curve(values: Sequence[float], highest: float) -> str:
    """Return the points of a curve in a picture of WIDTH by HEIGHT, the newest at the right."""
    step = WIDTH / (KEPT - 2)
    first = KEPT - 1 - len(values)
    scale = HEIGHT / highest if highest > 0 else 0.0
    return " ".join(
        f"{(first + at) * step:.1f},{HEIGHT - value * scale:.1f}" for at, value in enumerate(values)
    )


def spark(values: Sequence[float]) -> str:
    """Return the points of the line in a tile: the values of the last minute; empty without two."""
    recent = values[-RECENT:]
    if len(recent) < 2:
        return ""
    step, highest = SPARK_WIDTH / (RECENT - 1), max(1.0, *recent)
    first = RECENT - len(recent)
    return " ".join(
        f"{(first + at) * step:.1f},{SPARK_HEIGHT - value * SPARK_HEIGHT / highest:.1f}"
        for at, value in enumerate(recent)
    )
