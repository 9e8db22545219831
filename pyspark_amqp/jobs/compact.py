"""The compact job: merge small files of an archive into few large ones, folder by folder.

A folder's new content is made in `_staging`, complete and synced. Then both folders are exchanged
in one step of the file system (`renameat2` with `RENAME_EXCHANGE`), and the old content is deleted.
So a reader sees all old or all new files, even after a crash. What a crash leaves in `_staging` is
deleted by the next run.

The files of a query's last batch stay as they are if the query has a checkpoint: it may write that
batch once more, and finds them by their names. So do those of batches written since compaction
began: one of them is the last now.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_amqp.jobs.archive import follow
from pyspark_amqp.jobs.layout import (
    Archive,
    ArchiveError,
    files_in,
    last_batches,
    may_come_again,
    sync,
)
from pyspark_amqp.rows.columns import UTC_MICROSECONDS

TARGET_BYTES: Final = 128 * 1024 * 1024
"""Maximum bytes of files that are merged into one."""

ROWS_AT_ONCE: Final = 10_000

AT_FDCWD: Final = -100
RENAME_EXCHANGE: Final = 2

MERGED: Final = "merged"


@dataclass(frozen=True)
class Compacted:
    """The counts of a compaction: folders changed, files before and after, rows merged."""

    folders: int = 0
    before: int = 0
    after: int = 0
    rows: int = 0

    def __add__(self, other: Compacted) -> Compacted:
        return Compacted(
            self.folders + other.folders,
            self.before + other.before,
            self.after + other.after,
            self.rows + other.rows,
        )


def compact(
    archive: Archive,
    whats: Iterable[str],
    *,
    target_bytes: int = TARGET_BYTES,
    tell: Callable[[Path], None] = lambda _: None,
) -> Compacted:
    """Merge the small files of `whats`; call `tell` with each folder before it is looked at.

    Raise ArchiveError if the file system cannot exchange folders, or if a library for the
    archive's tables is missing.
    """
    done = Compacted()
    asked = list(whats)
    archive.check_libraries(asked)
    sweep(archive)
    for what in asked:
        # a compaction that was killed may have left a table behind
        _follow(archive, what)
        # the files first: a query has a checkpoint before it has any
        files = archive.files(what)
        last = last_batches(files, archive.queries())
        for folder in archive.folders(what):
            tell(folder)
            changed = _compact_folder(archive, folder, last, target_bytes)
            if changed.folders:
                _follow(archive, what)
            done += changed
    return done


def _follow(archive: Archive, what: str) -> None:
    """Bring the tables of `what` to its files, if there are any."""
    with archive.locked():
        follow(archive, what)


def sweep(archive: Archive) -> None:
    """Delete what a killed compaction has left."""
    with archive.locked():
        for left in archive.staging.glob(f"{MERGED}-*"):
            shutil.rmtree(left)


def groups(files: Sequence[Path], last: Mapping[str, str], target_bytes: int) -> list[list[Path]]:
    """Return groups of files to merge: neighbours of at most `target_bytes` together."""
    found: list[list[Path]] = []
    size = 0
    for file in files:
        bytes_ = file.stat().st_size
        if may_come_again(file, last):
            continue
        if not found or size + bytes_ > target_bytes:
            found.append([])
            size = 0
        found[-1].append(file)
        size += bytes_
    return [group for group in found if len(group) > 1]


def _compact_folder(
    archive: Archive, folder: Path, last: Mapping[str, str], target_bytes: int
) -> Compacted:
    # Compactions exclude each other, and batches of `archive` wait: a file that came meanwhile
    # would be deleted with the old folder.
    with archive.locked():
        files = files_in(folder)
        merging = groups(files, last, target_bytes)
        if not merging:
            return Compacted(0, len(files), len(files), 0)
        new = archive.staging / f"{MERGED}-{uuid4().hex}"
        new.mkdir(parents=True)
        rows = sum(_merge(group, new / f"part-{uuid4().hex}.parquet") for group in merging)
        merged = {file for group in merging for file in group}
        for file in folder.iterdir():
            if file not in merged:
                os.link(file, new / file.name)
        sync(new)
        exchange(new, folder)
        sync(folder.parent)
        sync(new.parent)
        shutil.rmtree(new)
        return Compacted(1, len(files), len(files) - len(merged) + len(merging), rows)


def _merge(files: Sequence[Path], target: Path) -> int:
    """Write all rows of `files`, in their order, to a new file on the disk; return their number."""
    schema = _common_schema(files)
    rows = 0
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for batch in _batches(files, schema):
            rows += batch.num_rows
            writer.write_batch(batch)
    sync(target)
    return rows


def _common_schema(files: Sequence[Path]) -> pa.Schema:
    """Return a schema with the columns of all `files`.

    Raise ArchiveError, which names the file, if one has a column of another type.
    """
    schema = _schema_of(files[0])
    for file in files[1:]:
        try:
            schema = pa.unify_schemas([schema, _schema_of(file)])
        except pa.ArrowException as error:
            raise ArchiveError(
                f"{file} cannot be merged with {files[0].name} beside it: {error}; move the file"
                " that the job `archive` has not written out of the archive"
            ) from None
    return schema


def _batches(files: Sequence[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `files` with the columns of `schema`.

    Raise ArchiveError, which names the file, if one cannot be read.
    """
    for file in files:
        try:
            with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as source:
                yield from (_as(batch, schema) for batch in source.iter_batches(ROWS_AT_ONCE))
        except (pa.ArrowException, OSError) as error:
            raise _damaged(file, error) from None


def _damaged(file: Path, error: Exception) -> ArchiveError:
    return ArchiveError(f"{file} is damaged: {error}; restore it, or move it out of the archive")


def _schema_of(file: Path) -> pa.Schema:
    """Return the schema of a file, with times in µs, which all readers know.

    Spark writes times without a unit (INT96), which Arrow takes for ns; Spark cannot read ns.
    """
    try:
        schema = pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(file, error) from None
    for at, field in enumerate(schema):
        if pa.types.is_timestamp(field.type):
            schema = schema.set(at, field.with_type(UTC_MICROSECONDS))
    return schema


def _as(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return `batch` with the columns of `schema`, null for a column that it lacks."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def exchange(one: Path, other: Path) -> None:
    """Exchange two folders in one step; raise ArchiveError if the system cannot do that."""
    if sys.platform != "linux":
        raise ArchiveError("compact needs Linux, whose file systems can exchange two folders")
    library = ctypes.CDLL(None, use_errno=True)
    failed = library.renameat2(
        AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE
    )
    if failed:
        error = ctypes.get_errno()
        raise ArchiveError(
            f"the file system of {other} cannot exchange two folders"
            f" ({os.strerror(error)}): nothing was changed; compact a copy on another one"
        )
