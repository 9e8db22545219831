"""The archive job on DuckDB: its batches, and the progress that it records.

The progress of a source is a file beside Spark's checkpoints. It names the batch before its files
are written, and says so when they are at their places. A batch that was begun is written again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_amqp.engines.duckdb_engine import BYTES_AT_ONCE, ROWS_AT_ONCE, duck_table
from pyspark_amqp.jobs.archive import (
    ROWS_PER_FILE,
    ArchivedBatch,
    BatchName,
    dated,
    new_of,
    new_query,
    place,
    schema_in_files,
    source_name,
)
from pyspark_amqp.jobs.layout import (
    COLUMNS,
    EVENTS,
    FOLDERS,
    MESSAGES,
    Archive,
    damaged,
    folder_name,
    read_record,
    write_durably,
)
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import LEASE_BATCH_MESSAGES_MAX, read_options
from pyspark_amqp.rows.columns import schema_of
from pyspark_amqp.source import events
from pyspark_amqp.source.lease import Lease, LeaseLostError, new_lease_id
from pyspark_amqp.source.messages import rows, slice_of_lease
from pyspark_amqp.source.places import subscribed

if TYPE_CHECKING:
    from pyspark_amqp.engines.duckdb_engine import DuckEngine
    from pyspark_amqp.engines.engine import Table

Values = tuple[str, ...]
Tell = Callable[[ArchivedBatch], None]


@dataclass(frozen=True)
class RecordedBatch:
    """The progress of a source: its query, and the last batch that was begun.

    `behind` and `until` are the range of ids of a batch of the event log; `lease` is the name of
    the lease of a batch of messages.
    """

    query: str
    batch: int = -1
    done: bool = True
    behind: int = 0
    until: int = 0
    lease: str = ""


def read_progress(file: Path) -> RecordedBatch | None:
    """Return the recorded progress, None if there is none; ArchiveError if it is damaged."""
    try:
        told = read_record(file)
    except FileNotFoundError:
        return None
    try:
        return RecordedBatch(**told)  # type: ignore[arg-type] # by names, which are compared here
    except TypeError:
        raise damaged(file) from None


def write_progress(file: Path, progress: RecordedBatch) -> None:
    """Record the progress; it is on the disk when this returns."""
    write_durably(file, json.dumps(asdict(progress)))


@final
class BatchFiles:
    """The writer of one batch of rows to files in `_staging`, and from there to their places."""

    def __init__(
        self, archive: Archive, what: str, query: str, batch: int, *, may_be_there: bool = False
    ) -> None:
        self._archive: Final = archive
        self._what: Final = what
        self._query: Final = query
        self._batch: Final = batch
        self._may_be_there: Final = may_be_there
        self._schema: Final = schema_in_files(what)

    def write(self, found: Table) -> ArchivedBatch:
        """Write the rows of `dated`, in place of files of an earlier attempt."""
        staged = self._archive.staging / f"{self._query}-{self._batch}"
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        with ExitStack() as opened:
            self._write_staged(found, staged, opened)
        batch = BatchName(self._what, self._query, self._batch)
        written = place(self._archive, batch, staged, may_be_there=self._may_be_there)
        shutil.rmtree(staged)
        return written

    def _write_staged(self, found: Table, staged: Path, opened: ExitStack) -> None:
        files: dict[Values, _Files] = {}
        parts = (part for batch in duck_table(found).reader() for part in self._divided(batch))
        for folder, part in parts:
            if folder not in files:
                files[folder] = _Files(self._folder(staged, folder), self._schema)
                opened.callback(files[folder].close)
            files[folder].write(part)

    def _divided(self, batch: pa.RecordBatch) -> Iterator[tuple[Values, pa.RecordBatch]]:
        """Yield the rows of each folder, with its values of FOLDERS."""
        names = FOLDERS[self._what]
        # as for Spark, null and an empty text are in one folder
        columns = [pc.fill_null(batch.column(name), "") for name in names]
        keys = pa.Table.from_arrays(columns, names=list(names)).group_by(list(names)).aggregate([])
        for key in keys.to_pylist():
            values = tuple(str(value) for value in key.values())
            found = [pc.equal(*each) for each in zip(columns, values, strict=True)]
            part = batch.filter(reduce(pc.and_, found))
            arrays = [part.column(field.name).cast(field.type) for field in self._schema]
            yield values, pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _folder(self, staged: Path, values: Values) -> Path:
        names = map(folder_name, FOLDERS[self._what], values)
        return staged.joinpath(*names)


@final
class _Files:
    """The files of one folder, each with at most ROWS_PER_FILE rows.

    Rows wait until they make a row group: record batches of large messages have few rows.
    """

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        folder.mkdir(parents=True)
        self._folder: Final = folder
        self._schema: Final = schema
        self._count = 0
        self._rows = 0
        self._file: pq.ParquetWriter | None = None
        self._waiting: Final[list[pa.RecordBatch]] = []

    def write(self, rows: pa.RecordBatch) -> None:
        if self._file is None or self._rows >= ROWS_PER_FILE:
            self.close()
            name = f"part-{self._count:05}.parquet"
            self._file = pq.ParquetWriter(self._folder / name, self._schema, compression="zstd")
            self._count += 1
            self._rows = 0
        self._waiting.append(rows)
        self._rows += rows.num_rows
        count = sum(each.num_rows for each in self._waiting)
        if count >= ROWS_AT_ONCE or sum(each.nbytes for each in self._waiting) >= BYTES_AT_ONCE:
            self._write_group(self._file)

    def _write_group(self, file: pq.ParquetWriter) -> None:
        if self._waiting:
            group = pa.Table.from_batches(self._waiting)
            file.write_table(group, row_group_size=group.num_rows)
            self._waiting.clear()

    def close(self) -> None:
        if self._file is not None:
            self._write_group(self._file)
            self._file.close()


@final
class LocalSource:
    """A source that is archived in batches: the event log, or a lease of messages."""

    def __init__(
        self, archive: Archive, engine: DuckEngine, what: str, given: Mapping[str, str], tell: Tell
    ) -> None:
        self._archive: Final = archive
        self._engine: Final = engine
        self._what: Final = what
        self._options: Final = read_options(given, Use.STREAM)
        self._names: Final = list(COLUMNS[what])
        self._tell: Final = tell
        self._file: Final = archive.progress(source_name(archive, what, given))
        self._lease: Lease | None = None

    def archive_now(self) -> None:
        """Archive what there is now."""
        if self._what == EVENTS:
            self._archive_events()
        else:
            self._archive_lease()

    def close(self) -> None:
        """Close the connections. The lease stays, for the next run of the job."""
        if self._lease is not None:
            self._lease.close()

    # -- the event log

    def _archive_events(self) -> None:
        progress = read_progress(self._file)
        if progress is None:
            progress = RecordedBatch(new_query(), until=self._archived())
        first, last = events.bounds(self._options, progress.until)
        # before a batch is written again: another event log has other rows with its ids
        events.check_same(progress.until, last)
        if not progress.done:
            self._write_events(progress, may_be_there=True)
        until = max(progress.until, first - 1)
        while until < last:
            end = min(last, until + self._options.number("maxMessagesPerTrigger"))
            progress = replace(
                progress, batch=progress.batch + 1, behind=until, until=end, done=False
            )
            self._write_events(progress)
            until = end

    def _archived(self) -> int:
        """Return the last id in the archive, 0 without one."""
        if not self._archive.has(EVENTS):
            return 0
        archived = self._archive.read(self._engine, EVENTS)
        return int(query("SELECT max(id) AS id FROM {archived}", archived=archived).rows()[0]["id"])

    def _write_events(self, progress: RecordedBatch, *, may_be_there: bool = False) -> None:
        found = events.rows(self._options, self._names, progress.behind, progress.until)
        self._write(progress, found, may_be_there=may_be_there)
        write_progress(self._file, replace(progress, done=True))

    # -- leases

    def _archive_lease(self) -> None:
        progress, lease = self._opened()
        while True:
            number = lease.settled + 1
            batch = lease.acquire(
                number,
                max_messages=min(
                    self._options.number("maxMessagesPerTrigger"), LEASE_BATCH_MESSAGES_MAX
                ),
                max_bytes=self._options.number("maxBytesPerTrigger"),
                until_ms=lease.now_ms,
                wait_ms=0,
            )
            if not batch.messages:
                return
            begun = progress.batch == number
            progress = replace(progress, batch=number, done=False)
            found = self._slices(lease, number, batch.slices)
            self._write(progress, found, may_be_there=begun)
            lease.settle(number)
            write_progress(self._file, replace(progress, done=True))

    def _opened(self) -> tuple[RecordedBatch, Lease]:
        """Return the progress, and the lease that continues it.

        If the lease has expired, its messages are in their queue again: raise LeaseLostError, or
        begin anew, by the option failOnLeaseLoss.
        """
        progress = read_progress(self._file)
        if progress is None:
            progress = RecordedBatch(new_query(), lease=self._new_lease())
            write_progress(self._file, progress)
        if self._lease is not None:
            self._lease.close()
        self._lease = lease = Lease(self._options, progress.lease, subscribed(self._options))
        if progress.batch > max(lease.batch_number, lease.settled):
            if progress.done:
                return self._anew()
            error = LeaseLostError(
                lease.name, f"it is at batch {lease.batch_number}, not {progress.batch}"
            )
            if self._options.is_set("failOnLeaseLoss"):
                raise error
            return self._anew()
        return progress, lease

    def _anew(self) -> tuple[RecordedBatch, Lease]:
        """Return the progress of a new query, and a new lease."""
        write_progress(self._file, RecordedBatch(new_query(), lease=new_lease_id(self._options)))
        return self._opened()

    def _new_lease(self) -> str:
        return self._options.text("lease") or new_lease_id(self._options)

    def _slices(self, lease: Lease, number: int, slices: Sequence[int]) -> Iterator[pa.RecordBatch]:
        for part, count in enumerate(slices):
            if count:
                asked = slice_of_lease(lease.name, lease.fencing_token, number, part)
                yield from rows(self._options, self._names, lease.place, asked)

    def _write(
        self, progress: RecordedBatch, found: Iterator[pa.RecordBatch], *, may_be_there: bool
    ) -> None:
        """Write the batch that `progress` names."""
        write_progress(self._file, progress)
        schema = schema_of(COLUMNS[self._what])
        table = self._engine.of_batches(schema, found)
        files = BatchFiles(
            self._archive,
            self._what,
            progress.query,
            progress.batch,
            may_be_there=may_be_there,
        )
        written = files.write(dated(table, self._what))
        table.release()
        self._tell(written)


def snapshot(archive: Archive, found: Table) -> ArchivedBatch:
    """Archive browsed messages, except those that the archive already has."""
    return BatchFiles(archive, MESSAGES, new_query(), 0).write(
        dated(new_of(archive, found), MESSAGES)
    )


def run(
    archive: Archive,
    engine: DuckEngine,
    sources: Mapping[str, Mapping[str, str]],
    tell: Mapping[str, Tell],
    every_s: float | None,
) -> None:
    """Archive what there is now, once or each `every_s` seconds without end."""
    with ExitStack() as opened:
        begun = []
        for what, given in sources.items():
            if given["mode"] == "browse":
                tell[what](snapshot(archive, engine.source(given, list(COLUMNS[what]))))
                continue
            source = LocalSource(archive, engine, what, given, tell[what])
            opened.callback(source.close)
            begun.append(source)
        while True:
            for source in begun:
                source.archive_now()
            if every_s is None:
                return
            time.sleep(every_s)
