"""The archive has each row once, in the right place, however often a batch is written."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pyspark_amqp.engines.engine import Engine, Table
from pyspark_amqp.engines.spark_engine import SparkEngine, spark_table
from pyspark_amqp.jobs import local_archive, spark_archive
from pyspark_amqp.jobs.archive import ArchivedBatch, check_target, source_name
from pyspark_amqp.jobs.compact import compact
from pyspark_amqp.jobs.layout import EVENTS, MESSAGES, Archive, ArchiveError, address_of
from pyspark_amqp.jobs.spark_archive import stream
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.rows.columns import MESSAGE_COLUMNS
from tests.spark.event_logs import Writer

NIGHT: Final = datetime(2026, 1, 31, 23, 59, 59, 999_999, tzinfo=UTC)
MORNING: Final = datetime(2026, 2, 1, tzinfo=UTC)

ODD: Final = ("orders", "007", "a/b c", "ä=ö%2F", "null", "date=1")
"""Addresses with characters that need care in the name of a folder."""


def messages(engine: Engine, numbers: Sequence[int], addresses: Sequence[str] = ODD) -> Table:
    """Return a message of each number at each address; the odd numbers came in the morning."""
    rows = []
    for number in numbers:
        for address in addresses:
            row: dict[str, object] = dict.fromkeys(MESSAGE_COLUMNS)
            row["address"] = address
            row["position"] = number * 10 + 4
            row["enqueuedAt"] = MORNING if number % 2 else NIGHT
            row["JMSMessageID"] = f"ID:{number}"
            row["amqp"] = bytes([0, 0xFF, number]) + address.encode()
            rows.append(tuple(row.values()))
    return engine.table(MESSAGE_COLUMNS, rows)


def snapshot(archive: Archive, browsed: Table) -> ArchivedBatch:
    """Archive browsed messages by their engine."""
    if browsed.engine.name == "spark":
        return spark_archive.snapshot(archive, spark_table(browsed))
    return local_archive.snapshot(archive, browsed)


def read_by_duckdb(
    archive: Archive, what: str, columns: str, condition: str = "true", order: str = "all"
) -> list[tuple[object, ...]]:
    files = f"{archive.data(what)}/**/*.parquet"
    with duckdb.connect() as other:
        return other.execute(
            f"select {columns} from read_parquet('{files}', hive_partitioning = true,"
            f" hive_types_autocast = false) where {condition} order by {order}"
        ).fetchall()


@pytest.mark.requirement("PIP-60")
@pytest.mark.requirement("PIP-61")
@pytest.mark.requirement("PIP-65")
def test_messages_lie_by_date_and_address_bit_by_bit(engine: Engine, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    written = snapshot(archive, messages(engine, [0, 1]))
    assert written.rows == 2 * len(ODD)
    folders = archive.folders(MESSAGES)
    assert {address_of(folder) for folder in folders} == set(ODD)
    expected = [
        (address, f"2026-0{day}", bytes([0, 0xFF, number]) + address.encode())
        for number, day in ((0, "1-31"), (1, "2-01"))
        for address in ODD
    ]
    read = archive.read(engine, MESSAGES)
    found = query("SELECT address, date, amqp FROM {read}", read=read).rows()
    assert sorted(
        (*(row[n] for n in ("address", "date")), bytes(row["amqp"])) for row in found
    ) == sorted(expected)
    assert read_by_duckdb(archive, MESSAGES, "address, date, amqp") == sorted(expected)


@pytest.mark.requirement("PIP-60")
def test_what_was_archived_before_is_not_archived_again(engine: Engine, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    assert snapshot(archive, messages(engine, [1, 2], ["q"])).rows == 2
    assert snapshot(archive, messages(engine, [1, 2, 3], ["q"])).rows == 1
    assert snapshot(archive, messages(engine, [1, 2, 3], ["q"])).rows == 0
    names = read_by_duckdb(archive, MESSAGES, "JMSMessageID")
    assert names == [("ID:1",), ("ID:2",), ("ID:3",)]


class Incoming:
    """A stream that a test fills: files with event log rows in a folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.told = Writer()
        folder.mkdir()

    def add(self, count: int) -> None:
        self.told.rows.clear()
        for _ in range(count):
            self.told.note("enqueued", self.told.id + 1)
        spark_table(self.told.table(SparkEngine(self.spark))).frame.coalesce(1).write.mode(
            "append"
        ).parquet(str(self.folder))

    def archive(self, archive: Archive) -> list[ArchivedBatch]:
        """Run the job as with `--once`; return the batches that it wrote."""
        schema = spark_table(self.told.table(SparkEngine(self.spark))).frame.schema
        rows = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        told: list[ArchivedBatch] = []
        stream(
            archive, rows.parquet(str(self.folder)), EVENTS, "events", tell=told.append
        ).awaitTermination()
        return told


def ids(archive: Archive) -> list[int]:
    return [int(str(row[0])) for row in read_by_duckdb(archive, EVENTS, "id")]


