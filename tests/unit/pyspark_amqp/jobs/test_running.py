"""The cause that a job reports if Spark fails."""

from __future__ import annotations

from typing import Final

import pytest

from pyspark_amqp.jobs.running import cause_in_duckdb, cause_of

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
