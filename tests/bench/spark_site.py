"""Stores that are filled once, brokers on copies of them, and one Spark.

A row that takes messages has a broker of its own on a copy, so rows may be measured in any order
and one by one. The storage itself fills the stores before a broker starts: a million messages in
well under a minute, while any of our senders takes several minutes.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from broker.amqp.decode import descriptor_at, skip
from broker.amqp.descriptors import HEADER
from broker.jms import Destination, JmsMessage, TextBody, encode, stamp
from pyspark_amqp.spark import session
from storage.batch import Batch
from storage.events import EventRow
from storage.records import StoredMessage, StoredNode
from storage.sql.sqlite.store import SqliteStore
from tests.interop.broker_process import BrokerProcess

QUEUE: Final = "backlog"
BODY: Final = "x" * 1024
PROPERTIES: Final = 10
KINDS: Final = ("enqueued", "delivered", "accepted")
"""The events that the event log has of each message, in this order."""

TOGETHER: Final = 10_000
"""Messages per commit while a store is filled."""

SETTINGS: Final = """\
store = "sqlite:///{database}"
allow_anonymous = true
event_log_max_events = 1_000_000_000
[http]
port = 0
"""

CONFIGURATION: Final = {
    "spark.driver.memory": "3g",
    "spark.log.level": "OFF",
}


def message(number: int, now_ms: int) -> bytes:
    """Return a durable JMS text message of 1 KiB with ten properties, as a store keeps it."""
    made = JmsMessage(
        TextBody(BODY),
        properties={
            **{f"text{each}": f"value {number % 100} of {each}" for each in range(4)},
            **{f"long{each}": number + each for each in range(3)},
            **{f"double{each}": number / 7 + each for each in range(2)},
            "flag": number % 2 == 0,
        },
    )
    stamp(made, now_ms=now_ms, message_id=f"ID:bench-{number}", destination=Destination(QUEUE))
    encoded = encode(made)
    code, at = descriptor_at(encoded, 0, len(encoded))
    # a store keeps the header's fields separately
    return encoded[skip(encoded, at, len(encoded)) :] if code == HEADER else encoded


async def _fill_messages(database: Path, count: int) -> None:
    store = SqliteStore(database)
    await store.open()
    batch = Batch()
    batch.add_node(StoredNode(address=QUEUE, kind="queue"))
    now_ms = time.time_ns() // 1_000_000
    for number in range(1, count + 1):
        batch.append(
            StoredMessage(
                number=number,
                queue=QUEUE,
                position=number * 10 + 4,
                encoded=message(number, now_ms),
                priority=4,
                ttl_ms=-1,
                arrived_ms=now_ms,
                expires_at_ms=0,
                deliver_at_ms=0,
                delivery_count=0,
            )
        )
        if number % TOGETHER == 0:
            await store.commit(batch)
            batch = Batch()
    await store.commit(batch)
    await store.close()


def event(number: int, now_us: int) -> EventRow:
    """Return row `number` of an event log: each message is enqueued, delivered and accepted."""
    which, step = divmod(number - 1, len(KINDS))
    place = (which + 1) * 10 + 4
    consumer = "" if step == 0 else f"consumer-{which % 7}"
    return (
        *(number, now_us + number * 10, KINDS[step], "", f"queue-{which % 5}", ""),
        *(f"ID:bench-{which}", place, consumer, "link-1", "1/0", 0, 0, "", "", "boot"),
    )


async def _fill_events(database: Path, count: int) -> None:
    store = SqliteStore(database)
    await store.open()
    now_us = time.time_ns() // 1000
    for first in range(1, count + 1, TOGETHER):
        batch = Batch()
        for number in range(first, min(first + TOGETHER, count + 1)):
            batch.note_event(event(number, now_us))
        await store.commit(batch)
    await store.close()


class Site:
    """The place where rows are measured. `rows` is its number of messages, and of events.

    Spark runs as many tasks at a time as there are `executors`, 0 for one on each core.
    """

    def __init__(self, folder: Path, rows: int, executors: int = 0) -> None:
        self.folder: Final = folder
        self.rows: Final = rows
        self.executors: Final = executors or os.cpu_count() or 1
        self._spark: SparkSession | None = None
        self._copies = 0

    @property
    def spark(self) -> SparkSession:
        """Return the one session; its workers have been started."""
        if self._spark is None:
            settings = {**CONFIGURATION, "spark.local.dir": str(self.folder / "scratch")}
            settings["spark.sql.warehouse.dir"] = str(self.folder / "warehouse")
            log = self.folder / "spark.log"
            spark = session(
                "bench", master=f"local[{self.executors}]", configuration=settings, log=log
            )
            self._spark = spark
            spark.range(1_000_000).selectExpr("sum(id)").collect()
            few = {"mode": "events", "storeUrl": self.events_url, "endingPosition": "2"}
            spark.read.format("amqp").options(**few).load().collect()
        return self._spark

    def messages(self) -> Path:
        """Return the file of the store with the messages, which is filled the first time."""
        database = self.folder / "messages" / "store.db"
        if not database.exists():
            database.parent.mkdir()
            asyncio.run(_fill_messages(database, self.rows))
        return database

    def events(self, rows: int | None = None) -> Path:
        """Return the file of the store with an event log, which is filled the first time.

        It has as many rows as the site, if `rows` does not say how many.
        """
        count = self.rows if rows is None else rows
        database = self.folder / f"events-{count}" / "store.db"
        if not database.exists():
            database.parent.mkdir()
            asyncio.run(_fill_events(database, count))
        return database

    @property
    def events_url(self) -> str:
        """Return the event log's store as a URL for ADBC, usable while no broker runs on it."""
        return f"sqlite:///{self.events()}"

    @contextmanager
    def broker(self, filled: Path | None = None) -> Iterator[BrokerProcess]:
        """Yield a broker on a copy of the store `filled`, or on an empty one."""
        self._copies += 1
        place = self.folder / f"broker-{self._copies}"
        if filled is None:
            place.mkdir()
        else:
            shutil.copytree(filled.parent, place)
        settings = SETTINGS.format(database=place / "store.db")
        process = BrokerProcess(place, settings=settings)
        try:
            yield process
        finally:
            process.stop()
            shutil.rmtree(place)

    def close(self) -> None:
        """Stop Spark if it was started."""
        if self._spark is not None:
            self._spark.stop()
