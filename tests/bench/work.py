"""What the rows of the table run, and what is read off it."""

import itertools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.bench.client import LoadClient, Outcome
from tests.bench.machine import busy_seconds
from tests.bench.places import SOURCES, BenchError
from tests.bench.server import Server

SETTLE_SECONDS: Final = 2.0  # before memory is read: what is freed late is freed by then
IN_PROCESS_SECONDS: Final = 120
FILL_PAIRS: Final = 2
SLOW_RATE: Final = 100
SLOW_COUNT_MAX: Final = 100_000
FIXED_RATE: Final = 10_000
TOPICS: Final = 100
SUBSCRIBERS: Final = 10
SCHEDULED_AHEAD_MS: Final = 1000
PER_COMMIT: Final = 100
CONSUMERS: Final = 10
DURABLE: Final = 2  # unsettled-state


@dataclass(frozen=True)
class Scale:
    """How much is done per run."""

    messages: int
    large_messages: int
    fanned_out: int
    to_topics: int
    transacted: int
    fixed_seconds: int
    filled: int
    idle_share: float  # of a broker's number of idle connections


FULL: Final = Scale(
    messages=1_000_000,
    large_messages=500_000,
    fanned_out=200_000,
    to_topics=100_000,
    transacted=200_000,
    fixed_seconds=10,
    filled=500_000,
    idle_share=1.0,
)
QUICK: Final = Scale(
    messages=200_000,
    large_messages=100_000,
    fanned_out=30_000,
    to_topics=20_000,
    transacted=40_000,
    fixed_seconds=2,
    filled=100_000,
    idle_share=0.1,
)


@dataclass(frozen=True)
class Measure:
    """One figure of a row. `reach` is the mark; None where there is none."""

    key: str
    unit: str
    reach: float | None
    digits: int = 0
    more_is_better: bool = False


@dataclass
class Run:
    """The figures of one run, by key, and what went wrong in it."""

    figures: dict[str, float]
    problems: list[str] = field(default_factory=list)


class Site:
    """One broker with the client to load it; hands out an unused address for every run."""

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
    alone: bool = False  # needs no broker process at all: ours only
    median_of: str = ""  # show the run that is the median in this figure, not the best one


def problems_of(sent: Outcome, got: Outcome, *, expected: int) -> list[str]:
    """What a correct broker never shows: refusals, losses, a changed order."""
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


def through(
    site: Site,
    *,
    kind: str,
    count: int,
    size: int,
    links: int,
    rate: int = 0,
    nodes: int = 1,
    delay: int = 0,
    commit: int = 0,
    shared: bool = False,
) -> Run:
    """`count` messages: to each of the nodes a sender, and `links` receivers attached before.

    Each is due `delay` ms after its sending; latency counts from then. Both ends commit every
    `commit` messages. Receivers get all messages each, or `shared` every message once.
    """
    server, client, address = site.server, site.client, site.new_address(kind)
    role = "receive" if links == 1 else "fanout"
    options: dict[str, float | str] = {"size": size, "capability": kind, "spread": nodes}
    options |= {"commit": commit}
    receiving = options | (sharing(kind, address) if shared else {})
    each = count // nodes
    with client.start(
        role, server.peer, address, count=each, links=links * nodes, **receiving
    ) as receiver:
        receiver.await_attached()
        cpu_before, busy_before = server.cpu_seconds(), busy_seconds()
        options |= {"rate": rate, "delay": delay}
        with client.start(
            "send", server.peer, address, count=each, links=nodes, **options
        ) as sender:
            sent = sender.finish()
        got = receiver.finish()
    cpu_seconds = server.cpu_seconds() - cpu_before
    others = busy_seconds() - busy_before - cpu_seconds - sent.cpu_seconds - got.cpu_seconds
    seconds = max(got.last_ns - sent.first_ns, 1) / 1e9
    figures = {
        "per_second": count / seconds,
        "cpu_us": cpu_seconds * 1e6 / count,
        "rss_mib": server.rss_mib(),
        "p50_us": got.p50,
        "p99_us": got.p99,
        "p999_us": got.p999,
        "client_cpu_us": (sent.cpu_seconds + got.cpu_seconds) * 1e6 / count,
        "seconds": seconds,
        "others_percent": max(100 * others / seconds, 0),
    }
    expected = count if shared else count * links
    return Run(figures, problems_of(sent, got, expected=expected))


def sharing(kind: str, address: str) -> dict[str, float | str]:
    """Options of receivers of which each message goes to one: of a queue or of a subscription."""
    if kind == "queue":
        return {"shared": 1}
    subscription = {"capability": "topic,shared,global", "name": f"{address}|global"}
    return {"shared": 1, "durability": DURABLE, **subscription}


def small(site: Site) -> Run:
    return through(site, kind="queue", count=site.scale.messages, size=100, links=1)


