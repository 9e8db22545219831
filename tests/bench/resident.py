"""Rows about a broker that was just started: its memory, and the start itself."""

import time
from typing import Final

from tests.bench.flow import fixed, large, small, topic
from tests.bench.work import Run, Site

SETTLE_SECONDS: Final = 2.0  # before memory is read, for memory that is freed late


def start(site: Site) -> Run:
    """Return what the start took, and the resident memory after it."""
    time.sleep(SETTLE_SECONDS)
    figures = {
        "start_ms": site.server.ready_seconds * 1e3,
        "start_cpu_ms": site.server.ready_cpu_seconds * 1e3,
        "rest_mib": site.server.rss_mib(),
    }
    return Run(figures)


def memory(site: Site) -> Run:
    """Measure resident memory of a fresh broker, and of it after the four works of load."""
    time.sleep(SETTLE_SECONDS)
    figures = {"rest_mib": site.server.rss_mib()}
    problems: list[str] = []
    for load in (small, large, topic, fixed):
        problems += load(site).problems
    time.sleep(SETTLE_SECONDS)
    figures["after_mib"] = site.server.rss_mib()
    return Run(figures, problems)


def idle(site: Site) -> Run:
    """Measure the memory of one connection with one session that does nothing."""
    count = max(int(site.server.idle_connections * site.scale.idle_share), 1)
    time.sleep(SETTLE_SECONDS)
    before = site.server.rss_mib()
    with site.client.start_idle(site.server.peer, count) as connections:
        connections.await_attached()
        time.sleep(SETTLE_SECONDS)
        grown = site.server.rss_mib() - before
        held = connections.finish()
    figures = {
        "kib_each": grown * 1024 / count,
        "connections": count,
        "rest_mib": before,
        "opened_per_second": count / max(held.seconds, 1e-3),
    }
    problems = [f"{held.lost} connections lost"] if held.lost else []
    return Run(figures, problems + ([held.complaint] if held.complaint else []))
