"""The event log as a table and as a stream, over every way of reading it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from pyspark_amqp.rows.columns import (
    EVENT_LOG_COLUMNS,
    MESSAGE_COLUMNS,
    ddl_of,
    message_columns,
    schema_of,
)
from tests.interop.broker_process import BrokerProcess
from tests.spark.sent import send, texts
from tests.spark.session import python_path

MESSAGES: Final = 300
SETTINGS: Final = """
store = "sqlite:///store.db"
[[address]]
pattern = "told*"
event_log = true
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> BrokerProcess:
    """Return a broker that three hundred messages were sent to, with an event log of that."""
    process = BrokerProcess(tmp_path_factory.mktemp("told"), settings=SETTINGS)
    send(process.url, "told", texts(MESSAGES - 100, address="told"))
    send(process.url, "told.too", texts(100, address="told.too"))
    return process


@pytest.fixture(scope="module")
def store(told: BrokerProcess) -> str:
    """Return the URL of that broker's store; the broker has been stopped."""
    if told.running:
        assert told.stop() == 0
    return f"sqlite:///{told.log.parent / 'store.db'}"


def events(spark: SparkSession, **options: str) -> DataFrame:
    return spark.read.format("amqp").options(mode="events", **options).load()


@pytest.mark.parametrize("columns", [MESSAGE_COLUMNS, message_columns("json"), EVENT_LOG_COLUMNS])
@pytest.mark.requirement("PIP-30")
def test_the_schema_of_arrow_is_what_spark_makes_of_its_own(
    spark: SparkSession, columns: dict[str, str]
) -> None:
    of_spark = to_arrow_schema(spark.createDataFrame([], ddl_of(columns)).schema, timezone="UTC")
    assert schema_of(columns).equals(of_spark)


@pytest.mark.requirement("PIP-34")
def test_a_running_broker_is_asked(spark: SparkSession, told: BrokerProcess) -> None:
    rows = events(spark, url=told.url, numPartitions="2").orderBy("id").collect()
    assert [row.kind for row in rows] == ["enqueued"] * MESSAGES
    assert [row.id for row in rows] == list(range(1, MESSAGES + 1))
    assert {row.address for row in rows} == {"told", "told.too"}
    assert {row.deliverAt for row in rows} == {None}
    assert rows[0].messageId == "ID:told-0"
    assert rows[0].at.year >= 2024


@pytest.mark.requirement("PIP-34")
def test_rows_are_chosen_by_address_kind_and_id(spark: SparkSession, told: BrokerProcess) -> None:
    assert events(spark, url=told.url, address="told.too").count() == 100
    assert events(spark, url=told.url, kind="accepted").count() == 0
    some = events(spark, url=told.url, startingPosition="11", endingPosition="21")
    assert sorted(row.id for row in some.select("id").collect()) == list(range(11, 21))
    late = events(spark, url=told.url, startingPosition='{"timestamp": 9000000000000}')
    assert late.count() == 0


@pytest.mark.requirement("PIP-35")
@pytest.mark.requirement("PIP-78")
def test_a_stream_has_every_row_once_and_goes_on_where_it_was(
    spark: SparkSession, told: BrokerProcess, tmp_path: Path
) -> None:
    def run() -> list[int]:
        stream = (
            spark.readStream.format("amqp")
            .options(mode="events", url=told.url, maxMessagesPerTrigger="120")
            .load()
        )
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        behind.extend(
            json.loads(batch["sources"][0]["latestOffset"])["rowsBehind"]
            for batch in query.recentProgress
        )
        return [batch["numInputRows"] for batch in query.recentProgress]

    behind: list[int] = []
    before = events(spark, url=told.url).count()
    assert run()[:3] == [120, 120, before - 240]
    assert behind[:3] == [before - 120, before - 240, 0]
    send(told.url, "told", texts(20, address="told", first=MESSAGES))
    assert run()[0] == 20
    rows = spark.read.parquet(str(tmp_path / "out")).select("id").collect()
    assert sorted(row.id for row in rows) == list(range(1, before + 21))


@pytest.mark.requirement("PIP-36")
def test_the_store_of_a_stopped_broker_gives_the_same_rows(spark: SparkSession, store: str) -> None:
    rows = events(spark, storeUrl=store).orderBy("id").collect()
    assert len(rows) >= MESSAGES
    assert [row.id for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0].messageId == "ID:told-0"
    assert events(spark, storeUrl=store, address="told.too", kind="enqueued").count() == 100


@pytest.mark.requirement("PIP-31")
def test_a_schema_of_the_user_is_what_is_read(spark: SparkSession, store: str) -> None:
    reader = spark.read.format("amqp").options(mode="events", storeUrl=store)
    some = reader.schema("kind STRING, id BIGINT").load()
    assert some.columns == ["kind", "id"]
    assert some.where("id = 7").collect() == [("enqueued", 7)]


@pytest.mark.requirement("PIP-32")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"mode": "tail"}, "option mode: 'tail' is not allowed; allowed: lease, browse"),
        ({"mode": "events", "adress": "a"}, "did you mean address?"),
        ({"mode": "events", "selector": "a = 1"}, "option selector: it is not for mode"),
    ],
)
def test_a_bad_option_is_told_before_there_is_a_plan(
    spark: SparkSession, options: dict[str, str], told: str
) -> None:
    with pytest.raises(PySparkException) as raised:
        spark.read.format("amqp").options(**options).load()
    assert told in str(raised.value)


@pytest.mark.requirement("PIP-32")
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("id INT", "the column id as int; allowed: bigint"),
        ("size INT", "a column size; allowed: id, at, kind"),
    ],
)
def test_a_bad_schema_is_told_while_the_query_is_planned(
    spark: SparkSession, schema: str, told: str
) -> None:
    frame = spark.read.format("amqp").options(mode="events").schema(schema).load()
    with pytest.raises(PySparkException) as raised:
        frame.count()
    assert told in str(raised.value)


@pytest.mark.requirement("PIP-48")
def test_looking_for_sources_imports_nothing_before_this_one_is_meant(tmp_path: Path) -> None:
    program = (
        "import sys, pyspark.sql.datasource; before = set(sys.modules); import pyspark_amqp;"
        "pyspark_amqp.DefaultSource; print(sorted(set(sys.modules) - before))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(python_path(tmp_path))},
    )
    told = ["pyspark_amqp", "pyspark_amqp.default_source", "pyspark_amqp.one_line"]
    assert printed.stdout.strip() == str(told), "and none of the libraries"


def test_arrow_has_the_types_that_are_written_down() -> None:
    assert schema_of(EVENT_LOG_COLUMNS).field("at").type == pa.timestamp("us", tz="UTC")
