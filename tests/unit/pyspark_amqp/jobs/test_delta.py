"""An archive's Delta tables have each row once, as its files do, after kills at any point."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from pyspark_amqp.engines.folders import NO_VALUE
from pyspark_amqp.jobs import archiving
from pyspark_amqp.jobs.archive import BatchName, place, schema_in_files
from pyspark_amqp.jobs.compact import compact
from pyspark_amqp.jobs.layout import (
    DELTA_TABLE,
    EVENTS,
    FILE,
    FOLDERS,
    MESSAGES,
    Archive,
    ArchiveError,
    folder_name,
)
from tests.unit.pyspark_amqp.batches import DAY, QUERY, asked, put, record, staged_files

needs_delta: Final = pytest.mark.skipif(
    importlib.util.find_spec("deltalake") is None and os.environ.get("CI") != "true",
    reason="deltalake is not installed",
)


def in_table(archive: Archive, what: str = EVENTS, column: str = "id") -> list[object]:
    """Return a column of the Delta table as its own library reads it."""
    from deltalake import DeltaTable

    found = DeltaTable(archive.data(what)).to_pyarrow_table()[column].to_pylist()
    return sorted(found, key=str) if column in FOLDERS[what] else sorted(found)


def versions(archive: Archive) -> int:
    from deltalake import DeltaTable

    found: int = DeltaTable(archive.data(EVENTS)).version()
    return found


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Return an archive whose folder of the event log is a Delta table without rows."""
    from pyspark_amqp.jobs import delta

    made = Archive(tmp_path)
    delta.begin(made, EVENTS)
    return made


@needs_delta
@pytest.mark.requirement("PIP-80")
def test_a_batch_is_one_version_of_the_table(archive: Archive) -> None:
    from deltalake import DeltaTable

    put(archive, 0, range(3), range(3, 5))
    assert versions(archive) == 1
    put(archive, 1, range(5, 7))
    assert versions(archive) == 2
    assert in_table(archive) == list(range(7))
    assert DeltaTable(archive.data(EVENTS)).transaction_version(QUERY) == 1


@needs_delta
@pytest.mark.requirement("PIP-80")
@pytest.mark.parametrize("is_logged", [True, False], ids=["logged", "killed before the log"])
def test_a_batch_that_is_written_again_replaces_itself(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, is_logged: bool
) -> None:
    def killed(*_: object) -> None:
        raise SystemExit

    put(archive, 0, range(3))
    if is_logged:
        put(archive, 1, range(3, 5), range(5, 7))
    else:
        with monkeypatch.context() as dying:
            dying.setattr("pyspark_amqp.jobs.delta.update", killed)
            with pytest.raises(SystemExit):
                put(archive, 1, range(3, 5), range(5, 7))
        assert in_table(archive) == [0, 1, 2]
    # the rows of the second file now come in the first one
    put(archive, 1, range(3, 7), again=True)
    assert in_table(archive) == list(range(7))
    assert len(archive.files(EVENTS)) == 2


@needs_delta
@pytest.mark.requirement("PIP-80")
def test_rows_that_are_not_read_again_stay_in_the_table(archive: Archive) -> None:
    put(archive, 0, range(5))
    put(archive, 0, range(3, 5), again=True)
    assert in_table(archive) == list(range(5))


@needs_delta
@pytest.mark.requirement("PIP-80")
def test_an_archive_of_files_becomes_a_table(tmp_path: Path) -> None:
    from pyspark_amqp.jobs import delta

    archive = Archive(tmp_path)
    put(archive, 0, range(3))
    assert not archive.is_delta(EVENTS)
    delta.begin(archive, EVENTS)
    assert in_table(archive) == [0, 1, 2]
    # nothing has changed: no new version
    before = versions(archive)
    delta.begin(archive, EVENTS)
    assert versions(archive) == before


@needs_delta
@pytest.mark.requirement("PIP-80")
def test_a_table_of_an_earlier_version_gets_new_columns(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    from pyspark_amqp.jobs import delta

    archive = Archive(tmp_path)
    schema = schema_in_files(EVENTS)
    fewer = pa.schema([field for field in schema if field.name != "boot"])
    DeltaTable.create(
        archive.data(EVENTS), fewer.append(pa.field("date", pa.string())), partition_by=["date"]
    )
    delta.begin(archive, EVENTS)
    put(archive, 0, range(3))
    assert in_table(archive, column="id") == [0, 1, 2]
    assert DeltaTable(archive.data(EVENTS)).to_pyarrow_table()["boot"].null_count == 3


@needs_delta
@pytest.mark.requirement("PIP-80")
@pytest.mark.parametrize("address", ["orders", "007", "a/b c", "ä=ö%2F", "null", "date=1", ""])
def test_folders_with_odd_names_are_partitions(tmp_path: Path, address: str) -> None:
    from pyspark_amqp.jobs import delta

    archive = Archive(tmp_path)
    delta.begin(archive, MESSAGES)
    folder = f"{DAY}/{folder_name('address', address)}"
    staged = staged_files(archive, MESSAGES, folder, [4, 14])
    place(archive, BatchName(MESSAGES, QUERY, 0), staged, may_be_there=False)
    assert in_table(archive, MESSAGES, "position") == [4, 14]
    # as Spark reads the folder of no value, too
    expected = None if folder.endswith(NO_VALUE) else address
    assert in_table(archive, MESSAGES, "address") == [expected] * 2
    assert in_table(archive, MESSAGES, "date") == ["2026-01-31"] * 2


@needs_delta
@pytest.mark.requirement("PIP-62")
@pytest.mark.requirement("PIP-80")
@pytest.mark.parametrize("is_killed", [False, True], ids=["completed", "killed before the log"])
def test_a_compacted_table_has_the_same_rows(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    def killed(archive: Archive, what: str) -> None:
        if any(FILE.fullmatch(file.name) is None for file in archive.files(what)):
            raise SystemExit

    record(archive)
    for number in range(4):
        put(archive, number, range(number * 3, number * 3 + 3))
    if is_killed:
        with monkeypatch.context() as dying:
            dying.setattr("pyspark_amqp.jobs.compact._follow", killed)
            with pytest.raises(SystemExit):
                compact(archive, [EVENTS])
        assert len(archive.files(EVENTS)) == 2
    compact(archive, [EVENTS])
    assert len(archive.files(EVENTS)) == 2
    assert in_table(archive) == list(range(12))


@needs_delta
@pytest.mark.requirement("PIP-80")
def test_a_long_log_has_checkpoints_that_the_jobs_do_not_read(archive: Archive) -> None:
    for number in range(101):
        put(archive, number, [number])
    assert list((archive.data(EVENTS) / "_delta_log").glob("*.checkpoint.parquet"))
    assert in_table(archive) == list(range(101))
    assert len(archive.files(EVENTS)) == 101


@pytest.mark.requirement("PIP-80")
@pytest.mark.parametrize(
    ("form", "is_table", "refusal"),
    [
        (archiving.PARQUET, True, "events is a table of Delta, and stays one"),
        (DELTA_TABLE, False, r"is missing: pip install 'jms-broker\[delta\]'"),
        (None, True, r"is missing: pip install 'jms-broker\[delta\]'"),
    ],
)
def test_a_wrong_format_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str | None, is_table: bool, refusal: str
) -> None:
    monkeypatch.setattr("pyspark_amqp.jobs.layout.find_spec", lambda _: None)
    if is_table:
        (tmp_path / "events" / "_delta_log").mkdir(parents=True)
    with pytest.raises(ArchiveError, match=refusal):
        asked(tmp_path, form).check("duckdb")
