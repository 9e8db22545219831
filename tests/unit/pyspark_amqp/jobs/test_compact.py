"""Compaction keeps every row, and takes effect completely or not at all, wherever it is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_amqp.jobs.compact import Compacted, compact, groups
from pyspark_amqp.jobs.layout import (
    EVENTS,
    FILE,
    MESSAGES,
    METADATA,
    Archive,
    ArchiveError,
    file_name,
)
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, schema_of
from tests.support import killed_compaction
from tests.unit.pyspark_amqp.batches import record

ROOT: Final = Path(__file__).resolve().parents[4]
AT: Final = datetime(2026, 1, 31, 12, tzinfo=UTC)
SCHEMA: Final = schema_of(EVENT_LOG_COLUMNS)


def put(archive: Archive, day: int, name: str, ids: range, schema: pa.Schema = SCHEMA) -> Path:
    """Write a file with event log rows that have these ids."""
    folder = archive.data(EVENTS) / f"date=2026-01-{day:02}"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [dict.fromkeys(schema.names) | {"id": id_, "kind": f"ä{id_}", "at": AT} for id_ in ids]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / name)
    return folder / name


def small_archive(root: Path) -> Archive:
    """Return an archive with two days of two queries; the last batch of each must be left alone."""
    archive = Archive(root)
    record(archive, "a")
    record(archive, "b")
    for batch in range(4):
        put(archive, 30, file_name("a", batch, 0), range(batch * 3, batch * 3 + 3))
    put(archive, 31, file_name("b", 0, 0), range(100, 102))
    put(archive, 31, file_name("b", 0, 1), range(102, 104))
    put(archive, 31, file_name("b", 1, 0), range(104, 106))
    return archive


def rows(seen: dict[str, list[int]]) -> list[int]:
    return sorted(id_ for ids in seen.values() for id_ in ids)


@pytest.mark.requirement("PIP-62")
def test_small_files_become_one(tmp_path: Path) -> None:
    archive = small_archive(tmp_path)
    before = killed_compaction.read(tmp_path)
    told: list[Path] = []
    assert compact(archive, [MESSAGES, EVENTS], tell=told.append) == Compacted(2, 7, 4, 13)
    after = killed_compaction.read(tmp_path)
    assert told == archive.folders(EVENTS)
    assert rows(after) == rows(before)
    assert sorted(map(len, after.values())) == [2, 3, 4, 9]
    kept = [file for file in after if FILE.fullmatch(Path(file).name)]
    assert kept == [
        f"date=2026-01-30/{file_name('a', 3, 0)}",
        f"date=2026-01-31/{file_name('b', 1, 0)}",
    ]
    assert next(ids for ids in after.values() if len(ids) == 9) == list(range(9)), "in their order"
    assert compact(archive, [EVENTS]) == Compacted(0, 4, 4, 0), "nothing is left to do"
    schemas = [pq.read_schema(file) for file in archive.files(EVENTS)]
    assert all(schema.equals(SCHEMA) for schema in schemas)


@pytest.mark.requirement("PIP-62")
def test_files_of_a_query_that_has_ended_are_merged(tmp_path: Path) -> None:
    """A run that browses is a query of one batch, without a checkpoint."""
    archive = Archive(tmp_path)
    record(archive, "a")
    checkpoint = archive.checkpoint("messages-1")
    checkpoint.mkdir(parents=True)
    (checkpoint / METADATA).write_text('{"id":"0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"}')
    goes_on = [file_name(query, 0, 0) for query in ("0a1b2c3d4e5f", "a")]
    for at, query in enumerate(("0a1b2c3d4e5f", "a", "b", "c", "d")):
        put(archive, 30, file_name(query, 0, 0), range(at * 2, at * 2 + 2))
    assert compact(archive, [EVENTS]) == Compacted(1, 5, 3, 6)
    assert [file.name for file in archive.files(EVENTS) if file.name in goes_on] == goes_on


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize("name", ["events-1.json", f"events-1/{METADATA}"])
@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_a_damaged_checkpoint_is_named(tmp_path: Path, name: str, text: str) -> None:
    archive = small_archive(tmp_path)
    file = archive.checkpoint("x").parent / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="latin-1")
    with pytest.raises(ArchiveError, match=f"{name} is damaged: restore it; or delete it"):
        compact(archive, [EVENTS])
    assert len(archive.files(EVENTS)) == 7


@pytest.mark.requirement("PIP-62")
def test_batches_that_come_meanwhile_stay_as_they_are(tmp_path: Path) -> None:
    """A job killed after such a batch writes it again, and finds its files by their names."""
    archive = Archive(tmp_path)
    record(archive, "a")
    for batch in range(4):
        put(archive, 30, file_name("a", batch, 0), range(batch * 3, batch * 3 + 3))

    def archived_meanwhile(_: Path) -> None:
        for query, batch, number in (("a", 4, 0), ("a", 4, 1), ("c", 0, 0), ("c", 0, 1)):
            put(archive, 30, file_name(query, batch, number), range(2))

    compact(archive, [EVENTS], tell=archived_meanwhile)
    kept = [file.name for file in archive.files(EVENTS) if FILE.fullmatch(file.name)]
    assert kept == [
        *(file_name("a", batch, number) for batch, number in ((3, 0), (4, 0), (4, 1))),
        *(file_name("c", 0, number) for number in (0, 1)),
    ]
    assert len(archive.files(EVENTS)) == len(kept) + 1


@pytest.mark.requirement("PIP-62")
def test_wherever_it_is_killed_there_is_all_of_the_old_or_all_of_the_new(tmp_path: Path) -> None:
    original = tmp_path / "original"
    archive = Archive(original)
    record(archive, "a")
    for batch in range(4):
        put(archive, 30, file_name("a", batch, 0), range(batch * 3, batch * 3 + 3))
    old = killed_compaction.read(original)
    program = Path(killed_compaction.__file__)
    done = subprocess.run(
        [sys.executable, str(program), str(original), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kills = [json.loads(line) for line in done.stdout.splitlines()]
    events = [kill["event"] for kill in kills]
    assert {"os.mkdir", "os.link", "open", "ctypes.dlsym", "os.rmdir"} <= set(events)
    assert events[-1] == "", "the last got through"
    states = []
    for kill in kills:
        assert rows(kill["seen"]) == rows(old), kill["event"]
        assert len(kill["seen"]) in (2, 4), "four old files, or a new one and the last batch's"
        assert rows(kill["after"]) == rows(old), "the next run tidies up"
        assert len(kill["after"]) == 2
        assert kill["left"] == []
        states.append(len(kill["seen"]))
    assert states == sorted(states, reverse=True), "once it is new it stays new"


def test_files_of_older_versions_may_lack_columns(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    names = [name for name in EVENT_LOG_COLUMNS if name != "boot"]
    put(archive, 30, "part-x.parquet", range(2), schema_of(EVENT_LOG_COLUMNS, names))
    put(archive, 30, "part-y.parquet", range(2, 4))
    assert compact(archive, [EVENTS]).after == 1
    (file,) = archive.files(EVENTS)
    table = pq.read_table(file, partitioning=None)
    assert table["id"].to_pylist() == [0, 1, 2, 3]
    assert table["boot"].null_count == 4


@pytest.mark.requirement("PIP-62")
@pytest.mark.parametrize("form", ["INT96", "NANOS"])
def test_times_of_merged_files_can_be_read_by_spark(tmp_path: Path, form: str) -> None:
    archive = Archive(tmp_path)
    for number in range(2):
        file = put(archive, 30, f"part-{number}.parquet", range(number, number + 1))
        table = pq.read_table(file, partitioning=None)
        if form == "NANOS":
            # as an earlier version merged files of Spark
            times = pa.timestamp("ns")
            at = table["at"].cast(pa.timestamp("us")).cast(times)
            table = table.set_column(table.schema.get_field_index("at"), "at", at)
        pq.write_table(table, file, use_deprecated_int96_timestamps=form == "INT96")
    assert compact(archive, [EVENTS]).after == 1
    (file,) = archive.files(EVENTS)
    table = pq.read_table(file, partitioning=None)
    assert table.schema.equals(SCHEMA)
    assert table["at"].to_pylist() == [AT, AT]


def test_large_files_stay(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    files = [put(archive, 30, f"part-{number}.parquet", range(3)) for number in range(5)]
    size = files[0].stat().st_size
    assert groups(files, {}, size * 2) == [files[:2], files[2:4]]
    assert groups(files, {}, size) == []


def test_a_file_that_is_hidden_stays_beside_them(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    first = put(archive, 30, "part-x.parquet", range(2))
    put(archive, 30, "part-y.parquet", range(2, 4))
    (first.parent / ".note").write_text("mine")
    compact(archive, [EVENTS])
    assert (first.parent / ".note").read_text() == "mine"


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    put(archive, 30, "part-x.parquet", range(2))
    broken = put(archive, 30, "part-y.parquet", range(2))
    broken.write_bytes(b"no")
    with pytest.raises(ArchiveError, match=r"part-y\.parquet"):
        compact(archive, [EVENTS])
    assert len(archive.files(EVENTS)) == 2


def test_a_file_with_a_column_of_another_type_is_named(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    put(archive, 30, "part-x.parquet", range(2))
    other = SCHEMA.set(SCHEMA.get_field_index("kind"), pa.field("kind", pa.binary()))
    table = pa.Table.from_pylist([], schema=other)
    pq.write_table(table, archive.data(EVENTS) / "date=2026-01-30" / "part-y.parquet")
    with pytest.raises(ArchiveError, match=r"part-y\.parquet cannot be merged .*part-x.*kind"):
        compact(archive, [EVENTS])
    assert len(archive.files(EVENTS)) == 2


def test_a_file_with_damaged_rows_is_named(tmp_path: Path) -> None:
    archive = Archive(tmp_path)
    put(archive, 30, "part-x.parquet", range(2))
    broken = put(archive, 30, "part-y.parquet", range(2))
    data = bytearray(broken.read_bytes())
    data[4:200] = b"\xff" * 196
    broken.write_bytes(data)
    with pytest.raises(ArchiveError, match=r"part-y\.parquet is damaged"):
        compact(archive, [EVENTS])
    assert len(archive.files(EVENTS)) == 2
