"""The behaviour of Spark that the source and the sink rely on, tested with Spark itself."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark import toy
from tests.spark.toy import ToySource, UnforkedToySource, calls

pytestmark = pytest.mark.requirement("PIP-70")


@pytest.fixture(autouse=True, scope="module")
def registered(spark: SparkSession) -> None:
    spark.dataSource.register(ToySource)


class Toys:
    """Queries from the toy source, with their checkpoint and their notes in one folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.notes = folder / "calls"
        self.checkpoint = folder / "checkpoint"
        self.plain = {"calls": str(self.notes), "checkpoint": str(self.checkpoint)}

    def stream(self, total: int) -> DataFrame:
        return self.spark.readStream.format("toy").options(**self.plain, total=str(total)).load()

    def into_toy(self, total: int, **options: str) -> StreamingQuery:
        """Run a query over all numbers into the toy sink, to its end."""
        writer = self.stream(total).writeStream.format("toy").options(**self.plain, **options)
        query = (
            writer.option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    def noted(self, *names: str) -> list[toy.Call]:
        return calls(self.notes, *names)


@pytest.fixture
def toys(spark: SparkSession, tmp_path: Path) -> Toys:
    return Toys(spark, tmp_path)


@pytest.fixture(scope="module")
def three_batches(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Toys:
    """Return a finished run over thirty numbers, ten a batch."""
    toys = Toys(spark, tmp_path_factory.mktemp("three-batches"))
    toys.into_toy(30)
    return toys


def starts(noted: list[toy.Call]) -> list[int]:
    return [call["start"]["at"] for call in noted]


def test_a_first_offset_that_is_half_written_stops_every_start_until_it_is_deleted(
    toys: Toys,
) -> None:
    """Only this file is in the way: the documentation says to delete it, and nothing else."""
    half = toys.checkpoint / "offsets" / ".0.0b9d2a.tmp"
    half.parent.mkdir(parents=True)
    half.write_text("v1")
    for _ in range(2):
        with pytest.raises(PySparkException, match="STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"):
            toys.into_toy(10)
    half.unlink()
    toys.into_toy(10)
    assert toys.noted("commit") == []
    later = half.with_name(".1.0b9d2a.tmp")
    later.write_text("v1")
    toys.into_toy(20)
    assert starts(toys.noted("latestOffset"))[-1] == 20


def test_a_batch_ends_in_the_commit_log_before_the_next_is_asked_for(
    three_batches: Toys,
) -> None:
    asked = three_batches.noted("latestOffset")
    assert starts(asked) == [0, 10, 20, 30]
    assert [call["committed"] for call in asked] == [[], [0], [0, 1], [0, 1, 2]]


def test_available_now_asks_once_more_behind_the_last_batch(three_batches: Toys) -> None:
    """The last batch is settled at this call, since its commit never comes."""
    last = three_batches.noted("latestOffset")[-1]
    assert last["start"]["at"] == 30
    assert [call["end"]["at"] for call in three_batches.noted("commit")] == [10, 20]


def test_available_now_is_announced_before_the_first_question(three_batches: Toys) -> None:
    names = ("prepareForTriggerAvailableNow", "latestOffset")
    order = [call["call"] for call in three_batches.noted(*names)]
    assert order == [names[0], *[names[1]] * 4]


def test_an_idle_stream_goes_on_asking_from_where_it_stands(toys: Toys) -> None:
    query = (
        toys.stream(10)
        .writeStream.format("noop")
        .option("checkpointLocation", str(toys.checkpoint))
        .start()
    )
    query.processAllAvailable()
    idle = [call for call in toys.noted("latestOffset") if call["start"]["at"] == 10]
    query.stop()
    assert idle
    assert all(call["committed"] == [0] for call in idle)


@pytest.mark.parametrize(
    "available_now",
    [
        pytest.param(True, id="by a stream that has read what was there"),
        pytest.param(False, id="by a stream that is stopped"),
    ],
)
def test_the_reader_is_never_told_to_stop(
    toys: Toys, monkeypatch: pytest.MonkeyPatch, *, available_now: bool
) -> None:
    # a forked process hears too late of the signal with which Spark ends the reader's
    monkeypatch.setattr(toys.spark.sparkContext, "pythonExec", sys.executable)
    toys.spark.dataSource.register(UnforkedToySource)
    rows = toys.spark.readStream.format("unforked toy").options(**toys.plain, total="20").load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(toys.checkpoint))
    query = (writer.trigger(availableNow=True) if available_now else writer).start()
    query.processAllAvailable()
    query.stop()
    assert toys.noted("streamReader")
    assert toys.noted("stop") == []


def test_offsets_are_asked_of_one_process_which_may_have_threads(three_batches: Toys) -> None:
    names = ("initialOffset", "latestOffset", "partitions", "commit", "beat")
    noted = three_batches.noted(*names)
    assert len({call["pid"] for call in noted}) == 1
    assert {call["call"] for call in noted} == set(names)


def test_the_initial_offset_is_made_anew_where_batch_0_was_not_committed(toys: Toys) -> None:
    with pytest.raises(PySparkException):
        toys.into_toy(10, die="0")
    (planned,) = toys.noted("partitions")
    before = toys.noted("initialOffset")
    toys.into_toy(10)
    after = toys.noted("initialOffset")[len(before) :]
    again = toys.noted("partitions")[1]
    assert again["start"]["minted"] in {call["fresh"] for call in after}, (
        "the new one comes as start"
    )
    assert again["end"] == planned["end"], "the end is the one that was written down"


def test_an_unfinished_batch_is_read_again_without_asking_for_offsets(toys: Toys) -> None:
    with pytest.raises(PySparkException):
        toys.into_toy(30, die="1")
    first_run = len(toys.noted())
    toys.into_toy(30)
    second = toys.noted()[first_run:]
    order = [call["call"] for call in second if call["call"] in {"partitions", "latestOffset"}]
    assert order[0] == "partitions"
    numbers = Counter(
        number for call in second if call["call"] == "write" for number in call["numbers"]
    )
    assert numbers == Counter(range(10, 30))


def test_tasks_know_their_batch_and_the_query(toys: Toys) -> None:
    one = toys.into_toy(20)
    tasks = toys.noted("read", "write")
    assert {call["batch"] for call in tasks} == {"0", "1"}
    assert {call["query"] for call in tasks} == {str(one.id)}
    two = toys.into_toy(30)
    assert two.id == one.id, "the checkpoint keeps it"
    assert two.runId != one.runId
    assert {call["query"] for call in toys.noted("write")} == {str(one.id)}


def test_the_sink_s_driver_side_is_made_for_each_batch(three_batches: Toys) -> None:
    assert [call["batch"] for call in three_batches.noted("writer.commit")] == [0, 1, 2]
    assert len(three_batches.noted("streamWriter")) > 2


def test_each_action_reads_the_partitions_again(toys: Toys) -> None:
    def act(batch: DataFrame, _: int) -> None:
        for _ in range(3):
            batch.count()

    query = (
        toys.stream(10)
        .writeStream.foreachBatch(act)
        .option("checkpointLocation", str(toys.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    reads = Counter(call["first"] for call in toys.noted("read"))
    assert reads == {0: 3, 5: 3}


def test_a_task_that_fails_is_tried_again_under_another_attempt(toys: Toys) -> None:
    toys.into_toy(10, failures="1")
    written = toys.noted("write")
    assert len({call["attempt"] for call in written}) == len(written)
    assert Counter(call["partition"] for call in written) == {0: 2, 1: 2}
    assert toys.noted("writer.abort") == []
    assert [call["rows"] for call in toys.noted("writer.commit")] == [[5, 5]]


def test_a_task_that_fails_too_often_aborts_the_batch(toys: Toys) -> None:
    with pytest.raises(PySparkException, match="a task that fails"):
        toys.into_toy(10, failures="3")
    (aborted,) = toys.noted("writer.abort")
    assert aborted["batch"] == 0
    assert any(aborted["none"])
    assert toys.noted("writer.commit") == []


def test_a_task_must_return_a_message(toys: Toys) -> None:
    with pytest.raises(PySparkException, match="WriterCommitMessage"):
        toys.into_toy(10, message="none")


def test_a_batch_of_arrow_must_have_the_very_schema(toys: Toys) -> None:
    source = toys.spark.read.format("toy").options(**toys.plain)
    assert source.load().count() == 10
    with pytest.raises(PySparkException, match="schema"):
        source.option("nullable", "false").load().collect()


def test_columns_are_not_pruned_but_a_schema_of_the_user_s_arrives(toys: Toys) -> None:
    source = toys.spark.read.format("toy").options(**toys.plain)
    assert source.load().select("word").count() == 10
    assert source.schema("word STRING").load().collect()[3].word == "3"
    asked = [call["columns"] for call in toys.noted("reader")]
    assert asked[0] == ["number", "word"]
    assert asked[-1] == ["word"]


def test_a_view_in_sql_has_its_options_and_a_table_has_none(toys: Toys) -> None:
    options = ", ".join(f"{name} '{value}'" for name, value in toys.plain.items())
    toys.spark.sql(f"CREATE TEMPORARY VIEW toy_view USING toy OPTIONS ({options})")
    toys.spark.sql(f"CREATE TABLE toy_table (word STRING) USING toy OPTIONS ({options})")
    try:
        assert toys.spark.table("toy_view").count() == 10
        with pytest.raises(PySparkException, match="KeyError: 'calls'"):
            toys.spark.table("toy_table").count()
    finally:
        toys.spark.sql("DROP TABLE toy_table")
        toys.spark.catalog.dropTempView("toy_view")


def test_a_reader_that_takes_filters_needs_a_setting(toys: Toys) -> None:
    source = toys.spark.read.format("toy").options(**toys.plain, pushdown="true")
    with pytest.raises(AnalysisException, match="filterPushdown"):
        source.load().where("number > 3").collect()
    toys.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert source.load().where("number > 3").count() == 6
    finally:
        toys.spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert any("number" in str(call["filters"]) for call in toys.noted("pushFilters"))


def test_progress_tells_what_is_still_to_come(toys: Toys) -> None:
    query = toys.into_toy(30)
    assert query.lastProgress is not None
    (source,) = query.lastProgress["sources"]
    latest = source["latestOffset"]
    assert (json.loads(latest) if isinstance(latest, str) else latest) == {"at": 30}


def test_times_cross_in_microseconds_and_in_utc(spark: SparkSession) -> None:
    rows = spark.sql("SELECT TIMESTAMP_MICROS(1700000000123456) AS at").toArrow()
    (moment,) = rows.column("at").to_pylist()
    wanted = dt.datetime.fromtimestamp(1_700_000_000, dt.UTC)
    assert moment == wanted.replace(microsecond=123456)
