"""Rows of the event log as Arrow record batches, without a Python object per row.

The database joins each column of some thousand rows into one text. Arrow splits that text in a
thread, while the store reads the next rows.
"""

from __future__ import annotations

import asyncio
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker.http.arrow_streams import Batches
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
"""Rows read from the store at a time, about 3 MiB."""

SCHEMA: Final = pa.schema(
    [(name, pa.int64() if name in NUMBERS else pa.string()) for name in EVENT_COLUMNS]
)


async def batches(store: Store, *, behind: int, until: int, address: str, kind: str) -> Batches:
    """Yield the rows with ids above `behind` up to `until`, in order; StoreError if reading fails.

    An empty `address` or `kind` does not restrict them.
    """

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
        # not cancelled, because a store may use one session for reads and for commits
        await asyncio.gather(reading, return_exceptions=True)


def batch_of(found: EventColumns) -> pa.RecordBatch | None:
    """Return the rows of `found`; None if a value contains the separator."""
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
    """Return the rows of `query` up to id `looked_to`, read as rows, which is slower."""
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
    """Return `rows` as a record batch."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)
