"""`python -m tests.bench.bridges`: the rate of a bridge between two brokers of this project.

The source is filled while the bridge is paused. Then the bridge is resumed, and the time is taken
until the last message is settled there. On two cores, each broker has about one of them.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Final

from broker.cli.requests import managed
from tests.bench import machine
from tests.bench.client import LoadClient
from tests.bench.effort import Meter
from tests.bench.ours import INSTALLED, OurBroker
from tests.bench.places import BenchError

NAME: Final = "to-there"
QUEUE: Final = "bridged"
TARGET: Final = 50_000
"""Messages of 1 KiB in a second, between two brokers on two cores."""

LOOK_S: Final = 0.02
PATIENCE_S: Final = 300.0


class BridgedBroker(OurBroker):
    """A broker with a bridge to another one."""

    def __init__(self, program: Path, url: str, *, store: str, batch: int) -> None:
        super().__init__(program, name="source", store=store)
        self._url: Final = url
        self._batch: Final = batch

    def settings(self) -> str:
        return (
            f'[[bridge]]\nname = "{NAME}"\nfrom = "{QUEUE}"\nto = "{QUEUE}"\n'
            f'url = "{self._url}"\nbatch = {self._batch}\n'
        )


def measured(options: argparse.Namespace, client: LoadClient) -> float:
    """Fill a source, let its bridge empty it, print what that cost, and return the rate."""
    target = OurBroker(options.program, name="target", store=options.store)
    with target:
        source = BridgedBroker(
            options.program, f"amqp://{target.peer}", store=options.store, batch=options.batch
        )
        with source, managed(f"amqp://{source.peer}", PATIENCE_S) as broker:
            broker.ask("PAUSE", "bridge", NAME)
            with client.start(
                *("send", source.peer, QUEUE),
                count=options.count,
                size=1024,
                capability="queue",
                durable=1,
            ) as sender:
                sent = sender.finish().count
            meters = [Meter(each) for each in (source, target)]
            began_s = time.monotonic()
            broker.ask("RESUME", "bridge", NAME)
            while broker.ask("READ", "bridge", NAME)["moved"] != sent:
                if time.monotonic() - began_s > PATIENCE_S:
                    raise BenchError(f"not moved within {PATIENCE_S} s")
                time.sleep(LOOK_S)
            took_s = time.monotonic() - began_s
            costs = [meter.effort().cpu_seconds / sent * 1e6 for meter in meters]
    rate = sent / took_s
    print(
        f"{sent} messages of 1 KiB in {took_s:.2f} s: {rate:,.0f}/s;"
        f" source {costs[0]:.1f} µs, target {costs[1]:.1f} µs of processor time each"
    )
    return rate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, default=INSTALLED)
    parser.add_argument("--store", default="", help="memory; default: SQLite")
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    for what, told in machine.description().items():
        print(f"{what}: {told}")
    client = LoadClient.build()
    rates = [measured(options, client) for _ in range(options.repeat)]
    print(f"median {statistics.median(rates):,.0f}/s; wanted {TARGET:,}/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
