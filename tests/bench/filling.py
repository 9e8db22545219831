"""Rows in which queues are filled."""

from dataclasses import dataclass, field
from typing import Final

from tests.bench.client import Outcome
from tests.bench.effort import Effort, Meter
from tests.bench.work import Run, Site, problems_of

FILL_PAIRS: Final = 2
SLOW_RATE: Final = 100
SLOW_COUNT_MAX: Final = 100_000


@dataclass
class Filling:
    """The messages, time and cost of filling queues as fast as the broker accepts."""

    messages: int = 0
    seconds: float = 0.0
    client_cpu_seconds: float = 0.0
    effort: Effort = field(default_factory=Effort)

    @property
    def per_second(self) -> float:
        return self.messages / max(self.seconds, 1e-6)

    def fill(self, site: Site, address: str) -> Outcome:
        """Fill one queue more; return the sender's own report."""
        server, count = site.server, site.scale.filled
        meter = Meter(server)
        with site.client.start(
            "send", server.peer, address, count=count, size=100, capability="queue"
        ) as sender:
            sent = sender.finish()
        self.effort += meter.effort()
        self.client_cpu_seconds += sent.cpu_seconds
        self.messages += sent.count
        self.seconds += sent.seconds
        return sent


def emptied(site: Site, address: str, sent: Outcome, *, taken: int) -> list[str]:
    """Receive all messages of the queue that were not `taken` before; return problems found."""
    expected = max(sent.count - taken, 1)
    with site.client.start(
        *("receive", site.server.peer, address),
        count=expected,
        size=100,
        capability="queue",
        timeout=10,
    ) as receiver:
        return problems_of(sent, receiver.finish(), expected=expected)


def fill_beside(site: Site, filling: Filling) -> tuple[int, list[str]]:
    """Fill a queue beside a consumer of 100 messages/s; return how many it took, and problems."""
    address = site.new_address("queue")
    slow_options: dict[str, float | str] = {"rate": SLOW_RATE, "credit": SLOW_RATE, "hold": 1}
    slow_options |= {"size": 100, "capability": "queue", "timeout": 300}
    with site.client.start(
        "receive", site.server.peer, address, count=SLOW_COUNT_MAX, **slow_options
    ) as slow:
        slow.await_attached()
        sent = filling.fill(site, address)
        taken = slow.finish().count
    return taken, emptied(site, address, sent, taken=taken)


def fill(site: Site) -> Run:
    """Fill queues with a producer alone, then beside a slow consumer (100/s); twice, in turn."""
    alone, beside = Filling(), Filling()
    problems: list[str] = []
    held_bytes, rss_mib, slowly = 0.0, 0.0, 0
    for _ in range(FILL_PAIRS):
        address = site.new_address("queue")
        rss_before = site.server.rss_mib()
        sent = alone.fill(site, address)
        rss_mib = site.server.rss_mib()
        held_bytes = max(held_bytes, (rss_mib - rss_before) * 2**20 / sent.count)
        problems += emptied(site, address, sent, taken=0)
        taken, wrong = fill_beside(site, beside)
        slowly += taken
        problems += wrong
    client_cpu_seconds = alone.client_cpu_seconds + beside.client_cpu_seconds
    figures = {
        "per_second": alone.per_second,
        "beside_per_second": beside.per_second,
        "ratio_percent": 100 * beside.per_second / alone.per_second,
        "cpu_us": alone.effort.cpu_seconds * 1e6 / alone.messages,
        "cpu_beside_us": beside.effort.cpu_seconds * 1e6 / beside.messages,
        "others_percent": (alone.effort + beside.effort).others_percent(
            alone.seconds + beside.seconds, client_cpu_seconds
        ),
        "rss_mib": rss_mib,
        "bytes_per_message": held_bytes,
        "slow_consumer_took": slowly,
    }
    return Run(figures, problems)
