"""The engine on DuckDB: the folders that it reads, and the times that it returns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from pyspark_amqp.engines.duckdb_engine import DuckEngine, duckdb_engine
from pyspark_amqp.jobs.archive import dated
from pyspark_amqp.jobs.layout import COLUMNS, EVENTS, Archive
from pyspark_amqp.jobs.local_archive import BatchFiles
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.rows.columns import UTC_MICROSECONDS

AT: Final = datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)


@pytest.fixture
def engine() -> Iterator[DuckEngine]:
    with duckdb_engine() as found:
        yield found


def archived(engine: DuckEngine, root: Path) -> Archive:
    """Return an archive with one event."""
    row = dict.fromkeys(COLUMNS[EVENTS]) | {"id": 1, "at": AT, "address": "orders"}
    rows = engine.table(COLUMNS[EVENTS], [tuple(row.values())])
    archive = Archive(root)
    BatchFiles(archive, EVENTS, "query", 0).write(dated(rows, EVENTS))
    return archive


@pytest.mark.requirement("PIP-75")
@pytest.mark.parametrize(
    "above",
    ["Address=invoices", "date=2020-01-01", "kind=x", "kind=[1]*?'", "run=7", "date", "=date"],
)
def test_a_folder_above_an_archive_is_no_column(
    engine: DuckEngine, tmp_path: Path, above: str
) -> None:
    found = archived(engine, tmp_path / above / "archive").read(engine, EVENTS)
    read = query("SELECT date, address FROM {found}", found=found).rows()
    assert read == [{"date": "2026-01-31", "address": "orders"}]


@pytest.mark.requirement("PIP-75")
def test_times_as_arrow_are_in_utc(engine: DuckEngine) -> None:
    rows = engine.table({"id": "BIGINT", "at": "TIMESTAMP"}, [(1, AT), (2, None)]).arrow()
    assert rows.schema.field("at").type == UTC_MICROSECONDS
    assert rows["at"].to_pylist() == [AT, None]


@pytest.mark.requirement("PIP-75")
def test_rows_that_are_stored_are_not_copied_to_be_kept(engine: DuckEngine) -> None:
    stored = engine.table({"id": "BIGINT"}, [(1,), (2,)])
    assert stored.kept() is stored
    view = query("SELECT id FROM {stored} WHERE id > 1", stored=stored)
    kept = view.kept()
    assert kept is not view
    assert kept.kept() is kept
    assert kept.rows() == [{"id": 2}]
