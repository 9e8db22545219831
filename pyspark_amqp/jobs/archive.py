"""The files of an archive: how a batch of a query gets to its places, each row once despite kills.

A batch is written into `_staging`, and its files are then renamed to their places, under names
that have the query and the batch. The last batch may be written once more, after a kill or because
the log of the query was not written: the rows are the same (a lease's batch, a range of the event
log), the files get the same names, and other files that the batch had written are deleted. If the
broker has removed rows of the event log since, the earlier files stay, and others get what they
lack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_amqp.jobs.layout import (
    CHECKPOINTS,
    COLUMNS,
    EVENTS,
    FILE,
    FOLDERS,
    ICEBERG,
    LOCK,
    MESSAGES,
    STAGING,
    Archive,
    ArchiveError,
    file_name,
    files_in,
    sync,
)
from pyspark_amqp.jobs.statements import SAME, query
from pyspark_amqp.rows.columns import schema_of

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Table

ROWS_PER_FILE: Final = 1_000_000


@dataclass(frozen=True)
class ArchivedBatch:
    """The files that a batch has put into the archive, and their rows and bytes."""

    batch: int
    rows: int
    bytes: int
    paths: tuple[Path, ...]


DATED: Final = {
    what: "SELECT CAST(CAST({moment} AS DATE) AS STRING) AS date, {columns} FROM {{rows}} r".format(
        moment=moment, columns=", ".join(f"r.{name} AS {name}" for name in COLUMNS[what])
    )
    for what, moment in {
        MESSAGES: "coalesce(r.enqueuedAt, r.JMSTimestamp, {now})",
        EVENTS: "coalesce(r.at, {now})",
    }.items()
}
"""The rows with `date`, the day (UTC) of a message's arrival or of an event.

A message without a time of arrival gets the day of its JMSTimestamp, or else today.
"""


def dated(rows: Table, what: str) -> Table:
    """Return the rows of DATED."""
    return query(DATED[what], rows=rows, now=datetime.now(UTC))


UNSEEN: Final = "SELECT r.* FROM {{rows}} r ANTI JOIN {{archived}} a ON {same}".format(
    same=" AND ".join(f"r.{name} IS NOT DISTINCT FROM a.{name}" for name in SAME)
)


def unseen(rows: Table, archived: Table) -> Table:
    """Return those of `rows` that are not archived yet."""
    return query(UNSEEN, rows=rows, archived=archived)


def new_of(archive: Archive, rows: Table) -> Table:
    """Return the browsed messages that the archive does not have yet."""
    return unseen(rows, archive.read(rows.engine, MESSAGES)) if archive.has(MESSAGES) else rows


def new_query() -> str:
    """Return the text that distinguishes the files of a query from those of others."""
    return uuid4().hex[:12]


def source_name(archive: Archive, what: str, options: Mapping[str, str]) -> str:
    """Return the name of the checkpoint of a source: one name for the same options."""
    stored = archive.stored_name(what)
    mode = options["mode"] if what == MESSAGES else stored
    read = [options.get(name, "") for name in ("address", "subscription", "topic", "selector")]
    digest = sha256("\n".join((mode, *read)).encode()).hexdigest()[:12]
    return f"{stored}-{digest}"


@dataclass(frozen=True)
class BatchName:
    """The batch of a query, of messages or of the event log (`what`)."""

    what: str
    query: str
    number: int

    def file(self, number: int | str) -> str:
        """Return the name of file `number`; `*` stands for all of the batch's files."""
        return file_name(self.query, self.number, number)


def place(archive: Archive, batch: BatchName, staged: Path, *, may_be_there: bool) -> ArchivedBatch:
    """Move the files of a batch from `staged` to their places, durably.

    `may_be_there` is whether an earlier attempt may have written files of the batch: new ones
    replace these. Rows of the event log that the broker has removed since stay where they are.
    """
    with archive.locked():
        earlier = _files_of(archive, batch) if may_be_there else []
        if batch.what == EVENTS and _has_others(earlier, staged):
            written = _moved(archive, batch, staged, first=1 + max(map(_number, earlier)))
        else:
            written = _moved(archive, batch, staged)
            for file in set(earlier) - set(written.paths):
                file.unlink()
        follow(archive, batch.what, batch)
        return written


