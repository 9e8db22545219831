"""Rows of the event log in Arrow's format."""

import pyarrow as pa
import pytest

from broker.http import events
from broker.http.events import SCHEMA, batch_of, batch_of_rows
from storage.events import EVENT_COLUMNS, EventRow, columns_of
from storage.memory import MemoryStore
from tests.support.http import event, note

ROWS = [event(1), event(2, "accepted"), event(3, "expired", "b")]


def rows_in(batch: pa.RecordBatch | pa.Table) -> list[EventRow]:
    return [tuple(row.values()) for row in batch.to_pylist()]


def test_columns_have_the_names_of_the_store() -> None:
    assert SCHEMA.names == list(EVENT_COLUMNS)
    numbers = {field.name for field in SCHEMA if field.type == pa.int64()}
    assert numbers == {"id", "at_us", "position", "delivery_count", "deliver_at_us"}


def test_columns_become_a_batch() -> None:
    batch = batch_of(columns_of(ROWS, looked_to=3, is_last=True))
    assert batch is not None
    assert rows_in(batch) == ROWS
    assert batch.schema == SCHEMA


def test_one_row_of_empty_texts_is_a_row() -> None:
    row: EventRow = (1, 0, *[""] * 5, 0, *[""] * 3, 0, 0, *[""] * 3)  # type: ignore[assignment]
    assert rows_in(batch_of(columns_of([row], looked_to=1, is_last=True))) == [row]


def test_no_rows_are_a_batch_of_none() -> None:
    batch = batch_of(columns_of([], looked_to=3, is_last=True))
    assert batch is not None
    assert (batch.num_rows, batch.schema) == (0, SCHEMA)
    assert batch_of_rows([]).schema == SCHEMA


def test_a_value_with_the_separator_is_seen() -> None:
    assert batch_of(columns_of([event(1, address="a\x1fb")], looked_to=1, is_last=True)) is None


@pytest.mark.requirement("PIP-19")
@pytest.mark.parametrize("rows_at_once", [1, 2, 100])
async def test_rows_come_in_order_whatever_is_in_them(
    monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    monkeypatch.setattr(events, "ROWS_AT_ONCE", rows_at_once)
    store = MemoryStore()
    rows = [event(1), event(2, address="a\x1fb"), event(3, address="ä\U0001f6d2\n\0"), event(4)]
    await note(store, *rows)
    found = []
    async for batch in events.batches(store, behind=0, until=4, address="", kind=""):
        found += rows_in(batch)
    assert found == rows
