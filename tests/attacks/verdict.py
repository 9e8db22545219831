"""The verdict on an attack: its bounds, the checks, and the table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tests.attacks.latency import Latency
from tests.attacks.plan import Attack, Reached

ALLOWANCE_MIB: Final = 128.0
"""Resident MiB in addition to memory_max: the program, the allocator's reserves, sockets."""

P99_MAX_MS: Final = {"request": 100.0, "login": 1000.0, "tls": 1000.0, "http": 1000.0}
"""Maximum p99 of a healthy client's requests during the attack, by kind, compiled."""

INTERPRETED_FACTOR: Final = 20.0
"""Factor of those latencies for an interpreted broker, which is slower by as much."""

COLUMNS: Final = (
    *("attack", "store", "RSS before", "peak", "after", "p50 / p99 / max, ms: at rest"),
    *("during", "reached", "verdict"),
)


@dataclass(frozen=True)
class Resident:
    """Resident memory of the broker in MiB: before, at its peak, and after a quiet time."""

    before_mib: float
    peak_mib: float
    after_mib: float


@dataclass(frozen=True)
class Healthy:
    """Latencies of a healthy client before, during and after the attack, and its errors."""

    at_rest: Latency
    during: Latency
    afterwards: Latency
    errors: list[str] = field(default_factory=list)


@dataclass
class Result:
    """All measurements of one attack on one store; `broken` are problems of the run itself."""

    name: str
    attack: Attack
    store: str
    is_compiled: bool = True
    memory_max_mib: float = 0.0
    resident: Resident | None = None
    healthy: dict[str, Healthy] = field(default_factory=dict)
    reached: Reached = field(default_factory=Reached)
    broken: list[str] = field(default_factory=list)
    skipped: str = ""

    def problems(self) -> list[str]:
        """Return a text about each broken promise, except those about time."""
        found = [*self.broken, *self.reached.problems]
        found += memory_problems(self.resident, self.memory_max_mib)
        found += growth_problems(self.resident, self.attack)
        for kind, healthy in self.healthy.items():
            found += service_problems(kind, healthy)
        return found + told_problems(self.attack, self.reached)

    def delays(self) -> list[str]:
        """Return a text about each exceeded latency; none if all producers have to wait."""
        if self.store in self.attack.waits_on:
            return []
        factor = 1.0 if self.is_compiled else INTERPRETED_FACTOR
        return [
            f"healthy {kind}: p99 {healthy.during.p99_ms:,.0f} ms,"
            f" {P99_MAX_MS[kind] * factor:,.0f} are allowed"
            for kind, healthy in self.healthy.items()
            if healthy.during.p99_ms > P99_MAX_MS[kind] * factor
        ]

    def verdict(self) -> str:
        """Return `ok`, the reason for skipping, or the broken promises."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        found = self.problems() + self.delays()
        return "failed: " + "; ".join(found) if found else "ok"

    def is_failed(self) -> bool:
        return self.verdict().startswith("failed")

    def cells(self) -> list[str]:
        """Return the lines of the table: one per kind of healthy client, at least one."""
        rss = self.resident
        memory = (
            [f"{value:,.0f}" for value in (rss.before_mib, rss.peak_mib, rss.after_mib)]
            if rss
            else ["-"] * 3
        )
        kinds = list(self.healthy) or [""]
        lines = []
        for kind in kinds:
            is_first = kind == kinds[0]
            seen = self.healthy.get(kind)
            latencies = [seen.at_rest.text(), seen.during.text()] if seen else ["-", "-"]
            first = [self.name, self.store, *memory] if is_first else [f"· {kind}", "", "", "", ""]
            last = [self.reached.text(), self.verdict()] if is_first else ["", ""]
            lines.append("| " + " | ".join([*first, *latencies, *last]) + " |")
        return lines


def memory_problems(resident: Resident | None, memory_max_mib: float) -> list[str]:
    """Check the peak."""
    most = memory_max_mib + ALLOWANCE_MIB
    if resident is None or resident.peak_mib <= most:
        return []
    allowed = f"memory_max {memory_max_mib:,.0f} and {ALLOWANCE_MIB:.0f} beside it"
    return [f"RSS reached {resident.peak_mib:,.0f} MiB, where {allowed} are allowed"]


def growth_problems(resident: Resident | None, attack: Attack) -> list[str]:
    """Check the growth at the peak and after the quiet time, if an attack has bounds for them."""
    if resident is None:
        return []
    found = []
    for when, reached_mib, most in (
        ("meanwhile", resident.peak_mib, attack.peak_mib),
        ("for good", resident.after_mib, attack.grown_mib),
    ):
        grown_mib = reached_mib - resident.before_mib
        if 0 < most < grown_mib:
            found.append(f"RSS grew by {grown_mib:,.1f} MiB {when}, {most:,.0f} are allowed")
    return found


def service_problems(kind: str, healthy: Healthy) -> list[str]:
    """Check that a healthy client was served without an error, and to the end."""
    found = [f"healthy {kind}: {error}" for error in healthy.errors[:1]]
    if len(healthy.errors) > 1:
        found[0] += f" (and {len(healthy.errors) - 1} errors more)"
    if not healthy.afterwards.count:
        found.append(f"healthy {kind}: not one after the attack")
    return found


def told_problems(attack: Attack, reached: Reached) -> list[str]:
    """Check that the attackers received the answer that the documents promise."""
    if attack.condition and not reached.told[attack.condition]:
        return [f"the attackers were not told {attack.condition}"]
    said = reached.words.get(attack.condition, "")
    if attack.naming and attack.naming not in said:
        return [f"{attack.condition} does not name {attack.naming}: {said!r}"]
    return []


def table(results: Iterable[Result]) -> str:
    """Return all results as a table in Markdown."""
    head = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    return "\n".join([*head, *[line for result in results for line in result.cells()]])
