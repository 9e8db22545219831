"""`python -m tests.bench.operations`: what it costs to watch a broker with many queues.

A store in SQLite is filled with queues, and the installed broker is started on it. Then metrics and
pages of the console are read, alone and beside a load; the load is `jms-broker load`. The time in
which `/livez` answers is the time for which the broker's loop is blocked.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from storage.batch import Batch
from storage.records import StoredNode
from storage.sql.sqlite.store import SqliteStore
from tests.bench.http import TOGETHER, Pulse
from tests.bench.server import cpu_seconds_of, rss_mib_of
from tests.interop.broker_process import BrokerProcess

PROGRAM: Final = Path(sys.executable).with_name("jms-broker")
CONSOLE_PAGES: Final = ("/console/", "/console/queues", "/console/queues/queue.000007")
VIEWERS: Final = 10
LOOK_EVERY_S: Final = 2.0
"""Seconds between two pages of a viewer, who also gets the live figures each second."""

EXPORT: Final = {"operation": "EXPORT", "type": "definitions", "name": "queues"}
FEW_QUEUES: Final = 100

WITH_HTTP: Final = "[http]\nport = 0\nconsole = true\n"


def fill(database: Path, queues: int) -> None:
    """Make a store with the queues `queue.000000` and so on."""

    async def work() -> None:
        store = SqliteStore(database)
        await store.open()
        for first in range(0, queues, TOGETHER):
            batch = Batch()
            for number in range(first, min(first + TOGETHER, queues)):
                batch.add_node(StoredNode(address=f"queue.{number:06}", kind="queue"))
            await store.commit(batch)
        await store.close()

    asyncio.run(work())


@contextmanager
def running(database: Path, settings: str) -> Iterator[BrokerProcess]:
    """Run the installed broker on a store during the block."""
    folder = database.parent
    serve = [str(PROGRAM), "serve", "--port", "0", "--config", str(folder / "broker.toml")]
    store = f'store = "sqlite:///{database}"\nallow_anonymous = true\n'
    broker = BrokerProcess(
        folder, settings=store + settings, program=serve, variables={"PYTHONPATH": ""}
    )
    try:
        yield broker
    finally:
        broker.stop()


def get(url: str, asked: dict[str, str] | None = None) -> tuple[float, int]:
    """Return the ms until a page is read, and its bytes. Raise RuntimeError if it is refused.

    `asked` is posted as JSON, if it is given.
    """
    parts = urlsplit(url)
    begun = time.perf_counter()
    with closing(http.client.HTTPConnection(parts.netloc, timeout=60)) as connection:
        place = f"{parts.path}?{parts.query}"
        if asked is None:
            connection.request("GET", place)
        else:
            headers = {"Content-Type": "application/json"}
            connection.request("POST", place, json.dumps(asked), headers)
        response = connection.getresponse()
        body = response.read()
    if response.status != 200:
        raise RuntimeError(f"{url}: {response.status} {body[:200]!r}")
    return (time.perf_counter() - begun) * 1000, len(body)


def load(broker: BrokerProcess, rate: int, seconds: int) -> dict[str, float]:
    """Return the latencies of a load in ms."""
    options = ["--rate", str(rate), "--duration", str(seconds), "--warm-up", "2", "--json"]
    done = subprocess.run(
        [PROGRAM, "load", "--url", broker.url, *options],
        capture_output=True,
        check=True,
        cwd=broker.log.parent,
        env={**os.environ, "PYTHONPATH": ""},
    )
    report: dict[str, dict[str, float]] = json.loads(done.stdout)
    return report["latency_ms"]


# -- clients beside the load, each in a process of its own


def view(url: str, number: int, over: Event, waits: list[float]) -> None:
    """Look at pages of the console one after another, and at the live figures, until `over`."""
    live = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    live.request("GET", "/console/live", headers={"Accept": "text/event-stream"})
    live.getresponse()
    turn = number
    while not over.wait(LOOK_EVERY_S):
        waits.append(get(url + CONSOLE_PAGES[turn % len(CONSOLE_PAGES)])[0])
        turn += 1
    live.close()


def scrape(url: str, _number: int, over: Event, waits: list[float]) -> None:
    """Read the metrics each second, as a Prometheus does in a hurry, until `over`."""
    while not over.wait(1.0):
        waits.append(get(f"{url}/metrics")[0])


def export(url: str, _number: int, over: Event, waits: list[float]) -> None:
    """Export the definitions again and again, until `over`."""
    while not over.is_set():
        waits.append(get(f"{url}/api/v1/management", EXPORT)[0])


@contextmanager
def beside(work: Callable[..., None], url: str, count: int) -> Iterator[list[float]]:
    """Run `count` processes of `work` during the block; yield the list of their waits in ms."""
    with multiprocessing.get_context("spawn").Manager() as manager:
        over, waits = manager.Event(), manager.list()
        context = multiprocessing.get_context("spawn")
        workers = [
            context.Process(target=work, args=(url, number, over, waits), daemon=True)
            for number in range(count)
        ]
        for worker in workers:
            worker.start()
        found: list[float] = []
        try:
            yield found
        finally:
            over.set()
            for worker in workers:
                worker.join(60)
            found.extend(waits)


# -- rows


def metrics(broker: BrokerProcess) -> None:
    """Print how long the pages of metrics take, and for how long they block the loop."""
    for path, times in (
        ("/metrics", 50),
        ("/metrics/detailed", 5),
        ("/console/", 20),
        ("/console/queues", 20),
        ("/api/v1/queues?sort=-messages", 5),
    ):
        get(broker.http_url + path)
        pulse = Pulse(broker.http_url)
        pulse.start()
        found = [get(broker.http_url + path) for _ in range(times)]
        felt = pulse.stop()
        waits = sorted(ms for ms, _ in found)
        size = found[0][1] / 2**20
        print(
            f"| {path} | {statistics.median(waits):.1f} | {waits[-1]:.1f} | {size:.2f} | {felt} |",
            flush=True,
        )


def viewers(broker: BrokerProcess, seconds: int) -> None:
    """Print how long pages take beside a load, and what the viewers cost the broker."""
    rate = 2000
    alone = _cost(broker, lambda: load(broker, rate, seconds))
    with beside(view, broker.http_url, VIEWERS) as waits:
        together = _cost(broker, lambda: load(broker, rate, seconds))
    cuts = statistics.quantiles(waits, n=20)
    print(
        f"{VIEWERS} viewers beside {rate} messages/s: {len(waits)} pages, p50 {cuts[9]:.0f},"
        f" p95 {cuts[18]:.0f} ms; the broker used {alone:.1%} of a core without them,"
        f" {together:.1%} with them",
        flush=True,
    )


def _cost(broker: BrokerProcess, work: Callable[[], object]) -> float:
    """Return the share of a core that the broker uses during `work`."""
    before, begun = cpu_seconds_of(broker.pid), time.perf_counter()
    work()
    return (cpu_seconds_of(broker.pid) - before) / (time.perf_counter() - begun)


def fixed(broker: BrokerProcess, seconds: int, rounds: int) -> None:
    """Print the p99 of a load at a fixed rate alone, and beside all that watches the broker."""
    pairs = []
    for _ in range(rounds):
        alone = load(broker, 10_000, seconds)["p99"]
        with ExitStack() as stack:
            for work, count in ((scrape, 1), (view, 2), (export, 1)):
                stack.enter_context(beside(work, broker.http_url, count))
            watched = load(broker, 10_000, seconds)["p99"]
        pairs.append((alone, watched))
        print(f"10,000 messages/s: p99 alone {alone:.2f}, watched {watched:.2f} ms", flush=True)
    ratios = [watched / alone for alone, watched in pairs]
    print(f"ratio: median {statistics.median(ratios):.2f} of {rounds}", flush=True)


def at_rest(folder: Path, rounds: int) -> None:
    """Print the time until a broker is ready, and its memory, without and with HTTP."""
    for name, settings in (("without HTTP", ""), ("with HTTP", "[http]\nport = 0\n")):
        readies, sizes = [], []
        for number in range(rounds):
            begun = time.perf_counter()
            with running(folder / f"rest.{name[:4]}.{number}.db", settings) as broker:
                readies.append((time.perf_counter() - begun) * 1000)
                time.sleep(1)
                sizes.append(rss_mib_of(broker.pid))
        print(
            f"{name}: ready after {statistics.median(readies):.0f} ms,"
            f" {statistics.median(sizes):.1f} MiB resident",
            flush=True,
        )


def main() -> None:
    """Fill a store, start a broker on it, watch it, and print what that costs."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--queues", type=int, default=99_000)
    options.add_argument("--seconds", type=int, default=15, help="seconds of each load")
    options.add_argument("--rounds", type=int, default=5, help="pairs, and starts")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        at_rest(folder, asked.rounds)
        database = folder / "many.db"
        fill(database, asked.queues)
        with running(database, WITH_HTTP) as broker:
            print(f"{asked.queues} queues, {rss_mib_of(broker.pid):.0f} MiB resident")
            print("| page | p50 ms | max ms | MiB | /livez meanwhile |\n|---|---|---|---|---|")
            metrics(broker)
            viewers(broker, asked.seconds)
        few = folder / "few.db"
        fill(few, FEW_QUEUES)
        with running(few, WITH_HTTP) as broker:
            fixed(broker, asked.seconds, asked.rounds)


if __name__ == "__main__":
    main()
