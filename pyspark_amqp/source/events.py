"""The event log as rows, read by HTTP, from the store itself, or by requests.

Its ids ascend without end, and the row of an id never changes: a range of ids is a partition, and
an id is an offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_amqp.errors import DataLossError, TransientError
from pyspark_amqp.option_kinds import LONG_MAX, Position
from pyspark_amqp.options import Options
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS, UTC_MICROSECONDS, schema_of
from pyspark_amqp.wire import http_client, store_client
from pyspark_amqp.wire.patience import Patience
from pyspark_amqp.worker import keep_what_is_loaded
from storage.events import EVENT_COLUMNS

if TYPE_CHECKING:
    from pyspark_amqp.wire.broker_client import Management

STORED: Final = dict(zip(EVENT_LOG_COLUMNS, EVENT_COLUMNS, strict=True))
"""The broker's names of the event log's columns, by our names."""

PAGE: Final = 1000
"""Maximum rows in the response to one request."""


def bounds(options: Options, behind: int = 0) -> tuple[int, int]:
    """Return the first and the last id, 0 and 0 if the event log is empty.

    `behind` is an id that has existed: the search for the last id begins there, if there are rows
    from it on.
    """
    if options.management_url is not None:
        told = http_client.fact(options, "/events/bounds")
        return int(str(told["first"])), int(str(told["last"]))
    store = options.text("storeUrl")
    if store is not None:
        return store_client.bounds(store)
    return _asked_bounds(options, behind)


def _asked_bounds(options: Options, behind: int) -> tuple[int, int]:
    from pyspark_amqp.wire.broker_client import opened, pages

    with opened(options) as broker:
        for _, rows, _ in pages(broker, "events", count=1, attributeNames=["id"]):
            if rows:
                first = int(str(rows[0][0]))
                break
        else:
            return 0, 0
        if behind and not _is_there(broker, behind):
            behind = 0
        last = max(first - 1, behind)
        # no row is that late: the broker returns none, and how far it has looked
        for _, _, body in pages(broker, "events", count=1, behind=last, since_us=LONG_MAX):
            last = max(last, int(str(body["next"])))
        return first, last


def _is_there(broker: Management, wanted: int) -> bool:
    """Return whether there is a row with the id `wanted` or a later one.

    The newest row is never removed, so without one this is another event log.
    """
    from pyspark_amqp.wire.broker_client import pages

    _, found, _ = next(pages(broker, "events", count=1, behind=wanted - 1, attributeNames=["id"]))
    return bool(found)


def rows(
    options: Options,
    names: Sequence[str],
    behind: int,
    until: int,
    *,
    since_ms: int | None = None,
    before_ms: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with ids above `behind` up to `until`, with the columns `names`.

    Only rows with times in [since_ms, before_ms), in ms since 1970, are included; None is no limit.
    """
    keep_what_is_loaded()
    schema = schema_of(EVENT_LOG_COLUMNS, names)
    spanned = since_ms is not None or before_ms is not None
    needed = [*names, *(["at"] if spanned and "at" not in names else [])]
    for stored in _stored(options, [STORED[name] for name in needed], behind, until):
        batch = _named(stored, needed)
        if spanned:
            batch = _within(batch, since_ms, before_ms)
        if batch.num_rows:
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=schema)


def _stored(
    options: Options, columns: Sequence[str], behind: int, until: int
) -> Iterator[pa.RecordBatch]:
    """Yield batches that have at least the stored columns `columns`."""
    if options.management_url is not None:
        yield from _streamed(options, behind, until)
        return
    store = options.text("storeUrl")
    if store is not None:
        address, kind = options.text("address"), options.text("kind")
        yield from store_client.events(
            store, columns, behind=behind, until=until, address=address, kind=kind
        )
        return
    yield from _asked(options, columns, behind, until)


