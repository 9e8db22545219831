"""The engine on DuckDB: the folders that it reads, and the times that it returns."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest

from pyspark_amqp.engines.duckdb_engine import (
    BYTES_AT_ONCE,
    ROWS_AT_ONCE,
    DuckEngine,
    duck_table,
    duckdb_engine,
)
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


LARGE_BATCHES: Final[dict[str, tuple[str, int, int]]] = {
    "all large": ("1000000", 200, BYTES_AT_ONCE // 1_000_000),
    "one large among many small": ("CASE WHEN i = 0 THEN 140000000 ELSE 10 END", 100, 1),
    "few bytes in all": ("1000", 20_000, ROWS_AT_ONCE),
    "no bytes": ("NULL", 20_000, ROWS_AT_ONCE),
}
"""For each case the length of message `i` in SQL, the number of messages, and that in a batch."""


@pytest.mark.requirement("PIP-75")
@pytest.mark.parametrize("case", LARGE_BATCHES)
def test_a_record_batch_of_large_messages_has_few_rows(engine: DuckEngine, case: str) -> None:
    length, count, at_once = LARGE_BATCHES[case]
    numbers = engine.table({"i": "BIGINT"}, [(each,) for each in range(count)])
    body = f"CAST(repeat('x', CAST({length} AS BIGINT)) AS BINARY)"
    rows = query(f"SELECT i AS position, {body} AS amqp FROM {{numbers}}", numbers=numbers)
    sizes = [batch.num_rows for batch in duck_table(rows).reader()]
    assert sum(sizes) == count
    assert max(sizes) == at_once
