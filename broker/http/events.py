"""Rows of the event log as record batches: columns from the store, never a row in Python.

The database puts each column of some thousand rows together as one text; Arrow takes it apart
again, in a thread beside the loop, while the store reads what comes next.
"""

from __future__ import annotations

import asyncio
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker.http.streams import Batches
from storage.api import Store
from storage.events import (
    EVENT_COLUMNS,
    NUMBERS,
    SEPARATOR,
    EventColumns,
    EventQuery,
    EventRow,
)

ROWS_AT_ONCE: Final = 16_384
"""About 3 MiB of them."""

SCHEMA: Final = pa.schema(
    [(name, pa.int64() if name in NUMBERS else pa.string()) for name in EVENT_COLUMNS]
)


async def batches(store: Store, *, behind: int, until: int, address: str, kind: str) -> Batches:
    """The rows with ids above `behind` up to `until`, in order; StoreError where that fails."""

    def query(behind: int) -> EventQuery:
        return EventQuery(
            behind=behind, up_to=until, at_most=ROWS_AT_ONCE, address=address, kind=kind
        )

    loop = asyncio.get_running_loop()
    reading = loop.create_task(store.event_columns(query(behind)))
    try:
        is_last = False
        while not is_last:
            found = await asyncio.shield(reading)
            asked, is_last, behind = query(behind), found.is_last, int(found.looked_to)
            if not is_last:
                reading = loop.create_task(store.event_columns(query(behind)))
            batch = await asyncio.to_thread(batch_of, found)
            if batch is None:
                batch = await _by_rows(store, asked, behind)
            yield batch
    finally:
        # never cancelled: a store may have one session for this and for commits
        await asyncio.gather(reading, return_exceptions=True)


def batch_of(found: EventColumns) -> pa.RecordBatch | None:
    """The rows of `found`; None where a value has the separator in it."""
    if found.count == 0:
        return batch_of_rows([])
    columns = []
    for field, text in zip(SCHEMA, found.columns, strict=True):
        values = pc.split_pattern(pa.array([text], pa.string()), SEPARATOR).flatten()
        if len(values) != found.count:
            return None
        columns.append(values.cast(field.type))
    return pa.record_batch(columns, schema=SCHEMA)


async def _by_rows(store: Store, query: EventQuery, looked_to: int) -> pa.RecordBatch:
    """The rows of `query` up to `looked_to`, the slow way."""
    rows: list[EventRow] = []
    behind = int(query.behind)
    while behind < looked_to:
        page = await store.events(
            EventQuery(
                behind=behind,
                up_to=looked_to,
                at_most=ROWS_AT_ONCE,
                address=query.address,
                kind=query.kind,
            )
        )
        rows += page.rows
        behind = looked_to if page.is_last else int(page.looked_to)
    return batch_of_rows(rows)


def batch_of_rows(rows: list[EventRow]) -> pa.RecordBatch:
    """`rows` as they are."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)
