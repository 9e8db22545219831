"""A stream that takes messages, which the tests run batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import monotonically_increasing_id, spark_partition_id
from pyspark.sql.streaming.query import StreamingQuery

from pyspark_amqp.option_table import Use
from pyspark_amqp.options import read_options
from pyspark_amqp.wire.broker_client import opened

COLUMNS = "position BIGINT, JMSMessageID STRING, JMSXGroupID STRING, JMSXDeliveryCount INT"


@dataclass
class Batch:
    """The rows of one attempt at a batch, each with its partition and its place there."""

    number: int
    rows: list[Row]

    @property
    def ids(self) -> list[str]:
        return sorted(row.JMSMessageID for row in self.rows)


def nothing(number: int) -> None:
    """Do nothing beside taking a batch."""


@dataclass
class Stream:
    """A query and its checkpoint. `fail_in` is the batch whose sink fails after its work."""

    spark: SparkSession
    folder: Path
    options: dict[str, str]
    schema: str | None = COLUMNS
    fail_in: int | None = None
    batches: list[Batch] = field(default_factory=list)
    also: Callable[[int], None] = nothing

    def start(self, *, available_now: bool = True) -> StreamingQuery:
        reader = self.spark.readStream.format("amqp").options(**self.options)
        frame = (reader if self.schema is None else reader.schema(self.schema)).load()
        writer = frame.writeStream.foreachBatch(self.take)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        if available_now:
            writer = writer.trigger(availableNow=True)
        return writer.start()

    def run(self) -> list[Batch]:
        """Process everything that is there; return the batches of this run."""
        before = len(self.batches)
        self.start().awaitTermination()
        return self.batches[before:]

    def take(self, frame: DataFrame, number: int) -> None:
        placed = frame.withColumn("part", spark_partition_id())
        rows = placed.withColumn("place", monotonically_increasing_id()).collect()
        self.batches.append(Batch(number, rows))
        self.also(number)
        if number == self.fail_in:
            raise RuntimeError(f"the sink fails in batch {number}")

    @property
    def counts(self) -> Counter[str]:
        """Return how often each message was received."""
        return Counter(each for batch in self.batches for each in batch.ids)


def entity(url: str, kind: str, name: str) -> dict[str, object]:
    """Return what the broker's management reports about one entity."""
    with opened(read_options({"url": url, "address": "any"}, Use.SINK)) as broker:
        return dict(broker.ask("READ", kind, name))


def leases(url: str) -> list[dict[str, object]]:
    """Return the records of all leases."""
    with opened(read_options({"url": url, "address": "any"}, Use.SINK)) as broker:
        told = broker.entities("lease")
    names = cast("list[str]", told["attributeNames"])
    rows = cast("list[list[object]]", told["results"])
    return [dict(zip(names, row, strict=True)) for row in rows]


def ids(address: str, numbers: range) -> list[str]:
    """Return the ids of the messages that `sent.texts` makes."""
    return sorted(f"ID:{address}-{number}" for number in numbers)
