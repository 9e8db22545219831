"""Samples of the queues whose pages are looked at: what their charts show."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, final

from broker.links.container import Container

QUEUES_MAX: Final = 64
"""Maximum queues of which samples are taken; the one whose page was opened longest ago is left."""


@dataclass(frozen=True, kw_only=True)
class QueueSample:
    """The ready messages of a queue, and those received since its creation, at one time in ms."""

    at_ms: int
    ready: int
    published: int


@dataclass(frozen=True, kw_only=True)
class QueueRate:
    """The messages per second that a queue has received before a time, and its ready ones then."""

    ago_s: int
    ready: int
    received: float


@final
class QueueSamples:
    """The last `kept` samples of some queues."""

    def __init__(self, container: Container, kept: int) -> None:
        self._container: Final = container
        self._kept: Final = kept
        self._queues: Final[OrderedDict[str, deque[QueueSample]]] = OrderedDict()

    def clear(self) -> None:
        """Forget all queues."""
        self._queues.clear()

    def watch(self, address: str) -> None:
        """Take samples of a queue from now on."""
        if address not in self._queues:
            self._queues[address] = deque(maxlen=self._kept)
            self._take(address)
        if address in self._queues:
            self._queues.move_to_end(address)
        if len(self._queues) > QUEUES_MAX:
            self._queues.popitem(last=False)

    def sample(self) -> None:
        """Take a sample of each queue that is looked at; forget those that are gone."""
        for address in list(self._queues):
            self._take(address)

    def _take(self, address: str) -> None:
        queue = self._container.router.queues.get(address)
        if queue is None:
            del self._queues[address]
            return
        self._queues[address].append(
            QueueSample(
                at_ms=int(self._container.clock.now_ms()),
                ready=int(queue.backlogs.waiting),
                published=int(queue.published),
            )
        )

    def rates(self, address: str) -> Sequence[QueueRate]:
        """Return what the chart of a queue shows, the oldest first."""
        samples = list(self._queues.get(address, ()))
        return [
            QueueRate(
                ago_s=(samples[-1].at_ms - after.at_ms) // 1000,
                ready=after.ready,
                received=1000
                * max(0, after.published - before.published)
                / max(1, after.at_ms - before.at_ms),
            )
            for before, after in pairwise(samples)
        ]
