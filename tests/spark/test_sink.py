"""Writing to queues: staged or plain, in batches and in streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, cast

import pytest
from pyspark import TaskContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from broker.amqp.types import Int, Map, Symbol
from broker.jms import BytesBody, MapBody, NoBody, ObjectBody, SerializedBody, StreamBody, TextBody
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import read_options
from pyspark_amqp.rows.columns import MESSAGE_COLUMNS
from pyspark_amqp.wire.broker_client import opened
from tests.interop.broker_process import BrokerProcess
from tests.spark.sent import encoded, send

BODIES: Final = [
    NoBody(),
    TextBody("hello"),
    BytesBody(b"\x00\xff"),
    MapBody({"a": 1, "b": None, "c": Int(3)}),
    StreamBody([1, "x", 2.5, True]),
    SerializedBody(),
    ObjectBody(Map([(Symbol("k"), [1, None])])),
]


TELLING: Final = ", ".join(
    f"`{name}` {MESSAGE_COLUMNS[name]}"
    for name in (
        *("JMSMessageID", "JMSTimestamp", "properties", "bodyType", "bodyText", "bodyBytes"),
        *("bodyMap", "bodyList", "bodyJson"),
    )
)
"""Enough columns to tell messages apart; Spark takes long to compile all of them."""


def browsed(
    spark: SparkSession, url: str, address: str, schema: str | None = None, **options: str
) -> DataFrame:
    reader = spark.read.format("amqp").options(url=url, address=address, numPartitions="1")
    if schema is not None:
        reader = reader.schema(schema)
    return reader.options(**options).load()


def sinks(url: str) -> list[dict[str, object]]:
    """Return the broker's records of sinks."""
    options = read_options({"url": url, "address": "any"}, Use.SINK)
    with opened(options) as broker:
        body = broker.entities("sink")
    names = cast("list[str]", body["attributeNames"])
    rows = cast("list[list[object]]", body["results"])
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.requirement("PIP-50")
@pytest.mark.requirement("PIP-53")
def test_columns_become_the_messages_they_came_from(
    spark: SparkSession, broker: BrokerProcess
) -> None:
    """Bodies of all kinds; a row goes to the address in its column; no record of the job stays."""
    given = [encoded(body, at, address="in.all") for at, body in enumerate(BODIES)]
    send(broker.url, "in.all", given)
    rows = browsed(spark, broker.url, "in.all")
    moved = rows.drop("address").selectExpr(
        "*", "if(bodyType = 'object', 'out.objects', 'out.others') as address"
    )
    moved.repartition(2).write.format("amqp").options(url=broker.url).mode("append").save()
    addresses = ("in.all", "out.objects", "out.others")
    before, objects, others = (
        browsed(spark, broker.url, each, schema=TELLING).collect() for each in addresses
    )
    assert {row.bodyType for row in objects} == {"object"}
    came = sorted(map(str, objects + others))
    assert came == sorted(map(str, before))
    assert len(came) == len(BODIES)
    assert sinks(broker.url) == []


@pytest.mark.requirement("PIP-54")
def test_raw_replay_is_exact_to_the_bit(spark: SparkSession, broker: BrokerProcess) -> None:
    given = [encoded(body, at, address="raw.in") for at, body in enumerate(BODIES)]
    send(broker.url, "raw.in", given)
    rows = browsed(spark, broker.url, "raw.in", includeRaw="true")
    rows.write.format("amqp").options(
        url=broker.url, address="raw.out", replay="raw", delivery="at-least-once"
    ).mode("append").save()
    sent = [row.amqp for row in rows.collect()]
    came = [row.amqp for row in browsed(spark, broker.url, "raw.out", includeRaw="true").collect()]
    assert sorted(came) == sorted(sent)
    assert len(sent) == len(BODIES)


