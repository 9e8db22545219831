"""Rows about clients that a broker does not know: what they cost it, and the others beside them."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.client import Outcome
from tests.bench.effort import Meter
from tests.bench.flow import fixed
from tests.bench.resident import SETTLE_SECONDS
from tests.bench.server import AMQPS, LOGINS
from tests.bench.work import Run, Site

IDLE: Final = 2_000
HANDSHAKES: Final = 1_000
HANDSHAKES_PER_SECOND: Final = 500
UNHURRIED_PER_SECOND: Final = 100
BAD_LOGINS_PER_SECOND: Final = 1_000
SOURCES: Final = 50
MANY_SOURCES: Final = 10_000
"""Enough that no address fails ten times a minute, from where on it would be put off."""

PAIRS: Final = 2
LONGEST_SECONDS: Final = 60
SHARE_MIN: Final = 0.9
"""Share of the wanted rate that must have been there, else the row says nothing."""


@dataclass(frozen=True)
class Knocking:
    """Short connections at a rate: `what` they do, and to which kind of listener.

    A login need not get its answer: the broker checks few passwords at a time.
    """

    what: str
    listener: str
    rate: int
    sources: int
    must_end: bool = True

    def problems_of(self, seen: Outcome) -> list[str]:
        """Return why the connections were not those that the row is about."""
        found = [seen.complaint] if seen.complaint else []
        begun = seen.count + seen.failed + seen.unanswered
        if seen.per_second < SHARE_MIN * self.rate:
            found.append(f"{seen.per_second:.0f} {self.what}/s, not {self.rate}")
        if begun - seen.failed < SHARE_MIN * begun:
            found.append(f"{seen.failed} {self.what} of {begun} failed")
        if self.must_end and begun - seen.unanswered < SHARE_MIN * begun:
            found.append(f"{seen.unanswered} {self.what} of {begun} without an end in time")
        return found


def growth(calm: Sequence[float], beside: Sequence[float]) -> float:
    """Return the geometric mean of the ratios of figures beside something and without it."""
    logarithms = [math.log(b / c) for c, b in zip(calm, beside, strict=True)]
    return math.exp(sum(logarithms) / len(logarithms))


def tls_idle(site: Site) -> Run:
    """Measure the memory of an idle connection over TLS, then the CPU of a handshake."""
    peer, server = site.server.peer_over(AMQPS), site.server
    count = max(int(IDLE * site.scale.idle_share), 1)
    time.sleep(SETTLE_SECONDS)
    before = server.rss_mib()
    with site.client.start_idle(peer, count, tls=True) as connections:
        connections.await_attached()
        time.sleep(SETTLE_SECONDS)
        grown = server.rss_mib() - before
        held = connections.finish()
    time.sleep(SETTLE_SECONDS)
    handshakes = Knocking("handshakes", AMQPS, UNHURRIED_PER_SECOND, SOURCES)
    meter = Meter(server)
    wanted = max(int(HANDSHAKES * site.scale.idle_share), 1)
    with site.client.start_knocking(
        handshakes.what, peer, count=wanted, rate=handshakes.rate, sources=SOURCES
    ) as client:
        seen = client.await_end()
    figures = {
        "kib_each": grown * 1024 / count,
        "handshake_ms": meter.effort().cpu_seconds * 1e3 / max(seen.count, 1),
        "connections": count,
        "rest_mib": before,
        "opened_per_second": count / max(held.seconds, 1e-3),
    }
    problems = [f"{held.lost} connections lost"] if held.lost else []
    problems += [held.complaint] if held.complaint else []
    return Run(figures, problems + handshakes.problems_of(seen))


def handshakes(site: Site) -> Run:
    """Measure the latency of others beside TLS handshakes."""
    return beside(site, Knocking("handshakes", AMQPS, HANDSHAKES_PER_SECOND, SOURCES))


def bad_logins(site: Site) -> Run:
    """Measure the latency of others beside logins with a wrong password."""
    logins = Knocking("logins", LOGINS, BAD_LOGINS_PER_SECOND, MANY_SOURCES, must_end=False)
    return beside(site, logins)


def beside(site: Site, knocking: Knocking) -> Run:
    """Run the row `fixed` without and with `knocking` beside it, twice in turn."""
    calm, disturbed = [], []
    seen: list[Outcome] = []
    problems: list[str] = []
    for _ in range(PAIRS):
        calm.append(fixed(site))
        with site.client.start_knocking(
            knocking.what,
            site.server.peer_over(knocking.listener),
            count=knocking.rate * LONGEST_SECONDS,
            rate=knocking.rate,
            sources=knocking.sources,
        ) as client:
            client.await_attached()
            disturbed.append(fixed(site))
            seen.append(client.finish())
    for run in (*calm, *disturbed):
        problems += run.problems
    for outcome in seen:
        problems += knocking.problems_of(outcome)
    without = [run.figures["p99_us"] for run in calm]
    beside_them = [run.figures["p99_us"] for run in disturbed]
    figures = {
        "p99_ratio": growth(without, beside_them),
        "p99_us": sum(without) / PAIRS,
        "beside_p99_us": sum(beside_them) / PAIRS,
        "knocks_per_second": sum(each.per_second for each in seen) / PAIRS,
        "knock_p99_us": max(each.p99 for each in seen),
        "checked": sum(each.checked for each in seen),
        "unanswered": sum(each.unanswered for each in seen),
        "rss_mib": site.server.rss_mib(),
    }
    return Run(figures, problems)
