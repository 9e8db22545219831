"""An archive's Iceberg tables have each row once, as its files do, after failures at any point."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_amqp.engines.folders import NO_VALUE
from pyspark_amqp.jobs import archiving
from pyspark_amqp.jobs.archive import BatchName, place, schema_in_files
from pyspark_amqp.jobs.compact import compact
from pyspark_amqp.jobs.layout import (
    EVENTS,
    FILE,
    FOLDERS,
    ICEBERG_TABLE,
    MESSAGES,
    Archive,
    ArchiveError,
    folder_name,
)
from pyspark_amqp.options import OptionError
from tests.unit.pyspark_amqp.batches import DAY, QUERY, asked, put, record, staged_files

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

pytestmark = [
    pytest.mark.requirement("PIP-81"),
    pytest.mark.skipif(
        importlib.util.find_spec("pyiceberg") is None and os.environ.get("CI") != "true",
        reason="pyiceberg is not installed",
    ),
]

OWN: Final = None
NAMED: Final = "lake"
both: Final = pytest.mark.parametrize("catalog", [OWN, NAMED], ids=["own", "named"])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Configure a catalog `lake` as its users do, by variables; return its warehouse."""
    from pyiceberg.utils.config import Config

    folder = tmp_path / "lake"
    folder.mkdir()
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{folder}/lake.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{folder}")
    # pyiceberg has read the variables when it was imported
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    return folder


def begun(folder: Path, catalog: str | None, what: str = EVENTS) -> Archive:
    """Return an archive with an Iceberg table without rows."""
    from pyspark_amqp.jobs import iceberg

    made = Archive(folder / "archive")
    iceberg.begin(made, what, catalog=catalog)
    return made


@pytest.fixture
def archive(tmp_path: Path, lake: Path, catalog: str | None) -> Archive:
    """Return an archive whose event log has an Iceberg table in `catalog`."""
    assert lake.is_dir()
    return begun(tmp_path, catalog)


@contextmanager
def opened(archive: Archive, what: str = EVENTS) -> Iterator[Catalog]:
    from pyspark_amqp.jobs import iceberg_catalog

    found = iceberg_catalog.recorded(archive, what)
    assert found is not None
    with iceberg_catalog.opened(archive, found) as catalog:
        yield catalog


def table_of(archive: Archive, what: str = EVENTS) -> Table:
    with opened(archive, what) as catalog:
        return catalog.load_table(("archive", what))


def in_table(archive: Archive, what: str = EVENTS, column: str = "id") -> list[object]:
    """Return a column of the table as Iceberg's own library reads it."""
    found = table_of(archive, what).scan().to_arrow()[column].to_pylist()
    return sorted(found, key=str) if column in FOLDERS[what] else sorted(found)


def snapshots(archive: Archive) -> int:
    return len(table_of(archive).snapshots())


Change = Callable[[], object]


def at_commits(
    monkeypatch: pytest.MonkeyPatch, before: Change = object, after: Change = object
) -> None:
    """Call `before` and `after` at each commit to a catalog, unless they commit themselves."""
    from pyiceberg.catalog.sql import SqlCatalog

    commit = SqlCatalog.commit_table
    nested: list[bool] = []

    def disturbed(self: SqlCatalog, *given: Any, **named: Any) -> object:
        if nested:
            return commit(self, *given, **named)
        nested.append(True)
        try:
            before()
            done = commit(self, *given, **named)
            after()
            return done
        finally:
            nested.clear()

    monkeypatch.setattr(SqlCatalog, "commit_table", disturbed)


@both
def test_a_batch_is_one_snapshot_of_the_table(archive: Archive) -> None:
    put(archive, 0, range(3), range(3, 5))
    assert snapshots(archive) == 1
    put(archive, 1, range(5, 7))
    assert snapshots(archive) == 2
    assert in_table(archive) == list(range(7))
    last = table_of(archive).current_snapshot()
    assert last is not None
    assert last.summary is not None
    told = last.summary.additional_properties
    assert (told["jms-broker.query"], told["jms-broker.batch"]) == (QUERY, "1")
    assert table_of(archive).scan(row_filter="date = '2026-01-31' and id >= 5").count() == 2
    assert table_of(archive).scan(row_filter="date = '2026-02-01'").to_arrow().num_rows == 0


