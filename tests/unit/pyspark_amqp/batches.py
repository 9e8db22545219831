"""Batches of the event log, as tests put them into an archive."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_amqp.jobs.archive import BatchName, place, schema_in_files
from pyspark_amqp.jobs.archiving import Archiving
from pyspark_amqp.jobs.layout import EVENTS, Archive
from pyspark_amqp.jobs.local_archive import RecordedBatch, write_progress

DAY: Final = "date=2026-01-31"
QUERY: Final = "q1"


def staged_files(archive: Archive, what: str, folder: str, *files: Iterable[int]) -> Path:
    """Write files of rows with these ids into `_staging`; return the batch's folder there."""
    schema = schema_in_files(what)
    key = "id" if what == EVENTS else "position"
    staged = archive.staging / "batch"
    (staged / folder).mkdir(parents=True, exist_ok=True)
    for at, ids in enumerate(files):
        rows = [dict.fromkeys(schema.names) | {key: each} for each in ids]
        made = pa.Table.from_pylist(rows, schema=schema)
        pq.write_table(made, staged / folder / f"part-{at}.parquet")
    return staged


def put(archive: Archive, number: int, *files: Iterable[int], again: bool = False) -> None:
    """Put a batch of the event log into the archive, with a file for each of `files`."""
    staged = staged_files(archive, EVENTS, DAY, *files)
    place(archive, BatchName(EVENTS, QUERY, number), staged, may_be_there=again)


def record(archive: Archive, query: str = QUERY) -> None:
    """Record a query in the archive, which may write its last batch again."""
    write_progress(archive.progress(f"events-{query}"), RecordedBatch(query))


def asked(place: Path, form: str | None, **more: str) -> Archiving:
    """Return the run of a job that archives the event log."""
    return Archiving.asked(
        place,
        {"url": "amqp://localhost:5672"},
        whats=[EVENTS],
        address=None,
        subscription=None,
        selector=None,
        mode=None,
        every=None,
        form=form,
        **more,
    )