def _streamed(options: Options, behind: int, until: int) -> Iterator[pa.RecordBatch]:
    """Yield rows by HTTP; continue behind the last one if the stream breaks off."""
    asked = {"until": until, "address": options.text("address"), "kind": options.text("kind")}
    patience = Patience(options)
    while True:
        try:
            for batch in http_client.batches(options, "/arrow/events", {"behind": behind, **asked}):
                behind = _last_id(batch, behind)
                yield batch
                patience.renew()
        except TransientError as error:
            patience.pause(error)
        else:
            return


def _last_id(batch: pa.RecordBatch, behind: int) -> int:
    """Return the id of the last row, or `behind` if there is none."""
    return int(batch.column("id")[-1].as_py()) if batch.num_rows else behind


def _asked(
    options: Options, columns: Sequence[str], behind: int, until: int
) -> Iterator[pa.RecordBatch]:
    from pyspark_amqp.wire.broker_client import opened, pages

    wanted = ["id", *(name for name in columns if name != "id")]
    with opened(options) as broker:
        found = pages(
            broker,
            "events",
            count=PAGE,
            behind=behind,
            attributeNames=wanted,
            address=options.text("address"),
            kind=options.text("kind"),
        )
        for names, rows_of_page, body in found:
            kept = [row for row in rows_of_page if int(str(row[0])) <= until]
            if kept:
                yield pa.RecordBatch.from_pydict(
                    dict(zip(names, map(list, zip(*kept, strict=True)), strict=True))
                )
            if int(str(body["next"])) >= until:
                return


def _named(stored: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Return `stored` with our names and types of columns."""
    schema = schema_of(EVENT_LOG_COLUMNS, names)
    arrays = []
    for field in schema:
        array = stored.column(STORED[field.name])
        if field.type == UTC_MICROSECONDS:
            array = array.cast(pa.int64())
            # the broker has 0 if no delivery time was requested
            if field.name == "deliverAt":
                array = pc.if_else(pc.equal(array, 0), pa.scalar(None, pa.int64()), array)
        arrays.append(array.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _within(batch: pa.RecordBatch, since_ms: int | None, before_ms: int | None) -> pa.RecordBatch:
    at = batch.column("at").cast(pa.int64())
    if since_ms is not None:
        keep = pc.greater_equal(at, since_ms * 1000)
        batch, at = batch.filter(keep), at.filter(keep)
    if before_ms is not None:
        batch = batch.filter(pc.less(at, before_ms * 1000))
    return batch


def ranges(behind: int, until: int, parts: int) -> list[tuple[int, int]]:
    """Return `(behind, until]` divided into at most `parts` ranges of nearly equal size."""
    count = until - behind
    if count <= 0:
        return []
    parts = min(parts, count)
    edges = [behind + count * part // parts for part in range(parts + 1)]
    return list(pairwise(edges))


def first_behind(options: Options, start: Position, first: int) -> int:
    """Return the id behind which to begin; `first` is the first id that exists.

    Raise DataLossError if the requested id has been removed, unless `failOnDataLoss` is false.
    """
    if start.number is None:
        return max(first - 1, 0)
    check_loss(options, start.number, first)
    return max(start.number, first, 1) - 1


def check_loss(options: Options, wanted: int, first: int) -> None:
    """Raise DataLossError if the row `wanted` has existed, and now there are none before `first`.

    Do nothing if `failOnDataLoss` is false.
    """
    if 0 < wanted < first and options.is_set("failOnDataLoss"):
        raise DataLossError(
            f"the event log begins at id {first}, rows from {wanted} on were removed before they "
            "were read (option failOnDataLoss=false goes on without them)"
        )


def check_same(behind: int, last: int) -> None:
    """Raise DataLossError if the row `behind` has existed, and the last row is before it.

    It is then another event log: ids only ascend, and the newest row is never removed.
    """
    if last < behind:
        raise DataLossError(
            f"the event log ends at id {last}, before id {behind} that the query has come to: it "
            "is another store, or an older state of it; use a new checkpoint"
        )
