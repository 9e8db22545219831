"""The result of a load: rates, latencies, and whether the load itself was the limit."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from broker.cli.load.counts import LoadCounts
from broker.cli.load.latencies import Latencies
from broker.cli.load.plan import SECOND_NS, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker.cli.load.counts import LoadSample
    from broker.cli.load.plan import LoadPlan

BUSY_LIMIT: Final = 0.9
"""The share of the time from which a process that wants a processor is the limit of the load."""

PERCENTILES: Final = {"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9, "max": 100}


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """The result of a load. Counts are of the whole run, rates of the time that was measured.

    `lost` is the number of accepted messages that no receiver got, `unsent` that of messages which
    were due and had no credit. `latency_ms` are percentiles of all messages received after the
    warm-up. A latency counts from the sending of a message, or from the time at which the message
    was due if the broker made it wait. `delay_ms` are the times by which the load itself sent
    messages too late. `busy` is the share of the time in which the busiest process of a role was on
    a processor, or waited for one. Percentiles are None if there are no values.
    """

    pattern: str
    address: str
    senders: int
    receivers: int
    size: int
    rate: float | None
    measured_s: float
    sent: int
    accepted: int
    refused: int
    unsent: int
    received: int
    lost: int
    sent_rate: float
    received_rate: float
    latency_ms: Mapping[str, float | None]
    delay_ms: Mapping[str, float | None]
    busy: Mapping[str, float]

    @property
    def limits(self) -> list[str]:
        """Return the roles whose processes could not do more."""
        return [role for role, share in self.busy.items() if share >= BUSY_LIMIT]


@dataclass(frozen=True, kw_only=True)
class Second:
    """The figures of one second, counted from 1; those of the warm-up are not `measured`."""

    second: int
    measured: bool
    sent: int
    accepted: int
    refused: int
    received: int
    p50_ms: float | None
    p99_ms: float | None
    max_ms: float | None


@final
class LoadTimeline:
    """The samples of all processes, by the second in which each of them ended."""

    def __init__(self, plan: LoadPlan, start_ns: int) -> None:
        self._plan: Final = plan
        self._start_ns: Final = start_ns
        self._warm_ns: Final = start_ns + round(plan.warm_up_s * SECOND_NS)
        self._end_ns = self._warm_ns + round(plan.duration_s * SECOND_NS)
        self._seconds: Final[defaultdict[int, LoadCounts]] = defaultdict(LoadCounts)
        self._total: Final = LoadCounts()
        self._measured: Final = LoadCounts()
        self._latencies: Final = Latencies()
        """Latencies of messages received after the warm-up, however late."""
        self._busy_ns: Final[defaultdict[tuple[Role, int], int]] = defaultdict(int)

    def add(self, sample: LoadSample) -> None:
        """Add what a process did until now. A reply is no message of its own."""
        counts = sample.counts
        if sample.role is Role.RESPONDER:
            counts = LoadCounts(refused=counts.refused)
        self._total.merge(counts)
        self._seconds[max(0, sample.until_ns - self._start_ns - 1) // SECOND_NS].merge(counts)
        if self._warm_ns < sample.until_ns <= self._end_ns:
            self._measured.merge(counts)
            self._busy_ns[sample.role, sample.process] += sample.busy_ns
        if self._warm_ns < sample.until_ns:
            self._latencies.merge(counts.latencies)

    def end_at(self, now_ns: int) -> None:
        """End the measured time before its planned end."""
        self._end_ns = min(self._end_ns, max(now_ns, self._warm_ns))

    @property
    def received(self) -> int:
        return self._total.received

    @property
    def expected(self) -> int:
        """Return how many messages the receivers get if none is lost."""
        return self._total.accepted * self._plan.copies

    def seconds(self) -> Iterator[Second]:
        """Yield the figures of each second."""
        for index in range(max(self._seconds, default=-1) + 1):
            counts = self._seconds[index]
            shown = _percentiles_ms(counts.latencies)
            yield Second(
                second=index + 1,
                measured=self._warm_ns
                <= self._start_ns + index * SECOND_NS
                <= self._end_ns - SECOND_NS,
                sent=counts.sent,
                accepted=counts.accepted,
                refused=counts.refused,
                received=counts.received,
                p50_ms=shown["p50"],
                p99_ms=shown["p99"],
                max_ms=shown["max"],
            )

    def received_in_second(self, elapsed_s: float) -> int:
        """Return the messages received in the last whole second, `elapsed_s` after the start."""
        return self._seconds[max(0, int(elapsed_s) - 1)].received

    def report(self) -> LoadReport:
        """Return the result."""
        plan, total = self._plan, self._total
        measured_s = (self._end_ns - self._warm_ns) / SECOND_NS
        busy: dict[str, float] = {}
        for (role, _), busy_ns in self._busy_ns.items():
            share = round(busy_ns / SECOND_NS / measured_s, 3) if measured_s else 0.0
            busy[role.value] = max(share, busy.get(role.value, 0.0))
        return LoadReport(
            pattern=plan.pattern.value,
            address=plan.address,
            senders=plan.senders,
            receivers=plan.receivers,
            size=plan.size,
            rate=plan.rate,
            measured_s=round(measured_s, 3),
            sent=total.sent,
            accepted=total.accepted,
            refused=total.refused,
            unsent=total.unsent,
            received=total.received,
            lost=max(0, self.expected - total.received),
            sent_rate=_rate(self._measured.sent, measured_s),
            received_rate=_rate(self._measured.received, measured_s),
            latency_ms=_percentiles_ms(self._latencies),
            delay_ms=_percentiles_ms(self._measured.delays),
            busy=busy,
        )


def _rate(count: int, elapsed_s: float) -> float:
    return round(count / elapsed_s, 1) if elapsed_s else 0.0


def _percentiles_ms(latencies: Latencies) -> dict[str, float | None]:
    found = {name: latencies.percentile_ns(percent) for name, percent in PERCENTILES.items()}
    return {name: None if ns is None else round(ns / 1e6, 3) for name, ns in found.items()}
