"""The layout of an archive: `messages/date=…/address=…/*.parquet`, `events/date=…/*.parquet`.

Files are plain Parquet in Hive's folders, so that Spark, DuckDB and pandas see the same. They are
written in `_staging` of the archive and renamed to their places. The name of a file that a query
wrote has the query and the batch: a batch that is written again replaces its earlier files. All of
this needs a file system that the driver and the workers share.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from pyspark_amqp.engines.folders import NO_VALUE
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, MESSAGE_COLUMNS

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Engine, Table

MESSAGES: Final = "messages"
EVENTS: Final = "events"
WHATS: Final = (MESSAGES, EVENTS)

EARLIER_NAMES: Final = {EVENTS: "journal"}
"""Names of folders and checkpoints in archives of earlier versions, which keep them."""

STAGING: Final = "_staging"
CHECKPOINTS: Final = "_checkpoints"
METADATA: Final = "metadata"
"""The file in a checkpoint of Spark that has the id of its query."""

LOCK: Final = "_lock"

DELTA_LOG: Final = "_delta_log"
"""The folder that makes the folder it is in a table of Delta Lake."""

ICEBERG: Final = "_iceberg"
"""The folder of the catalog of Iceberg tables, and of their metadata."""

DELTA_TABLE: Final = "delta"
ICEBERG_TABLE: Final = "iceberg"

LIBRARIES: Final = {
    DELTA_TABLE: ("Delta", "deltalake"),
    ICEBERG_TABLE: ("Iceberg", "pyiceberg"),
}
"""The name and the Python package of each format of tables. The format is the extra, too."""

STALE_S: Final = 24 * 60 * 60

FOLDERS: Final = {MESSAGES: ("date", "address"), EVENTS: ("date",)}
"""Columns by which the files of each part are divided into folders, and which the files lack."""

COLUMNS: Final = {MESSAGES: MESSAGE_COLUMNS, EVENTS: EVENT_LOG_COLUMNS}

FILE: Final = re.compile(r"part-(?P<query>[0-9a-z]+)-b(?P<batch>\d{10})-(?P<number>\d+)\.parquet")
"""The name of a file that a batch of a query has written."""


ENDED: Final = "ended"
"""In place of the last batch of a query; it is behind all numbers."""

UNSAFE: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
"""Characters that Spark writes as %XX in the name of a folder, as Hive does."""


class ArchiveError(Exception):
    """An error because an archive cannot be read or written; the text says why."""


def file_name(query: str, batch: int, number: int | str) -> str:
    """Return the name of file `number` of a batch; `*` stands for all of its files."""
    return f"part-{query}-b{batch:010}-{number}.parquet"


@dataclass(frozen=True)
class Archive:
    """The archive in the folder `root`."""

    root: Path

    def stored_name(self, what: str) -> str:
        """Return the name of `what` in this archive: an earlier one if a folder has it."""
        earlier = EARLIER_NAMES.get(what, what)
        return earlier if (self.root / earlier).is_dir() else what

    def data(self, what: str) -> Path:
        """Return the folder of the files of messages, or of the event log."""
        return self.root / self.stored_name(what)

    @property
    def staging(self) -> Path:
        """Return the folder of files that are not yet at their places. Readers ignore it."""
        return self.root / STAGING

    def checkpoint(self, name: str) -> Path:
        """Return the folder in which Spark keeps the progress of the query `name`."""
        return self.root / CHECKPOINTS / name

    def has_begun(self, name: str) -> bool:
        """Return whether the query `name` has recorded its progress.

        Its checkpoint is created before that.
        """
        return any(each.name.isdigit() for each in (self.checkpoint(name) / "offsets").glob("*"))

    def progress(self, name: str) -> Path:
        """Return the file in which the job on DuckDB records the progress of the source `name`."""
        return self.root / CHECKPOINTS / f"{name}.json"

    def queries(self) -> set[str]:
        """Return the queries that go on: only these may write a batch of theirs again.

        Their names are those in the names of their files. Raise ArchiveError if the progress of one
        cannot be read.
        """
        folder = self.root / CHECKPOINTS
        found = {str(read_record(file).get("query")) for file in folder.glob("*.json")}
        return found | {spark_query(file) for file in folder.glob(f"*/{METADATA}")}

    def engine_of(self, name: str) -> str | None:
        """Return the engine that has begun to archive the source `name`; None if none has."""
        if self.progress(name).exists():
            return "duckdb"
        return "spark" if self.has_begun(name) else None

    def folders(self, what: str) -> list[Path]:
        """Return all folders for files of `what`, sorted by name."""
        pattern = "/".join(f"{column}=*" for column in FOLDERS[what])
        return sorted(each for each in self.data(what).glob(pattern) if each.is_dir())

    def clear_first_offset(self, name: str) -> None:
        """Delete what a driver left that was killed while it wrote its first offset.

        Spark refuses to begin a query if its folder of offsets has any file. Call this while the
        query is `reserved`, so that no other driver is writing there.
        """
        if not self.has_begun(name):
            for left in (self.checkpoint(name) / "offsets").glob(".*"):
                left.unlink()

    def files(self, what: str) -> list[Path]:
        """Return all files of `what`, sorted by folder and name."""
        return [file for folder in self.folders(what) for file in files_in(folder)]

    def has(self, what: str) -> bool:
        """Return whether there are files of `what`."""
        return any(files_in(folder) for folder in self.folders(what))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the archive for the block: one process at a time moves or deletes its files."""
        self.root.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def reserved(self, name: str, what: str) -> Iterator[None]:
        """Reserve the query `name` for the block; raise ArchiveError if another process has it."""
        folder = self.root / CHECKPOINTS
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                advice = "say --what messages" if what == EVENTS else "wait for its end"
                raise ArchiveError(
                    f"another job archives the same {what} into {self.root}: {advice}"
                ) from None
            yield
        finally:
            os.close(handle)

    def sweep(self, now: float) -> None:
        """Delete what killed jobs left in `_staging`: all that was not written for STALE_S seconds.

        `now` is in seconds since 1970. A query that continues writes its files anew.
        """
        with self.locked():
            for left in self.staging.glob("*"):
                inside = (
                    Path(folder, name)
                    for folder, _, names in os.walk(left)
                    for name in (".", *names)
                )
                if all(now - _written_at(path) > STALE_S for path in inside):
                    shutil.rmtree(left)

    def is_delta(self, what: str) -> bool:
        """Return whether the folder of `what` is a Delta table, whose log has to follow."""
        return (self.data(what) / DELTA_LOG).is_dir()

    @property
    def iceberg(self) -> Path:
        """Return the folder of what Iceberg tables need beside the files. Readers ignore it."""
        return self.root / ICEBERG

    def iceberg_record(self, what: str) -> Path:
        """Return the file that names the catalog of the Iceberg table of `what`."""
        return self.iceberg / f"{what}.json"

    def iceberg_data(self, what: str) -> Path:
        """Return the folder of the metadata of an Iceberg table in the archive's own catalog."""
        return self.iceberg / what

    def is_iceberg(self, what: str) -> bool:
        """Return whether `what` has an Iceberg table, which has to follow the files."""
        return self.iceberg_record(what).is_file()

    def tables(self, what: str) -> list[str]:
        """Return the formats of which the files of `what` are tables, too."""
        found = {DELTA_TABLE: self.is_delta(what), ICEBERG_TABLE: self.is_iceberg(what)}
        return [form for form, is_one in found.items() if is_one]

    def check_libraries(self, whats: Iterable[str], wanted: str | None = None) -> None:
        """Raise ArchiveError if a table is there, or is `wanted`, and its library is not."""
        forms = {wanted, *(form for what in whats for form in self.tables(what))}
        for form, (shown, library) in LIBRARIES.items():
            if form in forms and find_spec(library) is None:
                raise ArchiveError(
                    f"{library}, which the {shown} tables of {self.root} need, is missing:"
                    f" pip install 'jms-broker[{form}]'"
                )

    def check_is_there(self) -> None:
        """Raise ArchiveError if the archive's folder does not exist."""
        if not self.root.is_dir():
            raise ArchiveError(f"{self.root} is no folder: name the one that `archive` has written")

    def check(self, what: str) -> None:
        """Raise ArchiveError, which says what to do, if there are no files of `what`."""
        self.check_is_there()
        if not self.has(what):
            raise ArchiveError(
                f"{self.root} has no {what}: `jms-broker pipeline archive {self.root}"
                f" --what {what}` puts them there"
            )

    def read(self, engine: Engine, what: str) -> Table:
        """Return all rows of `what`, with `date` as text; raise ArchiveError if there are none."""
        self.check(what)
        return engine.parquet(self.data(what), {"date": "STRING", **COLUMNS[what]})


