"""The archive job: write messages and the event log to Parquet, each row once despite kills.

Spark writes a batch into `_staging`, and its files are then renamed to their places, under names
that have the query and the batch. Spark may run the last batch once more, after a kill or because
its own log was not written: the rows are the same (a lease's batch, a range of the event log), the
files get the same names, and other files that the batch had written are deleted. Spark's own file
sink would list its files in `_spark_metadata`, which no other reader looks at: DuckDB would see
rows twice.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pyspark_amqp.jobs.layout import (
    COLUMNS,
    EVENTS,
    FILE,
    FOLDERS,
    MESSAGES,
    Archive,
    ArchiveError,
    file_name,
    files_in,
    sync,
)

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

ROWS_PER_FILE: Final = 1_000_000

SAME: Final = ("address", "subscription", "position", "enqueuedAt", "JMSMessageID")
"""Columns that are the same in two rows of an archive if they are of one message."""


@dataclass(frozen=True)
class ArchivedBatch:
    """The files that a batch has put into the archive, and their rows and bytes."""

    batch: int
    rows: int
    bytes: int
    paths: tuple[Path, ...]


def dated(rows: DataFrame, what: str) -> DataFrame:
    """Return the rows with `date`, the day (UTC) of a message's arrival or of an event.

    A message without a time of arrival gets the day of its JMSTimestamp, or else today.
    """
    moment = (
        F.coalesce("enqueuedAt", "JMSTimestamp", F.current_timestamp())
        if what == MESSAGES
        else F.col("at")
    )
    return rows.select(F.date_format(moment, "yyyy-MM-dd").alias("date"), *COLUMNS[what])


def unseen(rows: DataFrame, archived: DataFrame) -> DataFrame:
    """Return those of `rows` that are not archived yet."""
    both = [rows[name].eqNullSafe(archived[name]) for name in SAME]
    condition = both[0]
    for each in both[1:]:
        condition &= each
    return rows.join(archived, condition, "anti")


def source_name(archive: Archive, what: str, options: Mapping[str, str]) -> str:
    """Return the name of the checkpoint of a source: one name for the same options."""
    stored = archive.stored_name(what)
    mode = options["mode"] if what == MESSAGES else stored
    read = [options.get(name, "") for name in ("address", "subscription", "topic", "selector")]
    digest = sha256("\n".join((mode, *read)).encode()).hexdigest()[:12]
    return f"{stored}-{digest}"


def query_of(checkpoint: Path) -> str:
    """Return the text that distinguishes the files of a query from those of others.

    A checkpoint made anew has another one, so its first batches replace nothing.
    """
    told = json.loads((checkpoint / "metadata").read_text().splitlines()[-1])
    return str(told["id"]).replace("-", "")[:12]


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
        if staged.exists():
            shutil.rmtree(staged)
        (
            dated(rows, self._what)
            .write.partitionBy(*FOLDERS[self._what])
            .option("maxRecordsPerFile", self._rows_per_file)
            .option("compression", "zstd")
            .parquet(str(staged))
        )
        with self._archive.locked():
            written = place(self._archive, self._what, query, batch, staged)
            if self._last is None or batch <= self._last:
                # the first batch that this process writes may have been begun by another process
                forget(self._archive, self._what, query, batch, but=written.paths)
        self._last = batch
        shutil.rmtree(staged)
        return written


def place(archive: Archive, what: str, query: str, batch: int, staged: Path) -> ArchivedBatch:
    """Move the files of a batch from `staged` to their places, durably."""
    moved: list[Path] = []
    rows = size = 0
    pattern = "/".join(["*=*"] * len(FOLDERS[what]))
    for folder in sorted(staged.glob(pattern)):
        target = archive.data(what) / folder.relative_to(staged)
        target.mkdir(parents=True, exist_ok=True)
        for file in files_in(folder):
            rows += pq.read_metadata(file).num_rows
            size += file.stat().st_size
            to = target / file_name(query, batch, len(moved))
            sync(file)
            file.replace(to)
            moved.append(to)
        sync(target)
    return ArchivedBatch(batch, rows, size, tuple(moved))


def forget(archive: Archive, what: str, query: str, batch: int, but: Sequence[Path]) -> None:
    """Delete the files of a batch that was written again, except those in `but`."""
    kept = set(but)
    for file in archive.files(what):
        name = FILE.fullmatch(file.name)
        if name and name["query"] == query and int(name["batch"]) == batch and file not in kept:
            file.unlink()


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


def snapshot(archive: Archive, rows: DataFrame) -> ArchivedBatch:
    """Archive browsed messages, except those that the archive already has."""
    if archive.has(MESSAGES):
        archived = archive.read(rows.sparkSession, MESSAGES)
        rows = unseen(rows, archived.select(*SAME))
    return ArchiveBatchWriter(archive, MESSAGES, partial(str, uuid4().hex[:12])).write(rows, 0)


def check_target(archive: Archive, whats: Sequence[str]) -> None:
    """Raise ArchiveError if the folder is in use for something else; else create its folders."""
    root = archive.root
    if root.exists() and not root.is_dir():
        raise ArchiveError(f"{root} is a file: name a folder for the archive, it is made if needed")
    ours = {*FOLDERS, "_staging", "_checkpoints", "_lock"}
    if root.is_dir() and not archive.has(MESSAGES) and not archive.has(EVENTS):
        strange = sorted(each.name for each in root.iterdir() if each.name not in ours)
        if strange:
            raise ArchiveError(
                f"{root} has {strange[0]!r} in it and no archive: name an empty or a new folder"
            )
    for what in whats:
        archive.data(what).mkdir(parents=True, exist_ok=True)