@both
@pytest.mark.parametrize("moment", ["committed", "before the table", "in the commit", "after it"])
def test_a_batch_that_is_written_again_replaces_itself(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def killed(*_: object) -> None:
        raise SystemExit

    put(archive, 0, range(3))
    if moment == "committed":
        put(archive, 1, range(3, 5), range(5, 7))
    else:
        with monkeypatch.context() as dying:
            if moment == "before the table":
                dying.setattr("pyspark_amqp.jobs.iceberg.update", killed)
            elif moment == "in the commit":
                at_commits(dying, before=killed)
            else:
                at_commits(dying, after=killed)
            with pytest.raises(SystemExit):
                put(archive, 1, range(3, 5), range(5, 7))
        assert in_table(archive) == list(range(7 if moment == "after it" else 3))
    # the rows of the second file now come in the first one
    put(archive, 1, range(3, 7), again=True)
    assert in_table(archive) == list(range(7))
    assert len(archive.files(EVENTS)) == 2
    assert len(list(table_of(archive).scan().plan_files())) == 2


@both
def test_the_next_run_adds_what_a_killed_job_has_left_out(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark_amqp.jobs import iceberg

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as dying:
        at_commits(dying, before=killed)
        with pytest.raises(SystemExit):
            put(archive, 0, range(3))
    iceberg.begin(archive, EVENTS)
    assert in_table(archive) == [0, 1, 2]
    before = snapshots(archive)
    iceberg.begin(archive, EVENTS)
    assert snapshots(archive) == before, "nothing has changed"


@both
def test_rows_that_are_not_read_again_stay_in_the_table(archive: Archive) -> None:
    put(archive, 0, range(5))
    put(archive, 0, range(3, 5), again=True)
    assert in_table(archive) == list(range(5))


@pytest.mark.parametrize("catalog", [OWN])
def test_a_file_of_the_same_size_with_other_rows_is_listed_anew(archive: Archive) -> None:
    def padded(file: Path, rows: int, pad: int) -> None:
        made = pa.Table.from_pylist([{"id": each} for each in range(rows)])
        with pq.ParquetWriter(file, made.schema) as writer:
            writer.add_key_value_metadata({"pad": "x" * pad})
            writer.write_table(made)

    put(archive, 0, range(5))
    (file,) = archive.files(EVENTS)
    padded(file, 4, 1000)
    put(archive, 1, [5])
    from pyspark_amqp.jobs import iceberg

    iceberg.begin(archive, EVENTS)
    size = file.stat().st_size
    other = file.with_name("other")
    padded(other, 3, 1000)
    padded(other, 3, 1000 + size - other.stat().st_size)
    assert other.stat().st_size == size
    other.replace(file)
    put(archive, 1, [5], again=True)
    assert table_of(archive).scan().count() == 5, "it is no file of the batch"
    put(archive, 0, range(3), again=True)
    iceberg.begin(archive, EVENTS)
    assert table_of(archive).scan().count() == 4


@both
@pytest.mark.parametrize("repeats", [1, 9])
def test_other_programs_may_commit_meanwhile(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, repeats: int
) -> None:
    seen: list[int] = []

    def meddle() -> None:
        if len(seen) < repeats:
            seen.append(len(seen))
            with table_of(archive).transaction() as other:
                other.set_properties({"seen": str(len(seen))})
            other = table_of(archive).transaction()
            with other.update_snapshot().fast_append():
                pass
            other.commit_transaction()

    put(archive, 0, range(3))
    with table_of(archive).transaction() as change:
        # only the attempts of the job itself, without pyiceberg's pauses between its own
        change.set_properties({"commit.retry.num-retries": "0"})
    with monkeypatch.context() as busy:
        at_commits(busy, before=meddle)
        if repeats == 1:
            put(archive, 1, range(3, 5))
        else:
            with pytest.raises(ArchiveError, match="is changed by other programs all the time"):
                put(archive, 1, range(3, 5))
            assert len(seen) == 5
            assert len(archive.files(EVENTS)) == 2
    put(archive, 1, range(3, 5), again=True)
    assert in_table(archive) == list(range(5))
    assert table_of(archive).properties["seen"] == str(len(seen))


@both
def test_an_archive_of_files_becomes_a_table(tmp_path: Path, lake: Path, catalog: str) -> None:
    assert lake.is_dir()
    archive = Archive(tmp_path / "archive")
    put(archive, 0, range(3))
    assert not archive.is_iceberg(EVENTS)
    begun(tmp_path, catalog)
    assert in_table(archive) == [0, 1, 2]


@both
def test_a_table_of_an_earlier_version_gets_new_columns(archive: Archive) -> None:
    with table_of(archive).update_schema() as change:
        change.delete_column("boot")
    assert "boot" not in table_of(archive).schema().column_names
    put(archive, 0, range(3))
    assert table_of(archive).scan().to_arrow()["boot"].null_count == 3


@both
@pytest.mark.parametrize("address", ["orders", "007", "a/b c", "ä=ö%2F", "null", "date=1", ""])
def test_folders_with_odd_names_are_partitions(
    tmp_path: Path, lake: Path, catalog: str | None, address: str
) -> None:
    assert lake.is_dir()
    archive = begun(tmp_path, catalog, MESSAGES)
    folder = f"{DAY}/{folder_name('address', address)}"
    staged = staged_files(archive, MESSAGES, folder, [4, 14])
    place(archive, BatchName(MESSAGES, QUERY, 0), staged, may_be_there=False)
    assert in_table(archive, MESSAGES, "position") == [4, 14]
    # as Spark reads the folder of no value, too
    expected = None if folder.endswith(NO_VALUE) else address
    assert in_table(archive, MESSAGES, "address") == [expected] * 2
    assert in_table(archive, MESSAGES, "date") == ["2026-01-31"] * 2


@both
@pytest.mark.requirement("PIP-62")
@pytest.mark.parametrize("is_killed", [False, True], ids=["completed", "killed before the table"])
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
    assert len(list(table_of(archive).scan().plan_files())) == 2
    assert in_table(archive) == list(range(12))


@pytest.mark.parametrize("catalog", [OWN])
def test_old_snapshots_are_deleted(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyspark_amqp.jobs.iceberg.SNAPSHOTS_KEPT", 3)
    for number in range(20):
        put(archive, number, [number])
    assert snapshots(archive) < 6
    # at most for each snapshot a list and a manifest, beside the ten that are not merged yet
    assert len(list((archive.iceberg_data(EVENTS) / "metadata").iterdir())) < 11 + 2 * 6 + 10
    assert len(table_of(archive).inspect.manifests()) < 11
    assert in_table(archive) == list(range(20))


@pytest.mark.parametrize("catalog", [OWN])
def test_an_archive_may_be_moved(archive: Archive, tmp_path: Path) -> None:
    put(archive, 0, range(3))
    archive.root.rename(tmp_path / "moved 50%")
    moved = Archive(tmp_path / "moved 50%")
    put(moved, 1, range(3, 5))
    assert in_table(moved) == list(range(5))


@pytest.mark.parametrize("catalog", [NAMED])
def test_copies_are_complete_files_of_iceberg(archive: Archive, lake: Path) -> None:
    put(archive, 0, range(3))
    (task,) = table_of(archive).scan().plan_files()
    copy = Path(task.file.file_path.removeprefix("file://"))
    assert copy.is_relative_to(lake)
    found = pq.ParquetFile(copy)
    assert found.schema_arrow.names == table_of(archive).schema().column_names
    assert found.read()["date"].to_pylist() == ["2026-01-31"] * 3
    assert all(b"PARQUET:field_id" in field.metadata for field in found.schema_arrow)
    assert task.file.value_counts[1] == 3


@pytest.mark.parametrize("catalog", [OWN])
def test_times_as_spark_writes_them_and_duckdb(archive: Archive) -> None:
    at = 1_769_860_800_123_456
    rows = pa.table({"id": [1], "at": pa.array([at], pa.timestamp("us", "UTC"))})
    staged = archive.staging / "batch"
    (staged / DAY).mkdir(parents=True)
    complete = pa.concat_tables(
        [schema_in_files(EVENTS).empty_table(), rows], promote_options="default"
    )
    pq.write_table(complete, staged / DAY / "part.parquet", use_deprecated_int96_timestamps=True)
    place(archive, BatchName(EVENTS, QUERY, 0), staged, may_be_there=False)
    with duckdb.connect() as connection:
        table_of(archive).scan().to_duckdb("events", connection)
        found = connection.sql('SELECT id, epoch_us("at"), date FROM events').fetchall()
    assert found == [(1, at, "2026-01-31")]


def test_a_table_of_another_archive_is_left_alone(tmp_path: Path, lake: Path) -> None:
    from pyspark_amqp.jobs import iceberg

    assert lake.is_dir()
    put(begun(tmp_path, NAMED), 0, range(3))
    with pytest.raises(ArchiveError, match=r"archive\.events .* is not of the archive .*--namesp"):
        asked(tmp_path / "other", ICEBERG_TABLE, catalog=NAMED).check("duckdb")
    with pytest.raises(ArchiveError, match="is not of the archive"):
        begun(tmp_path / "other", NAMED)
    assert in_table(Archive(tmp_path / "archive")) == [0, 1, 2]
    other = Archive(tmp_path / "second")
    iceberg.begin(other, EVENTS, catalog=NAMED, namespace="second")
    with opened(other) as catalog:
        assert catalog.list_tables("second") == [("second", EVENTS)]
    with pytest.raises(ArchiveError, match=r"cannot be made: .*hierarchical namespaces"):
        iceberg.begin(Archive(tmp_path / "third"), EVENTS, catalog=NAMED, namespace="second.third")


@pytest.mark.parametrize(
    ("form", "given", "refusal"),
    [
        (archiving.PARQUET, {}, "events is a table of Iceberg, and stays one"),
        (None, {"catalog": NAMED}, "has the Iceberg table archive.events .* leave out --catalog"),
        (None, {"namespace": "other"}, "leave out --catalog and --namespace"),
    ],
)
def test_a_table_stays_where_it_is(
    tmp_path: Path, form: str | None, given: dict[str, str], refusal: str
) -> None:
    archive = begun(tmp_path, OWN)
    with pytest.raises(ArchiveError, match=refusal):
        asked(archive.root, form, **given).check("duckdb")


@pytest.mark.parametrize(
    ("name", "given", "refusal"),
    [
        ("archive", {"catalog": "pond"}, r"catalog pond cannot be opened .*_CATALOG__POND__URI"),
        ("archive#1", {}, "has # in its name"),
    ],
)
def test_a_place_that_cannot_be_is_refused(
    tmp_path: Path, name: str, given: dict[str, str], refusal: str
) -> None:
    with pytest.raises(ArchiveError, match=refusal):
        asked(tmp_path / name, ICEBERG_TABLE, **given).check("duckdb")
    assert not (tmp_path / name / "_iceberg").exists()


def test_options_of_iceberg_are_for_iceberg(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="are for --format iceberg"):
        asked(tmp_path, None, catalog=NAMED).check("duckdb")


@pytest.mark.parametrize("is_table", [False, True])
def test_a_missing_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_table: bool
) -> None:
    archive = begun(tmp_path, OWN) if is_table else Archive(tmp_path / "archive")
    monkeypatch.setattr("pyspark_amqp.jobs.layout.find_spec", lambda _: None)
    with pytest.raises(ArchiveError, match=r"is missing: pip install 'jms-broker\[iceberg\]'"):
        asked(archive.root, None if is_table else ICEBERG_TABLE).check("duckdb")
    if is_table:
        with pytest.raises(ArchiveError, match="pyiceberg, which the Iceberg tables"):
            compact(archive, [EVENTS])
