"""The files of an archive: how a batch of a query gets to its places, each row once despite kills.

A batch is written into `_staging`, and its files are then renamed to their places, under names
that have the query and the batch. The last batch may be written once more, after a kill or because
the log of the query was not written: the rows are the same (a lease's batch, a range of the event
log), the files get the same names, and other files that the batch had written are deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyarrow.parquet as pq

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
from pyspark_amqp.jobs.statements import SAME, query

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
