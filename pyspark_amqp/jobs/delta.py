"""The Delta tables of an archive: a log of Delta Lake in the folder of messages, and of events.

The files are those of any archive. The log lists them, so that a program that reads Delta sees all
rows of a batch or none. It is made anew from the folder each time that files have changed: one
version of the table removes what is gone and adds what is new. If a job was killed between the
files and the log, the next one does the rest, so each row is in the table once.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction

from pyspark_amqp.engines.folders import folder_values
from pyspark_amqp.jobs.layout import COLUMNS, FOLDERS, Archive
from pyspark_amqp.rows.columns import schema_of

if TYPE_CHECKING:
    from pyspark_amqp.jobs.archive import BatchName

FileState = tuple[int, int]
"""The size of a file in bytes, and the time of its last change in ms since 1970."""


def begin(archive: Archive, what: str) -> None:
    """Make the Delta table of `what` if there is none, and list all files of the archive in it."""
    with archive.locked():
        schema = schema_of({"date": "STRING", **COLUMNS[what]})
        table = DeltaTable.create(
            archive.data(what), schema, mode="ignore", partition_by=list(FOLDERS[what])
        )
        known = {field.name for field in table.schema().fields}
        new = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
        if new:
            # an earlier version has made the table, when the archive had fewer columns
            table.alter.add_columns(new)
        update(archive, what)


def update(archive: Archive, what: str, batch: BatchName | None = None) -> None:
    """List the files of the archive in the Delta table of `what`, by one version of the table.

    `batch` is the one whose files have changed: the version has it as Delta's transaction of an
    application. The archive must be `locked`.
    """
    root = archive.data(what)
    table = DeltaTable(root)
    listed = _listed(table)
    there = {str(file.relative_to(root)): _state(file) for file in archive.files(what)}
    gone = [RemoveAction(path, True, _now_ms()) for path in sorted(listed.keys() - there.keys())]
    new = [_added(root, path, state) for path, state in there.items() if listed.get(path) != state]
    if not gone and not new:
        return
    txn = [] if batch is None else [Transaction(batch.query, batch.number)]
    table.create_write_transaction(
        [*gone, *new],
        mode="append",
        schema=table.schema(),
        partition_by=list(FOLDERS[what]),
        commit_properties=CommitProperties(app_transactions=txn),
    )


def _listed(table: DeltaTable) -> dict[str, FileState]:
    """Return the files in the table's newest version, by their paths below its folder."""
    found = pa.table(table.get_add_actions())
    columns = [found[name].to_pylist() for name in ("path", "size_bytes", "modification_time")]
    return {unquote(path): (size, changed) for path, size, changed in zip(*columns, strict=True)}


def _state(file: Path) -> FileState:
    stat = file.stat()
    return stat.st_size, stat.st_mtime_ns // 1_000_000


def _added(root: Path, path: str, state: FileState) -> AddAction:
    size, changed_ms = state
    rows = pq.read_metadata(root / path).num_rows
    return AddAction(
        path=path,
        size=size,
        partition_values=folder_values(Path(path).parent),
        modification_time=changed_ms,
        data_change=True,
        stats=json.dumps({"numRecords": rows}),
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