class Files:
    """A stream of numbered texts; each file is a batch."""

    def __init__(self, spark: SparkSession, folder: Path, url: str, address: str) -> None:
        self.spark, self.folder, self.url, self.address = spark, folder, url, address
        (folder / "in").mkdir()
        self.count = 0

    def add(self, rows: int = 50) -> None:
        lines = "\n".join(f"{self.count + at}" for at in range(rows))
        (self.folder / "in" / f"{self.count:06}.txt").write_text(lines)
        self.count += rows

    def run(self, **options: str) -> StreamingQuery:
        stream = (
            self.spark.readStream.format("text")
            .option("maxFilesPerTrigger", "1")
            .load(str(self.folder / "in"))
        )
        query = (
            stream.writeStream.format("amqp")
            .options(url=self.url, address=self.address, **options)
            .option("checkpointLocation", str(self.folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def forget_commit(self, batch: int) -> None:
        """Make it look as if the driver was killed between the sink's commit and Spark's own."""
        for name in (f"{batch}", f".{batch}.crc"):
            (self.folder / "checkpoint" / "commits" / name).unlink()

    def arrived(self) -> Counter[str]:
        rows = browsed(self.spark, self.url, self.address).select("bodyText").collect()
        return Counter(row.bodyText for row in rows)


@pytest.mark.requirement("PIP-52")
def test_a_batch_that_is_repeated_is_there_once(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    files = Files(spark, tmp_path, broker.url, "once")
    for _ in range(3):
        files.add()
    query = files.run()
    files.forget_commit(2)
    files.add()
    again = files.run()
    assert [batch["batchId"] for batch in again.recentProgress][:2] == [2, 3]
    assert files.arrived() == Counter(str(each) for each in range(200))
    [kept] = [each for each in sinks(broker.url) if each["name"] == query.id]
    assert (kept["batch"], kept["staged"]) == (3, 0)


@pytest.mark.requirement("PIP-51")
def test_at_least_once_a_repeated_batch_repeats_its_messages_with_their_ids(
    spark: SparkSession, broker: BrokerProcess, tmp_path: Path
) -> None:
    files = Files(spark, tmp_path, broker.url, "at-least-once")
    files.add()
    query = files.run(delivery="at-least-once")
    files.forget_commit(0)
    files.run(delivery="at-least-once")
    assert files.arrived() == Counter({str(each): 2 for each in range(50)})
    rows = browsed(spark, broker.url, "at-least-once").select("JMSMessageID").collect()
    ids = Counter(row.JMSMessageID for row in rows)
    assert set(ids.values()) == {2}
    assert all(each.startswith(f"ID:{query.id}/0/") for each in ids)


def first_attempt_fails(numbers: Iterable[int]) -> Iterator[tuple[str]]:
    """Yield all rows of a task, then fail on its first attempt."""
    for number in numbers:
        yield (str(number),)
    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")


@pytest.mark.requirement("PIP-52")
def test_a_task_that_is_tried_again_sends_its_messages_once(
    spark: SparkSession, broker: BrokerProcess
) -> None:
    """Rows that the first attempt had staged are dropped: with small batches, these are many."""
    numbers = spark.sparkContext.range(0, 2000, numSlices=2)
    failing = spark.createDataFrame(numbers.mapPartitions(first_attempt_fails), "value STRING")
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, "100")
    failing.write.format("amqp").options(url=broker.url, address="retried").mode("append").save()
    spark.conf.unset(name)
    came = browsed(spark, broker.url, "retried").select("bodyText").collect()
    assert Counter(row.bodyText for row in came) == Counter(str(each) for each in range(2000))
    # in the order of partitions and rows
    assert [row.bodyText for row in came] == [str(each) for each in range(2000)]


@pytest.mark.requirement("PIP-32")
@pytest.mark.parametrize(
    ("options", "column", "mode", "told"),
    [
        ({}, "value", "append", "option address: it must be given where rows have no column"),
        ({"address": "a"}, "size", "append", "the sink has no column size; allowed: address, "),
        ({"address": "a", "delivery": "once"}, "value", "append", "allowed: staged, at-least"),
        ({"address": "a"}, "value", "overwrite", "only mode append is allowed"),
        ({"address": "a", "replay": "raw"}, "value", "append", "raw needs the column amqp"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_is(
    spark: SparkSession, options: dict[str, str], column: str, mode: str, told: str
) -> None:
    rows = spark.range(3).selectExpr(f"cast(id as string) as {column}")
    with pytest.raises(PySparkException) as raised:
        rows.write.format("amqp").options(**options).mode(mode).save()
    assert told in str(raised.value)


def test_a_row_that_is_no_message_ends_the_job_and_shows_nothing(
    spark: SparkSession, broker: BrokerProcess
) -> None:
    rows = spark.range(0, 100, numPartitions=2).selectExpr(
        "cast(id as string) as value", "if(id = 99, 11, 4) as JMSPriority"
    )
    writer = rows.write.format("amqp").options(url=broker.url, address="nothing").mode("append")
    with pytest.raises(PySparkException, match="JMSPriority is 0 to 9, not 11"):
        writer.save()
    assert browsed(spark, broker.url, "nothing").count() == 0


def test_without_mode_append_spark_refuses(spark: SparkSession) -> None:
    rows = spark.range(1).selectExpr("cast(id as string) as value")
    with pytest.raises(AnalysisException):
        rows.write.format("amqp").option("address", "a").save()
