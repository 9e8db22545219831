"""Rows of durable messages: accepted means on disk, so the disk's work is reported, too."""

from typing import Final

from tests.bench.client import Client
from tests.bench.effort import Meter
from tests.bench.flow import through
from tests.bench.work import Run, Site, problems_of

SIZE: Final = 1024
SMALL_SIZE: Final = 100
QUEUES: Final = 40
MIDDLE_SIZE: Final = 100_000
LARGE_SIZE: Final = 1_000_000
FIXED_RATE: Final = 2_000
SLOWED_MS: Final = 5.0
SLOWED_SHARE: Final = 3  # divides the number of messages of other rows: peers take their time


def keeping_up(site: Site, *, count: int, size: int, queues: int = 1) -> Run:
    return through(site, kind="queue", count=count, size=size, links=1, nodes=queues, durable=True)


def durable(site: Site) -> Run:
    return keeping_up(site, count=site.scale.durable, size=SIZE)


def durable_small(site: Site) -> Run:
    return keeping_up(site, count=site.scale.durable_small, size=SMALL_SIZE)


def durable_many(site: Site) -> Run:
    return keeping_up(site, count=site.scale.durable, size=SIZE, queues=QUEUES)


def durable_100k(site: Site) -> Run:
    return keeping_up(site, count=site.scale.durable * SIZE // MIDDLE_SIZE * 4, size=MIDDLE_SIZE)


def durable_1m(site: Site) -> Run:
    return keeping_up(site, count=site.scale.durable * SIZE // LARGE_SIZE * 4, size=LARGE_SIZE)


def durable_fixed(site: Site) -> Run:
    count = FIXED_RATE * site.scale.fixed_seconds
    return through(
        site, kind="queue", count=count, size=SIZE, links=1, rate=FIXED_RATE, durable=True
    )


def filled_and_drained(site: Site, *, count: int) -> Run:
    """Run a producer alone; when it has ended, a consumer alone."""
    address = site.new_address("queue")

    def started(role: str) -> Client:
        return site.client.start(
            role, site.server.peer, address, count=count, size=SIZE, durable=1, capability="queue"
        )

    meter = Meter(site.server)
    with started("send") as sender:
        sent = sender.finish()
    filling = meter.effort()
    held_mib = site.server.rss_mib()
    meter = Meter(site.server)
    with started("receive") as receiver:
        got = receiver.finish()
    draining = meter.effort()
    seconds = max(sent.seconds + got.seconds, 1e-6)
    figures = {
        "per_second": sent.per_second,
        "cpu_us": filling.cpu_seconds * 1e6 / count,
        "drain_per_second": got.per_second,
        "drain_cpu_us": draining.cpu_seconds * 1e6 / count,
        "rss_mib": held_mib,
        "others_percent": (filling + draining).others_percent(
            seconds, sent.cpu_seconds + got.cpu_seconds
        ),
    }
    figures |= filling.on_disk(count)
    figures |= {f"drain_{key}": value for key, value in draining.on_disk(count).items()}
    return Run(figures, problems_of(sent, got, expected=count))


def durable_fill(site: Site) -> Run:
    return filled_and_drained(site, count=site.scale.durable)


def slow_disk(site: Site) -> Run:
    """Measure keeping up, and a producer alone, while every sync takes 5 ms longer."""
    count = site.scale.durable // SLOWED_SHARE
    with site.server.syncs.slowed(SLOWED_MS):
        run = keeping_up(site, count=count, size=SIZE)
        alone = filled_and_drained(site, count=count)
    run.figures["fill_per_second"] = alone.figures["per_second"]
    run.figures["fill_syncs_per_1000"] = alone.figures["syncs_per_1000"]
    run.problems += alone.problems
    return run