@pytest.mark.requirement("PIP-60")
def test_a_batch_that_is_written_again_replaces_itself(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    incoming = Incoming(spark, tmp_path / "incoming")
    incoming.add(5)
    incoming.add(5)
    assert [each.rows for each in incoming.archive(archive)] == [5, 5]
    assert ids(archive) == list(range(1, 11))
    # as if the driver had been killed after writing the batch, before Spark recorded it
    last = archive.checkpoint("events") / "commits" / "1"
    last.unlink()
    (last.parent / ".1.crc").unlink(missing_ok=True)
    # and as if it had written only half, in a file that is not written this time
    (written,) = [file for file in archive.files(EVENTS) if "-b0000000001-" in file.name]
    stray = written.with_name(written.name.replace("-0.parquet", "-7.parquet"))
    stray.write_bytes(written.read_bytes())
    written.unlink()
    incoming.add(3)
    assert [each.batch for each in incoming.archive(archive)] == [1, 2]
    assert ids(archive) == list(range(1, 14))
    assert not list(archive.staging.iterdir())


@pytest.mark.requirement("PIP-60")
def test_rows_that_are_not_read_again_stay_archived(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    incoming = Incoming(spark, tmp_path / "incoming")
    incoming.add(5)
    incoming.add(5)
    incoming.archive(archive)
    for left in (archive.checkpoint("events") / "commits").glob("*1*"):
        left.unlink()
    # as if the broker had removed rows of the last batch meanwhile
    (file,) = [
        each
        for each in incoming.folder.glob("*.parquet")
        if min(pq.read_table(each)["id"].to_pylist()) == 6
    ]
    rows = pq.read_table(file)
    less = rows.filter(pc.greater(rows["id"], 8))
    pq.write_table(less, file, use_deprecated_int96_timestamps=True)
    file.with_name(f".{file.name}.crc").unlink()
    assert [each.batch for each in incoming.archive(archive)] == [1]
    assert ids(archive) == list(range(1, 11))
    read = archive.read(SparkEngine(spark), EVENTS)
    assert query("SELECT count(at) AS n FROM {read}", read=read).rows() == [{"n": 10}]


@pytest.mark.requirement("PIP-60")
def test_a_driver_killed_while_it_wrote_its_first_offset_may_begin_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark itself refuses such a checkpoint (`test_spark_behaviour`)."""
    archive = Archive(tmp_path / "archive")
    offsets = archive.checkpoint("events") / "offsets"
    offsets.mkdir(parents=True)
    for name in (".0.0b9d2a.tmp", "..0.0b9d2a.tmp.crc"):
        (offsets / name).write_text("v1")
    incoming = Incoming(spark, tmp_path / "incoming")
    incoming.add(2)
    assert [each.rows for each in incoming.archive(archive)] == [2]
    assert not list(offsets.glob("*.tmp*"))


@pytest.mark.requirement("PIP-62")
def test_a_batch_that_may_be_written_again_is_not_compacted(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = Archive(tmp_path / "archive")
    incoming = Incoming(spark, tmp_path / "incoming")
    for _ in range(3):
        incoming.add(2)
    incoming.archive(archive)
    done = compact(archive, [EVENTS])
    assert (done.before, done.after, done.rows) == (3, 2, 4)
    assert ids(archive) == list(range(1, 7))
    last = archive.checkpoint("events") / "commits" / "2"
    last.unlink()
    (last.parent / ".2.crc").unlink(missing_ok=True)
    incoming.archive(archive)
    assert ids(archive) == list(range(1, 7))


@pytest.mark.requirement("PIP-60")
def test_who_deletes_the_checkpoint_loses_nothing(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive(tmp_path / "archive")
    incoming = Incoming(spark, tmp_path / "incoming")
    incoming.add(2)
    incoming.archive(archive)
    shutil.rmtree(archive.checkpoint("events"))
    incoming.archive(archive)
    assert ids(archive) == [1, 1, 2, 2], "what is read again comes again, in place of nothing"


@pytest.mark.requirement("PIP-69")
def test_where_there_is_nothing_to_read_it_says_what_to_do(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    with pytest.raises(ArchiveError, match="is no folder"):
        Archive(tmp_path / "none").read(duckdb_engine, MESSAGES)
    archive = Archive(tmp_path)
    with pytest.raises(ArchiveError, match="has no events: `jms-broker pipeline archive"):
        archive.read(duckdb_engine, EVENTS)
    (tmp_path / "holiday.jpg").touch()
    with pytest.raises(ArchiveError, match="holiday"):
        check_target(archive, [EVENTS])
    with pytest.raises(ArchiveError, match="is a file"):
        check_target(Archive(tmp_path / "holiday.jpg"), [EVENTS])
    check_target(Archive(tmp_path / "new"), [EVENTS])
    assert (tmp_path / "new" / "events").is_dir()


def test_an_archive_of_an_earlier_version_keeps_its_checkpoint(tmp_path: Path) -> None:
    given = {"mode": "events", "failOnDataLoss": "false"}
    assert source_name(Archive(tmp_path), EVENTS, given).startswith("events-")
    (tmp_path / "journal").mkdir()
    digest = sha256(b"journal\n\n\n\n").hexdigest()[:12]  # as earlier versions made it
    assert source_name(Archive(tmp_path), EVENTS, given) == f"journal-{digest}"
