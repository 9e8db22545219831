"""The cause that a job reports if its engine fails, and its exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Final

import pyarrow as pa
import pytest
import typer

from broker import Broker
from pyspark_amqp.engines.duckdb_engine import DuckEngine, duck_engine
from pyspark_amqp.errors import DataLossError, TransientError
from pyspark_amqp.jobs.running import (
    EXIT_NOT_JUDGED,
    EngineName,
    SparkSettings,
    cause_in_duckdb,
    cause_of,
    engine_for,
    told,
)
from pyspark_amqp.options import OptionError
from pyspark_amqp.sink.encoding import RowError
from pyspark_amqp.source.lease import LeaseLostError

ROOT: Final = Path(__file__).resolve().parents[4]

LOST = """Traceback (most recent call last):
  File "worker.py", line 1, in main
pyspark_amqp.source.lease.LeaseLostError: the lease l is gone: it ran out
SQLSTATE: 38000
org.apache.spark.SparkException: Job aborted due to stage failure
"""


UNREADABLE: Final = """An error occurred while calling o7.count.
: org.apache.spark.SparkException: [FAILED_READ_FILE{what}] Encountered error while reading file \
{uri}. {words} SQLSTATE: KD001
\tat org.apache.spark.sql.X$.y(X.scala:1)
Caused by: java.lang.RuntimeException: {cause}
\tat org.apache.parquet.Z.z(Z.java:1)
"""


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(
    ("uri", "words", "cause", "told"),
    [
        pytest.param(
            "file:///a/date=2026-01-01/part%20one.parquet",
            "",
            "file:/a/date=2026-01-01/part is not a Parquet file. Expected magic number at tail",
            "the file /a/date=2026-01-01/part one.parquet cannot be read (it is not a Parquet file",
            id="no Parquet file",
        ),
        pytest.param(
            "file:/a/b.parquet",
            "Could not read footer. Please ensure that it is Parquet.",
            "can not read class PageHeader",
            "the file /a/b.parquet cannot be read (can not read class PageHeader): restore it",
            id="a damaged footer",
        ),
        pytest.param(
            "s3://bucket/b.parquet",
            "",
            "no",
            "the file s3://bucket/b.parquet cannot be read (no): restore it, or move it out",
            id="no file of this machine",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_named(uri: str, words: str, cause: str, told: str) -> None:
    text = UNREADABLE.format(what=".NO_HINT", uri=uri, words=words, cause=cause)
    assert cause_of(text).startswith(told)
    assert "\n" not in cause_of(text)


def test_an_error_of_java_is_told_by_its_cause() -> None:
    text = "An error occurred while calling o7.x.\n: a.b.SparkException: it failed\n\tat a.b"
    assert cause_of(text) == "it failed"
    assert cause_of(f"{text}\nCaused by: java.io.IOException: no room\n") == "no room"


def test_a_lease_that_was_lost_is_told_of_and_not_what_spark_made_of_it() -> None:
    assert cause_of(LOST) == "the lease l is gone: it ran out"


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(
            "Invalid Input Error: File '/a/b.parquet' too small to be a Parquet file\n\nLINE 1: s",
            "the file /a/b.parquet cannot be read (Invalid Input Error: File '/a/b.parquet' too"
            " small to be a Parquet file): restore it, or move it out of the archive",
            id="a file",
        ),
        pytest.param(
            "Out of Memory Error: failed to\nallocate\n\nSELECT * FROM t1",
            "Out of Memory Error: failed to allocate",
            id="something else",
        ),
    ],
)
def test_an_error_of_duckdb_is_one_line_without_its_statement(text: str, cause: str) -> None:
    assert cause_in_duckdb(text) == cause


@contextmanager
def duckdb_of(job: str, status: int = 1) -> Iterator[DuckEngine]:
    """Run the block as a job on DuckDB."""
    name = EngineName.DUCKDB
    with (
        told(job, status, name) as progress,
        engine_for(progress, job, name, SparkSettings(None, {}), status) as engine,
    ):
        yield duck_engine(engine)


@contextmanager
def interrupted(after_s: float) -> Iterator[None]:
    """Interrupt the block as ^C does, also if a shell started the tests with ^C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt = Timer(after_s, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    try:
        yield
    finally:
        interrupt.join()
        signal.signal(signal.SIGINT, before)


AT_ONCE_S: Final = 5
IDS: Final = pa.schema({"id": pa.int64()})


def ids_until(error: BaseException, closed: list[bool]) -> Iterator[pa.RecordBatch]:
    """Yield rows, then raise `error`."""
    try:
        yield pa.RecordBatch.from_pydict({"id": [1]}, IDS)
        raise error
    finally:
        closed.append(True)


@pytest.mark.requirement("PIP-69")
@pytest.mark.requirement("PIP-75")
@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (LeaseLostError("orders", "it ran out"), 1, "orders"),
        (RowError("the row is no message"), 1, "jms-broker: the row is no message\n"),
        (TransientError("the broker is away"), 1, "jms-broker: the broker is away\n"),
        (DataLossError("rows were removed"), 1, "jms-broker: rows were removed\n"),
        (OptionError("option address: no"), 2, "jms-broker: option address: no\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
    ids=["a lost lease", "a row", "the broker", "removed rows", "an option", "^C"],
)
def test_an_error_of_rows_that_duckdb_reads_is_told_in_its_own_words(
    error: BaseException, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    closed: list[bool] = []
    with pytest.raises(typer.Exit) as ended, duckdb_of("archive") as engine:
        engine.of_batches(IDS, ids_until(error, closed))
    assert ended.value.exit_code == status
    assert closed == [True]
    err = capsys.readouterr().err
    assert text in err
    assert err.count("\n") == (1 if text else 0)


@pytest.mark.requirement("PIP-69")
@pytest.mark.requirement("PIP-75")
def test_ctrl_c_ends_a_statement_of_duckdb() -> None:
    """At once, though the call of DuckDB's library returns after 12 s."""
    counting = "SELECT count(*) AS count FROM range(100000000000) a"
    begun = time.monotonic()
    with pytest.raises(typer.Exit) as ended, duckdb_of("report") as engine, interrupted(0.2):
        engine.made("TABLE", counting)
    assert time.monotonic() - begun < AT_ONCE_S
    assert ended.value.exit_code == 130


@pytest.mark.requirement("PIP-63")
def test_a_fault_of_an_audit_is_not_a_check_that_does_not_hold(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as ended, told("audit", EXIT_NOT_JUDGED):
        raise LookupError("no such key")
    assert ended.value.exit_code == EXIT_NOT_JUDGED
    assert capsys.readouterr().err.endswith("\nLookupError: no such key\n")


def test_a_fault_of_another_job_is_raised() -> None:
    with pytest.raises(LookupError), told("report"):
        raise LookupError


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("archive FOLDER --address nobody --what messages --url URL", "there is no queue nobody"),
        ("replay FOLDER --dry-run", "part-x.parquet cannot be read"),
        ("replay FOLDER --dry-run --selector 1", "--selector: a condition is expected"),
    ],
    ids=["an error of a reader", "an error of DuckDB", "a wrong selector"],
)
def test_an_error_of_a_job_on_duckdb_is_one_line(tmp_path: Path, words: str, reason: str) -> None:
    """DuckDB itself would print objects that live when Python ends."""
    folder = tmp_path / "messages/date=2026-01-31/address=q"
    folder.mkdir(parents=True)
    (folder / "part-x.parquet").touch()
    with Broker() as broker:
        places = {"FOLDER": str(tmp_path), "URL": broker.url}
        given = [places.get(word, word) for word in words.split()]
        done = subprocess.run(
            [sys.executable, "-m", "broker", "pipeline", *given, "--engine", "duckdb"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    lines = [line for line in done.stderr.splitlines() if not line.startswith("replay: ")]
    assert len(lines) == 1, done.stderr
    assert reason in lines[0]
    assert done.returncode in {1, 2}
