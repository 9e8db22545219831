"""`python -m tests.bench.shards`: two shards against one broker, under the same load.

The load is two queues, each with a sender and a receiver: both in one broker, or one in each shard.
The broker and the shards run all the time, and are loaded in turn, each before the other in half
of the runs.
"""

import argparse
import os
import re
import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench import machine
from tests.bench.client import LoadClient
from tests.bench.effort import Meter
from tests.bench.ours import INSTALLED, OurBroker
from tests.bench.places import BenchError
from tests.bench.server import Server
from tests.bench.work import problems_of
from tests.support.ports import free_port

NAMES: Final = ("a", "b")

CORES_MIN: Final = 4
"""Minimum cores for rates: with less, two shards and their clients take turns on the cores."""

REACH: Final = 1.8
"""Minimum of the rate of two shards, that of one broker being 1."""

COST_REACH: Final = 1.1
"""Maximum of the processor time of a message, that in one broker being 1."""


class Shards(OurBroker):
    """This project's broker as shards, each with an SQLite store of its own."""

    ready = re.compile(r"^ready shards=.*\n", re.MULTILINE)

    def __init__(self, program: Path) -> None:
        super().__init__(program, name="two shards")
        self._own_ports: Final = [free_port() for _ in NAMES]

    def command(self) -> list[str]:
        path = self.folder / "broker.toml"
        path.write_text(
            "".join(
                f'[[shard]]\nname = "{name}"\nport = {port}\nstore = "sqlite:///{name}.db"\n'
                for name, port in zip(NAMES, self._own_ports, strict=True)
            )
        )
        return [str(self._program), "serve", "--config", str(path)]

    def processes(self) -> list[int]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]

    def peers(self) -> list[str]:
        """Return the address of each shard."""
        return [f"127.0.0.1:{port}" for port in self._own_ports]


@dataclass(frozen=True)
class Figures:
    """The figures of one run: messages per second, and the broker's µs of CPU per message."""

    per_second: float
    cpu_us: float


def loaded(
    client: LoadClient, server: Server, peers: Sequence[str], options: argparse.Namespace
) -> Figures:
    """Send messages through a queue at each of `peers`, all at the same time.

    Raise BenchError unless every message has arrived.
    """
    given: dict[str, float | str] = {"size": options.size, "capability": "queue"}
    queues = [(f"bench.shards.{number}", peer) for number, peer in enumerate(peers)]
    with ExitStack() as stack:
        receivers = [
            stack.enter_context(
                client.start("receive", peer, queue, count=options.messages, **given)
            )
            for queue, peer in queues
        ]
        for each in receivers:
            each.await_attached()
        meter = Meter(server)
        given["durable"] = int(options.durable)
        senders = [
            stack.enter_context(client.start("send", peer, queue, count=options.messages, **given))
            for queue, peer in queues
        ]
        sent = [each.finish() for each in senders]
        got = [each.finish() for each in receivers]
    effort = meter.effort()
    for pair in zip(sent, got, strict=True):
        if problems := problems_of(*pair, expected=options.messages):
            raise BenchError(f"{server.name}: {'; '.join(problems)}")
    seconds = (max(each.last_ns for each in got) - min(each.first_ns for each in sent)) / 1e9
    count = options.messages * len(peers)
    return Figures(count / seconds, 1e6 * effort.cpu_seconds / count)


def measured(options: argparse.Namespace) -> list[tuple[Figures, Figures]]:
    """Return the figures of one broker and of two shards, for each pair of runs."""
    client = LoadClient.build()
    found = []
    with OurBroker(options.broker, name="one broker") as one, Shards(options.broker) as shards:
        print(f"{one.name}: {one.manner()}", file=sys.stderr)
        for number in range(options.repeat + 1):
            runs: dict[str, Figures] = {}
            for server in (one, shards) if number % 2 else (shards, one):
                peers = shards.peers() if server is shards else [one.peer] * len(NAMES)
                run = runs[server.name] = loaded(client, server, peers, options)
                told = f"{run.per_second:,.0f}/s, {run.cpu_us:.2f} µs"
                counted = "" if number else ", not counted"
                print(f"  {server.name}: {told}{counted}", file=sys.stderr, flush=True)
            if number:
                found.append((runs[one.name], runs[shards.name]))
    return found


def table(pairs: Sequence[tuple[Figures, Figures]], cores: int) -> list[str]:
    """Return the lines of the table: medians, and the median of the ratios of the pairs."""
    lines = [
        "| | one broker | two shards | two / one | reach | reached |",
        "|---|---|---|---|---|---|",
    ]
    rates = [(one.per_second, two.per_second) for one, two in pairs]
    costs = [(one.cpu_us, two.cpu_us) for one, two in pairs]
    one, two, ratio = _medians(rates)
    verdict = f"{ratio:.2f} | ≥ {REACH} | {_reached(ratio >= REACH)}"
    if cores < CORES_MIN:
        verdict = f"not measured: {cores} cores | ≥ {REACH} | -"
    lines.append(f"| messages/s | {one:,.0f} | {two:,.0f} | {verdict} |")
    one, two, ratio = _medians(costs)
    verdict = f"{ratio:.2f} | ≤ {COST_REACH} | {_reached(ratio <= COST_REACH)}"
    return [*lines, f"| CPU, µs a message | {one:.2f} | {two:.2f} | {verdict} |"]


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    ones, twos = zip(*pairs, strict=True)
    ratios = [two / one for one, two in pairs]
    return statistics.median(ones), statistics.median(twos), statistics.median(ratios)


def _reached(is_reached: bool) -> str:
    return "yes" if is_reached else "**no**"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; return the exit status, which figures do not decide."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.shards", description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000, help="through each queue")
    parser.add_argument("--size", type=int, default=1024, help="bytes of a message")
    parser.add_argument("--durable", action="store_true", help="durable messages")
    parser.add_argument("--repeat", type=int, default=6, help="counted pairs of runs")
    parser.add_argument("--broker", type=Path, default=INSTALLED, help="the program to measure")
    options = parser.parse_args(arguments)
    try:
        pairs = measured(options)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(table(pairs, len(os.sched_getaffinity(0)))))
    print("\n".join(f"{name}: {fact}" for name, fact in machine.description().items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
