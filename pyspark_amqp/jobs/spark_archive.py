"""The archive job on Spark: its queries, whose batches are written by `foreachBatch`.

Spark's own file sink would list its files in `_spark_metadata`, which no other reader looks at:
DuckDB would see rows twice.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_amqp.engines.spark_engine import SparkEngine, SparkTable, spark_table
from pyspark_amqp.jobs.archive import (
    ROWS_PER_FILE,
    ArchivedBatch,
    BatchName,
    dated,
    new_of,
    new_query,
    place,
    source_name,
)
from pyspark_amqp.jobs.layout import (
    COLUMNS,
    EVENTS,
    FOLDERS,
    MESSAGES,
    METADATA,
    Archive,
    spark_query,
)
from pyspark_amqp.jobs.statements import query as query_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


Tell = Callable[[ArchivedBatch], None]


def query_of(checkpoint: Path) -> str:
    """Return the text that distinguishes the files of a query from those of others.

    A checkpoint made anew has another one, so its first batches replace nothing.
    """
    return spark_query(checkpoint / METADATA)


class ArchiveBatchWriter:
    """The writer of one query's batches, which `foreachBatch` calls."""

    def __init__(
        self,
        archive: Archive,
        what: str,
        query: Callable[[], str],
        tell: Callable[[ArchivedBatch], None] = lambda _: None,
        rows_per_file: int = ROWS_PER_FILE,
    ) -> None:
        self._archive: Final = archive
        self._what: Final = what
        self._query: Final = query
        self._tell: Final = tell
        self._rows_per_file: Final = rows_per_file
        self._last: int | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        self._tell(self.write(rows, batch))

    def write(self, rows: DataFrame, batch: int) -> ArchivedBatch:
        """Write a batch into the archive, in place of its files from an earlier attempt."""
        query = self._query()
        staged = self._archive.staging / f"{query}-{batch}"
        table = SparkTable(SparkEngine(rows.sparkSession), rows)
        if staged.exists():
            shutil.rmtree(staged)
        (
            spark_table(dated(table, self._what))
            .frame.write.partitionBy(*FOLDERS[self._what])
            .option("maxRecordsPerFile", self._rows_per_file)
            .option("compression", "zstd")
            .parquet(str(staged))
        )
        table.release()
        # the first batch that this process writes may have been begun by another process
        may_be_there = self._last is None or batch <= self._last
        name = BatchName(self._what, query, batch)
        written = place(self._archive, name, staged, may_be_there=may_be_there)
        self._last = batch
        shutil.rmtree(staged)
        return written


def stream(
    archive: Archive,
    rows: DataFrame,
    what: str,
    name: str,
    *,
    tell: Callable[[ArchivedBatch], None] = lambda _: None,
    every: str | None = None,
) -> StreamingQuery:
    """Start to archive a stream: what there is now, or a batch each `every`, such as 1 minute."""
    checkpoint = archive.checkpoint(name)
    archive.clear_first_offset(name)
    write = ArchiveBatchWriter(archive, what, partial(query_of, checkpoint), tell)
    writer = (
        rows.writeStream.foreachBatch(write)
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
    )
    if every is None:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=every).start()


def snapshot(archive: Archive, rows: SparkTable) -> ArchivedBatch:
    """Archive browsed messages, except those that the archive already has."""
    frame = spark_table(new_of(archive, rows)).frame
    return ArchiveBatchWriter(archive, MESSAGES, new_query).write(frame, 0)


def run(
    archive: Archive,
    engine: SparkEngine,
    sources: Mapping[str, Mapping[str, str]],
    tell: Mapping[str, Tell],
    every: str | None,
) -> None:
    """Archive what there is now, or without end, with a batch each `every`."""
    session = engine.session
    # queries of a job before this one, in the same session, have terminated
    session.streams.resetTerminated()
    running: list[StreamingQuery] = []
    for what, given in sources.items():
        if given["mode"] == "browse":
            tell[what](snapshot(archive, engine.source(given, list(COLUMNS[what]))))
            continue
        name = source_name(archive, what, given)
        options = dict(given)
        if what == EVENTS and not archive.has_begun(name):
            options["startingPosition"] = _first_row(archive, engine)
        rows = session.readStream.format("amqp").options(**options).load()
        query = stream(archive, rows, what, name, tell=tell[what], every=every)
        if every is None:
            query.awaitTermination()
        else:
            running.append(query)
    if running:
        session.streams.awaitAnyTermination()
        for query in running:
            query.stop()
            if (failed := query.exception()) is not None:
                raise failed


def _first_row(archive: Archive, engine: SparkEngine) -> str:
    """Return the first position in the event log that is not archived.

    It is used also if the checkpoint was lost.
    """
    if not archive.has(EVENTS):
        return "earliest"
    archived = archive.read(engine, EVENTS)
    (last,) = query_rows("SELECT max(id) AS id FROM {archived}", archived=archived).rows()
    return str(last["id"] + 1)