def read_record(file: Path) -> dict[str, object]:
    """Return the object of JSON in a small file, which is its last line.

    Raise FileNotFoundError if there is none, ArchiveError, which says what to do, if it is damaged.
    """
    lines = file.read_bytes().splitlines()
    try:
        told = json.loads(lines[-1])
    except (ValueError, IndexError):
        told = None
    if isinstance(told, dict):
        return told
    raise damaged(file)


def damaged(file: Path) -> ArchiveError:
    """Return the error that the record of the progress of a query cannot be read."""
    return ArchiveError(
        f"{file} is damaged: restore it; or delete it, then the job begins anew behind the last"
        " row in the archive, and leased messages return to their queue when their lease expires"
    )


def spark_query(metadata: Path) -> str:
    """Return the name in the names of its files of the query of Spark with that checkpoint."""
    told = read_record(metadata).get("id")
    if not isinstance(told, str):
        raise damaged(metadata)
    return told.replace("-", "")[:12]


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        # a job is at work: Spark moves its files meanwhile
        return inf


def files_in(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder by name, without hidden ones."""
    return sorted(file for file in folder.glob("*.parquet") if file.name[0] not in "._")


def folder_name(column: str, value: str) -> str:
    """Return the name of the folder of the rows with a value of `column`, as Spark names it."""
    shown = UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", value or NO_VALUE)
    return f"{column}={shown}"


def address_of(folder: Path) -> str:
    """Return the address that a folder of messages is for."""
    return unquote(folder.name.partition("=")[2])


def sync(path: Path) -> None:
    """Write a file or folder to the disk before returning."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(file: Path, text: str) -> None:
    """Write a small file, in place of an earlier one; it is on the disk when this returns."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    with new.open("w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    new.replace(file)
    sync(file.parent)


def may_come_again(file: Path, last: Mapping[str, str]) -> bool:
    """Return whether Spark may still write `file` again.

    This holds for its query's last batch, for a later one, and for a query not in `last`, which was
    not there when `last` was made.
    """
    name = FILE.fullmatch(file.name)
    return name is not None and name["batch"] >= last.get(name["query"], "")


def last_batches(files: Iterable[Path], queries: Container[str] | None = None) -> dict[str, str]:
    """Return the last batch of each query that has files.

    That of a query that is not in `queries`, if these are given, is behind all its files: it has
    ended, as one that browsed, and writes nothing again.
    """
    last: dict[str, str] = {}
    for file in files:
        name = FILE.fullmatch(file.name)
        if name is not None:
            has_ended = queries is not None and name["query"] not in queries
            batch = ENDED if has_ended else name["batch"]
            last[name["query"]] = max(last.get(name["query"], ""), batch)
    return last
