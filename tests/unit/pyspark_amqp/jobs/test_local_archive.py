"""The archive job on DuckDB, with a running broker: each row once, after kills at any point."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest
from proton import Message
from proton.utils import BlockingConnection

from broker import Broker
from pyspark_amqp.engines.duckdb_engine import BYTES_AT_ONCE, DuckEngine, duckdb_engine
from pyspark_amqp.engines.engine import literal
from pyspark_amqp.errors import DataLossError
from pyspark_amqp.jobs.archive import ArchivedBatch, dated, source_name
from pyspark_amqp.jobs.archiving import Archiving
from pyspark_amqp.jobs.layout import COLUMNS, EVENTS, MESSAGES, WHATS, Archive, ArchiveError
from pyspark_amqp.jobs.local_archive import BatchFiles, LocalSource, read_progress, write_progress
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.option_table import Use
from pyspark_amqp.options import read_options
from pyspark_amqp.rows.columns import schema_of
from pyspark_amqp.source import events
from pyspark_amqp.source.lease import LeaseLostError
from pyspark_amqp.wire.broker_client import opened

COUNT: Final = 7


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    logged = {"pattern": "*", "event_log": True}
    with Broker(store=f"sqlite:///{tmp_path}/store.db", address=[logged]) as running:
        yield running


@pytest.fixture
def engine() -> Iterator[DuckEngine]:
    with duckdb_engine() as found:
        yield found


class Job:
    """One run of the job after another, each with a new process' state."""

    def __init__(self, broker: Broker, engine: DuckEngine, folder: Path) -> None:
        self.archive: Final = Archive(folder / "archive")
        self.engine: Final = engine
        self.asked: Final = Archiving.asked(
            self.archive.root,
            {"url": broker.url, "maxMessagesPerTrigger": "3"},
            whats=WHATS,
            address="orders",
            subscription=None,
            selector=None,
            mode="lease",
            every=None,
        )

    def progress(self, what: str) -> Path:
        return self.archive.progress(source_name(self.archive, what, self.asked.sources[what]))

    def run(self, what: str) -> list[int]:
        """Archive one source; return the rows of each batch."""
        told: list[ArchivedBatch] = []
        source = LocalSource(self.archive, self.engine, what, self.asked.sources[what], told.append)
        try:
            source.archive_now()
        finally:
            source.close()
        return [batch.rows for batch in told]

    def archived(self, what: str, column: str) -> list[object]:
        found = self.archive.read(self.engine, what)
        rows = query(f"SELECT {column} AS value FROM {{found}} ORDER BY {column}", found=found)
        return [row["value"] for row in rows.rows()]


@pytest.fixture
def job(broker: Broker, engine: DuckEngine, tmp_path: Path) -> Job:
    """Return a job that archives a queue with some messages."""
    connection = BlockingConnection(broker.url)
    sender = connection.create_sender("orders")
    for number in range(COUNT):
        sender.send(Message(body=str(number), id=f"ID:{number}", durable=True))
    connection.close()
    return Job(broker, engine, tmp_path)


IDS: Final = [f"ID:{number}" for number in range(COUNT)]


@pytest.mark.requirement("PIP-60")
@pytest.mark.requirement("PIP-75")
def test_a_lease_is_archived_in_batches_and_then_settled(broker: Broker, job: Job) -> None:
    assert job.run(MESSAGES) == [3, 3, 1]
    assert job.archived(MESSAGES, "JMSMessageID") == IDS
    assert job.run(MESSAGES) == []
    assert not broker.messages("orders")


