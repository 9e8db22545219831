"""The counts of a process of the load, and what it reports of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from broker.cli.load.latencies import Latencies

if TYPE_CHECKING:
    from broker.cli.load.plan import Role

SCHEDULER: Final = Path("/proc/self/schedstat")
"""Linux's figures of this process: nanoseconds on a processor, and waiting for one."""


@dataclass(kw_only=True)
class LoadCounts:
    """The messages of some clients since the last sample.

    `refused` are those that the broker did not accept, `unsent` those that were due before the end
    and for which the broker gave no credit. `latencies` are those of received messages. `delays`
    are the times by which the load itself sent messages too late.
    """

    sent: int = 0
    accepted: int = 0
    refused: int = 0
    unsent: int = 0
    received: int = 0

    def __post_init__(self) -> None:
        self.latencies = Latencies()
        self.delays = Latencies()

    def __bool__(self) -> bool:
        return bool(self.sent or self.accepted or self.refused or self.received)

    def taken(self) -> LoadCounts:
        """Return the counts, and set these to 0."""
        counts = replace(self)
        counts.latencies, counts.delays = self.latencies, self.delays
        self.sent = self.accepted = self.refused = self.unsent = self.received = 0
        self.latencies, self.delays = Latencies(), Latencies()
        return counts

    def merge(self, other: LoadCounts) -> None:
        """Add all of `other`."""
        self.sent += other.sent
        self.accepted += other.accepted
        self.refused += other.refused
        self.unsent += other.unsent
        self.received += other.received
        self.latencies.merge(other.latencies)
        self.delays.merge(other.delays)


@dataclass(frozen=True, kw_only=True)
class LoadSample:
    """The counts of a process until `until_ns` of the monotonic clock, since its last sample.

    `busy_ns` is the time in which the process was on a processor or was ready and waited for one.
    """

    process: int
    role: Role
    until_ns: int
    counts: LoadCounts
    busy_ns: int


@final
class Busy:
    """The time in which this process wanted a processor."""

    def __init__(self) -> None:
        self._before_ns = _busy_ns()

    def since_last_ns(self) -> int:
        """Return the nanoseconds since the last call, or since the creation of this object."""
        before_ns, self._before_ns = self._before_ns, _busy_ns()
        return self._before_ns - before_ns


def _busy_ns() -> int:
    try:
        running_ns, waiting_ns, _ = SCHEDULER.read_text().split()
    except OSError:  # not Linux: the time on a processor alone
        return time.process_time_ns()
    return int(running_ns) + int(waiting_ns)