def follow(archive: Archive, what: str, batch: BatchName | None = None) -> None:
    """Bring the Delta table and the Iceberg table of `what`, if there are any, to its files."""
    # an archive of plain files does without the libraries of these
    if archive.is_delta(what):
        from pyspark_amqp.jobs import delta

        delta.update(archive, what, batch)
    if archive.is_iceberg(what):
        from pyspark_amqp.jobs import iceberg

        iceberg.update(archive, what, batch)


def _moved(archive: Archive, batch: BatchName, staged: Path, *, first: int = 0) -> ArchivedBatch:
    """Move all files of `staged`, under numbers from `first` on."""
    moved: list[Path] = []
    rows = size = 0
    pattern = "/".join(["*=*"] * len(FOLDERS[batch.what]))
    for folder in sorted(staged.glob(pattern)):
        target = archive.data(batch.what) / folder.relative_to(staged)
        target.mkdir(parents=True, exist_ok=True)
        for file in files_in(folder):
            rows += pq.read_metadata(file).num_rows
            size += file.stat().st_size
            to = target / batch.file(first + len(moved))
            sync(file)
            file.replace(to)
            moved.append(to)
        sync(target)
    return ArchivedBatch(batch.number, rows, size, tuple(moved))


def _files_of(archive: Archive, batch: BatchName) -> list[Path]:
    """Return the files of a batch that are at their places."""
    folders = archive.folders(batch.what)
    return [file for folder in folders for file in sorted(folder.glob(batch.file("*")))]


def _number(file: Path) -> int:
    name = FILE.fullmatch(file.name)
    assert name is not None
    return int(name["number"])


def _has_others(earlier: Sequence[Path], staged: Path) -> bool:
    """Return whether `earlier` files have rows of the event log that no file in `staged` has.

    The rows of `earlier` are then deleted from `staged`: the row of an id never changes.
    """
    if not earlier:
        return False
    again = sorted(staged.rglob("*.parquet"))
    had, has = _ids(earlier), _ids(again)
    if pc.all(pc.is_in(had, has)).as_py() is not False:
        return False
    for file in again:
        # Spark's own type of times, INT96, has no unit
        rows = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
        new = rows.filter(pc.invert(pc.is_in(rows["id"], had)))
        if new.num_rows == 0:
            file.unlink()
        else:
            pq.write_table(new.cast(schema_in_files(EVENTS)), file, compression="zstd")
    return True


def schema_in_files(what: str) -> pa.Schema:
    """Return the schema of files, which lack the columns that their folders have."""
    columns = {name: kind for name, kind in COLUMNS[what].items() if name not in FOLDERS[what]}
    return schema_of(columns)


def _ids(files: Sequence[Path]) -> pa.ChunkedArray:
    chunks = [pq.ParquetFile(file).read(columns=["id"])["id"] for file in files]
    return pa.chunked_array([part for each in chunks for part in each.chunks], pa.int64())


def check_target(archive: Archive, whats: Sequence[str]) -> None:
    """Raise ArchiveError if the folder is in use for something else; else create its folders."""
    root = archive.root
    if root.exists() and not root.is_dir():
        raise ArchiveError(f"{root} is a file: name a folder for the archive, it is made if needed")
    ours = {*FOLDERS, STAGING, CHECKPOINTS, ICEBERG, LOCK}
    if root.is_dir() and not archive.has(MESSAGES) and not archive.has(EVENTS):
        strange = sorted(each.name for each in root.iterdir() if each.name not in ours)
        if strange:
            raise ArchiveError(
                f"{root} has {strange[0]!r} in it and no archive: name an empty or a new folder"
            )
    for what in whats:
        archive.data(what).mkdir(parents=True, exist_ok=True)
