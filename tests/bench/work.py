"""The rows of the table as data, and the result of one run of a row."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.bench.client import LoadClient, Outcome
from tests.bench.server import AMQP, Server


@dataclass(frozen=True)
class Scale:
    """The amount of work per run."""

    messages: int
    large_messages: int
    fanned_out: int
    to_topics: int
    transacted: int
    relayed: int
    fixed_seconds: int
    filled: int
    durable: int
    durable_small: int
    jms_warm_seconds: float
    jms_seconds: float
    idle_share: float  # of a broker's number of idle connections


FULL: Final = Scale(
    messages=1_000_000,
    large_messages=500_000,
    fanned_out=200_000,
    to_topics=100_000,
    transacted=200_000,
    relayed=500_000,
    fixed_seconds=10,
    filled=500_000,
    durable=300_000,
    durable_small=500_000,
    jms_warm_seconds=4.0,
    jms_seconds=6.0,
    idle_share=1.0,
)
QUICK: Final = Scale(
    messages=200_000,
    large_messages=100_000,
    fanned_out=30_000,
    to_topics=20_000,
    transacted=40_000,
    relayed=100_000,
    fixed_seconds=2,
    filled=100_000,
    durable=60_000,
    durable_small=100_000,
    jms_warm_seconds=2.0,
    jms_seconds=2.0,
    idle_share=0.1,
)


@dataclass(frozen=True)
class Measure:
    """One figure of a row. `reach` is the mark, None if there is none.

    A mark may also be relative: `times_artemis` as much as Artemis in the same run of the table.
    """

    key: str
    unit: str
    reach: float | None
    digits: int = 0
    more_is_better: bool = False
    times_artemis: float | None = None


@dataclass
class Run:
    """The figures of one run, by key, and the problems that occurred in it."""

    figures: dict[str, float]
    problems: list[str] = field(default_factory=list)


class Site:
    """One broker with the client to load it; gives every run an unused address."""

    def __init__(self, client: LoadClient, server: Server | None, scale: Scale) -> None:
        self.client = client
        self.scale = scale
        self._server = server
        self._numbers: Iterator[int] = itertools.count(1)

    @property
    def server(self) -> Server:
        assert self._server is not None, "this work needs no broker"
        return self._server

    def new_address(self, kind: str) -> str:
        return f"{kind}-bench-{time.time_ns():x}-{next(self._numbers)}"


@dataclass(frozen=True)
class Work:
    """A row: a name for `--only`, a title for the table, its figures, and the run itself."""

    name: str
    title: str
    measures: tuple[Measure, ...]
    run: Callable[[Site], Run]
    fresh: bool = False  # every run needs a broker just started
    listener: str = AMQP  # the kind of listener that it needs
    topics: bool = False  # subscribers attach to a topic before its publisher
    ours: bool = False  # says nothing about other brokers
    alone: bool = False  # needs no broker process at all: ours only
    median_of: str = ""  # show the run that is the median in this figure, not the best one


def problems_of(sent: Outcome, got: Outcome, *, expected: int) -> list[str]:
    """Return what a correct broker never shows: refusals, losses, a changed order."""
    found = []
    if sent.not_accepted:
        found.append(f"{sent.not_accepted} messages not accepted")
    if got.count != expected:
        found.append(f"{got.count} of {expected} messages received")
    if got.disordered:
        found.append(f"{got.disordered} messages out of order")
    if got.early:
        found.append(f"{got.early} messages before their time")
    found += [text for text in (sent.complaint, got.complaint) if text]
    return found