def large(site: Site) -> Run:
    return through(site, kind="queue", count=site.scale.large_messages, size=1024, links=1)


def topic(site: Site) -> Run:
    return through(site, kind="topic", count=site.scale.fanned_out, size=100, links=10)


def topics(site: Site) -> Run:
    count = site.scale.to_topics
    return through(site, kind="topic", count=count, size=100, links=SUBSCRIBERS, nodes=TOPICS)


def fixed(site: Site) -> Run:
    count = FIXED_RATE * site.scale.fixed_seconds
    return through(site, kind="queue", count=count, size=100, links=1, rate=FIXED_RATE)


def scheduled(site: Site) -> Run:
    count = FIXED_RATE * site.scale.fixed_seconds
    return through(
        site,
        kind="queue",
        count=count,
        size=100,
        links=1,
        rate=FIXED_RATE,
        delay=SCHEDULED_AHEAD_MS,
    )


def transacted(site: Site) -> Run:
    count = site.scale.transacted
    return through(site, kind="queue", count=count, size=100, links=1, commit=PER_COMMIT)


def competing(site: Site) -> Run:
    count = site.scale.messages
    return through(site, kind="queue", count=count, size=100, links=CONSUMERS, shared=True)


def shared(site: Site) -> Run:
    count = site.scale.messages
    return through(site, kind="topic", count=count, size=100, links=CONSUMERS, shared=True)


@dataclass
class Filling:
    """Queues filled as fast as the broker takes it: how much, how long, and at what cost."""

    messages: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    others_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        return self.messages / max(self.seconds, 1e-6)

    def fill(self, site: Site, address: str) -> Outcome:
        """Send into one queue more; the sender's own account of it."""
        server, count = site.server, site.scale.filled
        cpu_before, busy_before = server.cpu_seconds(), busy_seconds()
        with site.client.start(
            "send", server.peer, address, count=count, size=100, capability="queue"
        ) as sender:
            sent = sender.finish()
        spent = server.cpu_seconds() - cpu_before
        self.cpu_seconds += spent
        self.others_seconds += busy_seconds() - busy_before - spent - sent.cpu_seconds
        self.messages += sent.count
        self.seconds += sent.seconds
        return sent


def emptied(site: Site, address: str, sent: Outcome, *, taken: int) -> list[str]:
    """Take everything off the queue but what was `taken` before; what is wrong with it."""
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
    """Fill a queue of which a consumer takes 100 messages/s; how many it took, and problems."""
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
    """A producer alone, then one beside a consumer that takes 100 messages/s; twice, in turn."""
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
    others = alone.others_seconds + beside.others_seconds
    figures = {
        "per_second": alone.per_second,
        "beside_per_second": beside.per_second,
        "ratio_percent": 100 * beside.per_second / alone.per_second,
        "cpu_us": alone.cpu_seconds * 1e6 / alone.messages,
        "cpu_beside_us": beside.cpu_seconds * 1e6 / beside.messages,
        "others_percent": max(100 * others / (alone.seconds + beside.seconds), 0),
        "rss_mib": rss_mib,
        "bytes_per_message": held_bytes,
        "slow_consumer_took": slowly,
    }
    return Run(figures, problems)


def memory(site: Site) -> Run:
    """Resident memory of a fresh broker, and of the same one after the four works of load."""
    time.sleep(SETTLE_SECONDS)
    figures = {"rest_mib": site.server.rss_mib()}
    problems: list[str] = []
    for load in (small, large, topic, fixed):
        problems += load(site).problems
    time.sleep(SETTLE_SECONDS)
    figures["after_mib"] = site.server.rss_mib()
    return Run(figures, problems)


def idle(site: Site) -> Run:
    """What one connection with one session costs that does nothing."""
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


def engine(site: Site) -> Run:
    """The engine without sockets."""
    return in_process("engine.py", site.scale.messages, ("cpu_us", "settling_us"))


def selectors(site: Site) -> Run:
    """A queue with a hundred selective consumers, without sockets."""
    keys = ("waiting_us", "arriving_us", "longest_ms", "judged")
    return in_process("selectors.py", site.scale.to_topics, keys)


def in_process(script: str, count: int, keys: tuple[str, ...]) -> Run:
    """What one of the scripts here prints, in a process of its own that takes the installation."""
    ran = subprocess.run(
        [sys.executable, "-P", str(SOURCES / script), str(count)],
        capture_output=True,
        text=True,
        timeout=IN_PROCESS_SECONDS,
    )
    if ran.returncode != 0:
        raise BenchError(f"{script} does not run:\n{ran.stderr[-2000:]}")
    figures = json.loads(ran.stdout)
    problems = [] if figures["compiled"] else ["the broker is interpreted"]
    return Run({key: float(figures[key]) for key in keys}, problems)
