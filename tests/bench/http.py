"""`python -m tests.bench.http`: the speed of the event log and of a backlog as Arrow over HTTP.

A store in SQLite is filled, a broker started on it, and read by clients that receive the bytes and
make tables of them. Meanwhile the broker is asked whether it is alive: the time until its answer is
the time for which its loop is blocked.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import multiprocessing
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pyarrow as pa

from storage.batch import Batch
from storage.records import StoredMessage, StoredNode
from storage.sql.sqlite.store import SqliteStore
from tests.interop.broker_process import BrokerProcess
from tests.support.frames import message
from tests.support.http import event

TOGETHER: Final = 10_000
"""Rows per commit while the store is filled."""

SETTINGS: Final = """\
store = "sqlite:///{database}"
allow_anonymous = true
[http]
port = 0
"""


def fill(database: Path, rows: int, messages: int, size: int) -> None:
    """Make a store with `rows` events, and with `messages` messages in the queue `backlog`."""
    asyncio.run(_fill(SqliteStore(database), rows, messages, message(b"x" * size)))


async def _fill(store: SqliteStore, rows: int, messages: int, encoded: bytes) -> None:
    await store.open()
    batch = Batch()
    batch.add_node(StoredNode(address="backlog", kind="queue"))
    for number in range(1, max(rows, messages) + 1):
        if number <= rows:
            batch.note_event(event(number, ("enqueued", "delivered", "accepted")[number % 3]))
        if number <= messages:
            batch.append(_stored(number, encoded))
        if number % TOGETHER == 0:
            await store.commit(batch)
            batch = Batch()
    await store.commit(batch)
    await store.close()


def _stored(number: int, encoded: bytes) -> StoredMessage:
    return StoredMessage(
        number=number,
        queue="backlog",
        position=number * 10 + 4,
        encoded=encoded,
        priority=4,
        ttl_ms=-1,
        arrived_ms=1_750_000_000_000 + number,
        expires_at_ms=0,
        deliver_at_ms=0,
        delivery_count=0,
    )


def read(url: str) -> tuple[int, int]:
    """Read a stream to its end; return its rows and bytes. Raise RuntimeError if it is refused."""
    parts = urlsplit(url)
    with closing(http.client.HTTPConnection(parts.netloc)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}")
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(response.read().decode())
        rows = size = 0
        for batch in pa.ipc.open_stream(response):
            rows += batch.num_rows
            size += batch.nbytes
        return rows, size


class Pulse(threading.Thread):
    """Asks a broker repeatedly whether it is alive. `waits` has the time of each answer, in ms."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._connection: Final = http.client.HTTPConnection(urlsplit(url).netloc)
        self._over: Final = threading.Event()
        self.waits: Final[list[float]] = []

    def run(self) -> None:
        while not self._over.wait(0.002):
            begun = time.perf_counter()
            self._connection.request("GET", "/livez")
            self._connection.getresponse().read()
            self.waits.append((time.perf_counter() - begun) * 1000)

    def stop(self) -> str:
        """Stop asking; return a summary of the waits."""
        self._over.set()
        self.join()
        cuts = statistics.quantiles(self.waits, n=100)
        return f"p50 {cuts[49]:.1f}, p99 {cuts[98]:.1f}, max {max(self.waits):.1f} ms"


def measure(name: str, broker: BrokerProcess, work: Callable[[], list[tuple[int, int]]]) -> None:
    """Run `work` and print a line with the rows and bytes that it has read."""
    pulse = Pulse(broker.http_url)
    pulse.start()
    begun = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - begun
    felt = pulse.stop()
    rows, size = (sum(column) for column in zip(*found, strict=True))
    print(
        f"| {name} | {rows:,} | {rows / seconds:,.0f} | {size / seconds / 2**20:,.0f} | {felt} |",
        flush=True,
    )


def main() -> None:
    """Fill a store, start a broker on it, read from it, and print the rates."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--messages", type=int, default=200_000)
    options.add_argument("--size", type=int, default=1024, help="bytes of a body")
    asked = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        multiprocessing.get_context("spawn").Pool(4) as pool,
    ):
        folder = Path(name)
        database = folder / "store.db"
        fill(database, asked.rows, asked.messages, asked.size)
        broker = BrokerProcess(folder, settings=SETTINGS.format(database=database))
        url = broker.http_url
        whole = [f"{url}/arrow/browse?address=backlog"]
        slices = [f"{url}/arrow/browse?address=backlog&slice={k}&slices=4" for k in range(4)]
        print("| what | rows | rows/s | MiB/s | /livez meanwhile |\n|---|---|---|---|---|")
        try:
            measure("nothing", broker, lambda: pool.map(read, [f"{url}/arrow/events?until=1"]))
            for _ in range(3):
                measure("events", broker, lambda: pool.map(read, [f"{url}/arrow/events"]))
            for _ in range(3):
                measure("browse", broker, lambda: pool.map(read, whole))
            measure("browse, 4 slices", broker, lambda: pool.map(read, slices))
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
