"""`python -m tests.bench.scale`: how much the broker holds, at what cost, and how fast it restarts.

Each measurement has an SQLite store of its own; the broker is killed and started again.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench import declare, machine
from tests.bench.client import LoadClient, Outcome
from tests.bench.declare import Declaring
from tests.bench.disk import disk_folder
from tests.bench.effort import Meter
from tests.bench.ours import INSTALLED, OurBroker
from tests.bench.places import BenchError

MEBIBYTE: Final = 2**20
CALM_SECONDS: Final = 1.5
LOAD_SECONDS: Final = 600
PUBLISHED: Final = 5
PEAK_ANEW: Final = "5"
"""Written to clear_refs, it makes the kernel measure the peak of resident memory anew."""

QUEUE_PREFIX: Final = "scale.queue."
TOPIC: Final = "scale.topic"
BACKLOG: Final = "scale.backlog"
LARGE: Final = "scale.large"


@dataclass(frozen=True)
class Figure:
    """One line of the table; `reach` is its maximum, None if there is none."""

    name: str
    value: float
    unit: str
    reach: float | None = None

    def line(self) -> str:
        reach = "-" if self.reach is None else f"≤ {self.reach:,g}"
        kept = "-" if self.reach is None else ("yes" if self.value <= self.reach else "**no**")
        digits = 0 if self.value >= 1000 else 2 if self.value < 10 else 1
        return f"| {self.name} | {self.value:,.{digits}f} {self.unit} | {reach} | {kept} |"


def say(text: str) -> None:
    """Print a line of progress, to standard error, apart from the results."""
    print(text, file=sys.stderr, flush=True)


class StoredBroker(OurBroker):
    """A broker whose store outlives its process."""

    def kill(self) -> None:
        """End the broker's process without warning; its store stays."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.stop()

    def peak_anew(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text(PEAK_ANEW)

    def peak_mib(self) -> float:
        """Return the maximum of resident memory since `peak_anew`, in MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise BenchError("the kernel does not tell the peak of resident memory")


class Scale:
    """One measurement: a broker with a store, and clients."""

    def __init__(self, client: LoadClient, broker: StoredBroker) -> None:
        self._client = client
        self.broker = broker

    def load(self, role: str, address: str, count: int, **options: float | str) -> Outcome:
        """Run a client to its end; raise BenchError unless everything went through."""
        options.setdefault("durable", 1)
        options.setdefault("timeout", LOAD_SECONDS)
        running = self._client.start(role, self.broker.peer, address, count=count, **options)
        with running:
            outcome = running.finish()
        wanted = count * int(options.get("links", 1))
        if outcome.count != wanted or outcome.not_accepted or outcome.disordered:
            raise BenchError(f"{role}: {outcome.count} of {wanted}: {outcome.complaint}")
        return outcome

    def restart(self, probe: str = f"{BACKLOG}.probe", *, cold: bool = False) -> Iterator[Figure]:
        """Kill and start the broker; yield the times to the ready line and to the first accept.

        The first accept is that of a durable message to `probe`. With `cold`, the files are not in
        the kernel's cache then, if this process may empty it. Resident memory in MiB is yielded,
        too.
        """
        self.broker.kill()
        warmth = "cold" if cold and dropped_caches() else "warm"
        begun_ns = time.time_ns()
        self.broker.start()
        ready = (time.time_ns() - begun_ns) / 1e9
        outcome = self.load("send", probe, 1, capability="queue")
        accepted = (outcome.last_ns - begun_ns) / 1e9
        say(f"  {warmth} start: ready after {ready:.2f} s, accepted after {accepted:.2f} s")
        yield Figure(f"start, {warmth}: to the ready line", ready, "s")
        yield Figure(f"start, {warmth}: to the first accept", accepted, "s")
        yield Figure(f"RSS after that start, at most, {warmth}", self.broker.peak_mib(), "MiB")
        yield Figure(f"RSS after that start, {warmth}", self.rest(), "MiB")

    def rest(self) -> float:
        """Return the resident memory in MiB once the broker has come to rest."""
        time.sleep(CALM_SECONDS)
        return self.broker.rss_mib()


def dropped_caches() -> bool:
    """Remove the files from the kernel's cache; return False if that takes more rights."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("1")
    except OSError:
        return False
    return True


def backlog(scale: Scale, options: argparse.Namespace) -> Iterator[Figure]:
    """Measure durable messages that wait in one queue."""
    broker, count = scale.broker, options.messages
    yield Figure("RSS at rest, nothing stored", scale.rest(), "MiB", 75)
    outcome = scale.load("send", BACKLOG, count, size=options.size, capability="queue")
    say(f"  {count:,} sent at {outcome.per_second:,.0f}/s")
    yield Figure("sent", outcome.per_second, "msg/s")
    yield Figure("RSS with the backlog, at most", broker.peak_mib(), "MiB")
    reach = 150 if count <= 1_000_000 else 400
    yield Figure("RSS with the backlog, at rest", scale.rest(), "MiB", reach)
    yield from scale.restart()
    yield from scale.restart(cold=True)
    if options.drain:
        outcome = scale.load("receive", BACKLOG, count, size=options.size, capability="queue")
        yield Figure("received", outcome.per_second, "msg/s")
        yield Figure("RSS when all is received", scale.rest(), "MiB")


def large(scale: Scale, options: argparse.Namespace) -> Iterator[Figure]:
    """Measure large durable messages in and out, one alone, then several at once."""
    broker, size = scale.broker, options.mib * MEBIBYTE
    for links in dict.fromkeys((1, options.at_once)):
        say(f"  {links} of {options.mib} MiB")
        many = {"links": links, "spread": links, "size": size, "capability": "queue"}
        reach = 8 if links == 1 else None
        for role, way in (("send", "in"), ("fanout", "out")):
            broker.peak_anew()
            before = scale.rest()
            begun = time.perf_counter()
            scale.load(role, f"{LARGE}.{links}", 1, credit=1, **many)
            seconds = time.perf_counter() - begun  # a receiver's own clock starts too late
            grown = broker.peak_mib() - before
            say(f"  {way}: {seconds:.1f} s, {grown:.1f} MiB more at most")
            yield Figure(
                f"{links} x {options.mib} MiB {way}: RSS more at most", grown, "MiB", reach
            )
            yield Figure(f"{links} x {options.mib} MiB {way}: time", seconds, "s")
    yield Figure("RSS afterwards", scale.rest(), "MiB")


def queues(scale: Scale, options: argparse.Namespace) -> Iterator[Figure]:
    """Measure durable queues that are empty."""
    made = [declare.to_queue(number, QUEUE_PREFIX) for number in range(options.queues)]
    yield from declared(scale, made, "queue")
    yield from scale.restart(f"{QUEUE_PREFIX}0")


def subscriptions(scale: Scale, options: argparse.Namespace) -> Iterator[Figure]:
    """Measure durable subscriptions of one topic, and a message to all of them."""
    count = options.subscriptions
    made = [declare.subscriber(number, TOPIC) for number in range(count)]
    yield from declared(scale, made, "subscription")
    yield from scale.restart()
    before, meter = scale.rest(), Meter(scale.broker)
    seconds = []
    for _ in range(PUBLISHED):
        outcome = scale.load("send", TOPIC, 1, size=options.size, capability="topic")
        seconds.append(outcome.seconds)
    yield Figure("a message to all: to its accept", 1000 * statistics.median(seconds), "ms")
    written = meter.effort().written_bytes
    yield Figure("written for each stored copy", written / PUBLISHED / count, "B")
    grown = (scale.rest() - before) * MEBIBYTE
    yield Figure("memory for each stored copy", grown / PUBLISHED / count, "B")
    yield from scale.restart()


def declared(scale: Scale, links: list[bytes], what: str) -> Iterator[Figure]:
    """Attach and detach all `links`; yield their rate, and the memory for each."""
    before = scale.rest()
    declaring = Declaring(scale.broker.port)
    rate = declaring.declare(links)
    say(f"  {len(links):,} made at {rate:,.0f}/s")
    yield Figure(f"{what} declared", rate, "/s")
    declaring.close()
    grown = (scale.rest() - before) * MEBIBYTE
    yield Figure(f"memory for each {what}", grown / len(links), "B")


MEASUREMENTS: Final[dict[str, Callable[[Scale, argparse.Namespace], Iterator[Figure]]]] = {
    "backlog": backlog,
    "large": large,
    "queues": queues,
    "subscriptions": subscriptions,
}


def measured(name: str, client: LoadClient, options: argparse.Namespace) -> list[Figure]:
    """Return the figures of one measurement, on a fresh broker with a fresh store."""
    with tempfile.TemporaryDirectory(prefix="bench-scale-", dir=disk_folder()) as folder:
        broker = StoredBroker(options.broker, store=f"sqlite:///{folder}/jms.db")
        with broker:
            say(f"{name}: {broker.manner()}")
            return list(MEASUREMENTS[name](Scale(client, broker), options))


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("which", nargs="*", help=f"of {', '.join(MEASUREMENTS)}; all by default")
    parser.add_argument("--messages", type=int, default=1_000_000, help="of the backlog")
    parser.add_argument("--size", type=int, default=1024, help="bytes of a message")
    parser.add_argument("--drain", action="store_true", help="receive the backlog at the end")
    parser.add_argument("--mib", type=int, default=100, help="MiB of a large message")
    parser.add_argument("--at-once", type=int, default=20, help="large messages at once")
    parser.add_argument("--queues", type=int, default=100_000)
    parser.add_argument("--subscriptions", type=int, default=10_000)
    parser.add_argument("--broker", type=Path, default=INSTALLED, help="the program to measure")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.which if name not in MEASUREMENTS]:
        parser.error(f"no such measurement: {', '.join(unknown)}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line names; return the exit status.

    Failures decide the status, figures never do.
    """
    options = parsed(arguments)
    facts = machine.description()
    try:
        client = LoadClient.build()
        for name in options.which or MEASUREMENTS:
            figures = measured(name, client, options)
            print(f"\n| {name} | measured | reach | reached |\n|---|---|---|---|")
            print("\n".join(figure.line() for figure in figures), flush=True)
    except BenchError as error:
        say(f"scale: {error}")
        return 1
    print("\nMachine: " + "; ".join(f"{key} {value}" for key, value in facts.items()) + ".")
    return 0


if __name__ == "__main__":
    sys.exit(main())