@pytest.mark.requirement("PIP-60")
@pytest.mark.requirement("PIP-75")
@pytest.mark.parametrize("is_written", [True, False], ids=["files are there", "no file is there"])
def test_a_batch_that_was_not_settled_is_written_again_in_its_place(
    job: Job, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    def killed(*_: object) -> None:
        raise SystemExit

    place = "Lease.settle" if is_written else "BatchFiles.write"
    with monkeypatch.context() as dying:
        dying.setattr(f"pyspark_amqp.jobs.local_archive.{place}", killed)
        with pytest.raises(SystemExit):
            job.run(MESSAGES)
    assert job.archive.has(MESSAGES) is is_written
    assert job.run(MESSAGES) == [3, 3, 1]
    assert job.archived(MESSAGES, "JMSMessageID") == IDS


@pytest.mark.requirement("PIP-60")
@pytest.mark.requirement("PIP-75")
def test_the_event_log_continues_behind_its_last_batch(job: Job) -> None:
    assert sum(job.run(EVENTS)) == COUNT
    assert job.run(EVENTS) == []
    file = job.progress(EVENTS)
    last = read_progress(file)
    assert last is not None
    # as if it had been killed before it recorded the end of its last batch
    write_progress(file, replace(last, done=False))
    assert job.run(EVENTS) == [1]
    # as if an operator had deleted the progress
    file.unlink()
    assert job.run(EVENTS) == []
    assert job.archived(EVENTS, "id") == list(range(1, COUNT + 1))


@pytest.mark.requirement("PIP-60")
@pytest.mark.requirement("PIP-75")
@pytest.mark.parametrize(
    ("lacking", "written"), [((), 0), ((6, 7), 2)], ids=["all were archived", "some were not"]
)
def test_rows_that_the_broker_has_removed_stay_archived(
    job: Job, tmp_path: Path, lacking: tuple[int, ...], written: int
) -> None:
    job.run(EVENTS)
    file = job.progress(EVENTS)
    last = read_progress(file)
    assert last is not None
    # as if one batch had all rows, and was killed before it had put all files to their places
    for old in job.archive.files(EVENTS):
        old.unlink()
    options = read_options(job.asked.sources[EVENTS], Use.STREAM)
    found = events.rows(options, list(COLUMNS[EVENTS]), 0, COUNT)
    table = job.engine.of_batches(schema_of(COLUMNS[EVENTS]), found)
    kept = query(f"SELECT * FROM {{e}} WHERE id NOT IN {literal((0, *lacking))}", e=table)
    BatchFiles(job.archive, EVENTS, last.query, last.batch).write(dated(kept, EVENTS))
    write_progress(file, replace(last, behind=0, done=False))
    with closing(sqlite3.connect(tmp_path / "store.db")) as store, store:
        store.execute("DELETE FROM event WHERE id < 4")
    assert job.run(EVENTS) == [written]
    assert job.archived(EVENTS, "id") == list(range(1, COUNT + 1))
    write_progress(file, replace(last, behind=0, done=False))
    assert job.run(EVENTS) == [0]
    assert job.archived(EVENTS, "id") == list(range(1, COUNT + 1))


@pytest.mark.requirement("PIP-60")
@pytest.mark.requirement("PIP-75")
def test_a_batch_is_not_written_again_from_another_event_log(job: Job) -> None:
    job.run(EVENTS)
    file = job.progress(EVENTS)
    last = read_progress(file)
    assert last is not None
    # as if the archived event log had been longer than that of the broker
    write_progress(file, replace(last, until=COUNT + 1, done=False))
    for old in job.archive.files(EVENTS):
        old.unlink()
    with pytest.raises(DataLossError, match="another store"):
        job.run(EVENTS)
    assert not job.archive.has(EVENTS)


@pytest.mark.requirement("PIP-71")
@pytest.mark.requirement("PIP-75")
def test_a_lease_that_ended_before_its_batch_was_settled_is_told(job: Job, broker: Broker) -> None:
    job.run(MESSAGES)
    file = job.progress(MESSAGES)
    last = read_progress(file)
    assert last is not None
    options = read_options({"url": broker.url, "address": "orders"}, Use.STREAM)
    with opened(options) as management:
        management.ask("RELEASE", "lease", last.lease)
    assert job.run(MESSAGES) == [], "all was settled: a new lease begins"
    renewed = read_progress(file)
    assert renewed is not None
    assert renewed.lease != last.lease
    write_progress(file, replace(renewed, batch=2, done=False))
    with pytest.raises(LeaseLostError):
        job.run(MESSAGES)


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize("text", ["", "{", "[]", '{"query": "a", "strange": 1}', "\xff"])
@pytest.mark.parametrize("what", WHATS)
def test_a_damaged_record_of_progress_is_named(job: Job, what: str, text: str) -> None:
    file = job.progress(what)
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="latin-1")
    with pytest.raises(ArchiveError, match=f"{file.name} is damaged: restore it; or delete it"):
        job.run(what)


@pytest.mark.requirement("PIP-69")
def test_an_engine_does_not_continue_what_another_began(job: Job) -> None:
    job.run(EVENTS)
    with pytest.raises(ArchiveError, match="were begun with --engine duckdb: go on with it"):
        job.asked.check("spark")
    job.asked.check("duckdb")


@pytest.mark.requirement("PIP-75")
def test_rows_of_small_record_batches_share_a_row_group(engine: DuckEngine, tmp_path: Path) -> None:
    # one message of that size leaves a record batch room for no other
    lengths = {0: BYTES_AT_ONCE + 1, **dict.fromkeys(range(1, 50), 10)}
    blank = dict.fromkeys(COLUMNS[MESSAGES])
    rows = [
        tuple((blank | {"address": "orders", "position": at, "amqp": bytes(size)}).values())
        for at, size in lengths.items()
    ]
    archive = Archive(tmp_path)
    table = engine.table(COLUMNS[MESSAGES], rows)
    written = BatchFiles(archive, MESSAGES, "query", 0).write(dated(table, MESSAGES))
    (file,) = written.paths
    assert pq.read_metadata(file).num_rows == len(lengths)
    assert pq.read_metadata(file).num_row_groups == 2
