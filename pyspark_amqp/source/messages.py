"""Messages of the broker as rows: of one part of a queue, or of one slice of a lease's batch.

They are read by HTTP if the option managementUrl is given, else by AMQP; the rows are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from broker.jms import Destination, DestinationType
from pyspark_amqp.errors import TransientError
from pyspark_amqp.option_kinds import Position
from pyspark_amqp.options import Options
from pyspark_amqp.rows.columns import MESSAGE_COLUMNS
from pyspark_amqp.rows.decoding import TOLD, RowMaker, told_of
from pyspark_amqp.wire.http_client import batches
from pyspark_amqp.wire.patience import Patience
from pyspark_amqp.worker import keep_what_is_loaded

if TYPE_CHECKING:
    from proton import Described

    from pyspark_amqp.wire.consuming import Received

ROWS_MAX: Final = 2000
BYTES_MAX: Final = 1 << 20
"""Messages and bytes read by AMQP that make a record batch; one message may be larger.

By HTTP the broker decides.
"""


@dataclass(frozen=True)
class Place:
    """The source of messages: a queue's address, or a subscription and its topic."""

    address: str
    subscription: str | None = None

    @property
    def source(self) -> str:
        """Return the address to read from by AMQP."""
        return self.subscription or self.address

    @property
    def consumer(self) -> Destination:
        """Return the destination that a JMS consumer there assumes for a message without one."""
        kind = DestinationType.QUEUE if self.subscription is None else DestinationType.TOPIC
        return Destination(self.address, kind)


@dataclass(frozen=True)
class Part:
    """Some of the messages at a place, as HTTP and as AMQP request them.

    `path` and `arguments` are for HTTP; `lease`, `browse` and `selector` make the filters for AMQP.
    """

    path: str
    arguments: Mapping[str, object]
    lease: tuple[str, int, int, int] | None = None
    browse: tuple[int, int, int] | None = None
    selector: str | None = None

    @property
    def needed_filters(self) -> list[str]:
        """Return the filters without which the broker would send messages of other parts.

        A queue that is not divided can be browsed at any broker.
        """
        if self.lease is not None:
            return ["lease-slice"]
        whole = self.browse is not None and self.browse[1] == 1
        return [*([] if whole else ["browse-slice"]), *(["selector"] if self.selector else [])]

    def filters(self) -> dict[str, Described]:
        """Return the filters with which an AMQP link reads this part."""
        from pyspark_amqp.wire.consuming import browse_slice, lease_slice

        if self.lease is not None:
            return lease_slice(*self.lease)
        assert self.browse is not None
        part, parts, until_ms = self.browse
        return browse_slice(part, parts, selector=self.selector, until_ms=until_ms)


def slice_of_lease(lease: str, fencing_token: int, batch_number: int, part: int) -> Part:
    """Return one slice of the batch `batch_number` of a lease."""
    return Part(
        "/arrow/lease",
        {"lease": lease, "fencing_token": fencing_token, "batch": batch_number, "slice": part},
        lease=(lease, fencing_token, batch_number, part),
    )


def part_of_queue(
    place: Place, part: int, parts: int, *, selector: str | None, until_ms: int
) -> Part:
    """Return one of `parts` parts of the messages at `place`.

    Only messages that arrived by `until_ms` (ms since 1970; 0: no limit) are in it.
    """
    where = (
        {"address": place.address}
        if place.subscription is None
        else {"subscription": place.subscription}
    )
    arguments = {
        **where,
        "slice": part,
        "slices": parts,
        "arrived_until_ms": until_ms,
        "selector": selector,
    }
    return Part("/arrow/browse", arguments, browse=(part, parts, until_ms), selector=selector)


@dataclass(frozen=True)
class Range:
    """A range of positions or times of arrival to read: the first is included, the last is not."""

    first: Position
    last: Position

    @property
    def is_all(self) -> bool:
        return self.first.is_open and self.last.is_open

    def takes(self, position: int | None, enqueued_us: int | None) -> bool:
        """Return whether a message with these values is in the range; None, unknown, is in it."""
        at = position
        ms = None if enqueued_us is None else enqueued_us // 1000
        low, high = self.first, self.last
        return (
            (low.number is None or at is None or at >= low.number)
            and (high.number is None or at is None or at < high.number)
            and (low.time_ms is None or ms is None or ms >= low.time_ms)
            and (high.time_ms is None or ms is None or ms < high.time_ms)
        )


EVERYTHING: Final = Range(Position(), Position())


def rows(
    options: Options, names: Sequence[str], place: Place, part: Part, span: Range = EVERYTHING
) -> Iterator[pa.RecordBatch]:
    """Yield the messages of `part` as rows with the columns `names`.

    The column `amqp` has values if the option includeRaw is true, or if the user has named it as
    one of some columns. It is null if all columns are read without that option.
    """
    keep_what_is_loaded()
    is_named = "amqp" in names and len(names) < len(MESSAGE_COLUMNS)
    maker = RowMaker(
        names,
        address=place.address,
        subscription=place.subscription,
        consumer=place.consumer,
        include_body=options.is_set("includeBody"),
        include_raw=options.is_set("includeRaw") or is_named,
        properties_as=options.text("propertiesAs") or "typed",
    )
    for told in _continued(options, place, part):
        chosen = told if span.is_all else _within(span, told)
        if chosen.num_rows:
            yield maker.batch(chosen)


def _continued(options: Options, place: Place, part: Part) -> Iterator[pa.RecordBatch]:
    """Yield the messages of `part`; after a lost connection, read again those that are missing.

    The positions of messages tell which ones have been yielded: the part may have others by then.
    """
    read = _by_amqp if options.management_url is None else _by_http
    yielded = YieldedPositions()
    patience = Patience(options)
    while True:
        try:
            for told in read(options, place, part):
                fresh = yielded.without(told)
                yielded.add(fresh)
                yield fresh
                patience.renew()
        except TransientError as error:
            if yielded.are_unknown:
                raise
            patience.pause(error)
            yielded.is_repeating = True
        else:
            return


@final
class YieldedPositions:
    """The positions of all messages that a task has yielded. `is_repeating`: it reads again.

    They `are_unknown` if a message had none, which only this project's broker tells.
    """

    def __init__(self) -> None:
        self.is_repeating = False
        self.are_unknown = False
        self._known: Final[list[pa.Array]] = []

    def add(self, told: pa.RecordBatch) -> None:
        """Note the messages `told`."""
        positions = told.column("position")
        self.are_unknown |= positions.null_count > 0
        # a copy: the column alone would keep the whole batch in memory
        self._known.append(pc.add(positions, 0))

    def without(self, told: pa.RecordBatch) -> pa.RecordBatch:
        """Return those of the messages `told` that were not noted before."""
        if not self.is_repeating:
            return told
        known = pa.chunked_array(self._known, pa.int64())
        return told.filter(pc.invert(pc.is_in(told.column("position"), known)))


def _by_http(options: Options, place: Place, part: Part) -> Iterator[pa.RecordBatch]:  # noqa: ARG001
    for batch in batches(options, part.path, part.arguments):
        yield complete(batch)


def complete(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return what the broker told as TOLD; a broker of an older version has fewer columns."""
    there = batch.schema.names
    columns = [
        batch.column(field.name).cast(field.type)
        if field.name in there
        else pa.nulls(batch.num_rows, field.type)
        for field in TOLD
    ]
    return pa.record_batch(columns, schema=TOLD)


def _by_amqp(options: Options, place: Place, part: Part) -> Iterator[pa.RecordBatch]:
    from pyspark_amqp.wire.connection import connected
    from pyspark_amqp.wire.consuming import EXISTING_NODE, copied

    creates = part.browse is None or options.is_set("createAddress")
    with connected(options) as connection:
        found = copied(
            connection,
            place.source,
            part.filters(),
            needed=part.needed_filters,
            capabilities=() if creates else (EXISTING_NODE,),
        )
        for some in _gathered(found):
            yield told_of(
                [each.data for each in some],
                positions=[each.position for each in some],
                enqueued_us=[_microseconds(each.enqueued_ms) for each in some],
                formats=[each.message_format for each in some],
                ttl_ends_us=[_microseconds(each.ttl_ends_ms) for each in some],
            )


def _microseconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds * 1000


def _gathered(found: Iterator[bytes]) -> Iterator[list[Received]]:
    """Yield lists of messages, each with as many as make a record batch."""
    from pyspark_amqp.wire.consuming import unwrapped

    some: list[Received] = []
    size = 0
    for data in found:
        some.append(unwrapped(data))
        size += len(data)
        if len(some) >= ROWS_MAX or size >= BYTES_MAX:
            yield some
            some, size = [], 0
    if some:
        yield some


def _within(span: Range, told: pa.RecordBatch) -> pa.RecordBatch:
    positions = told.column("position").to_pylist()
    enqueued_us = told.column("enqueuedAt").cast(pa.int64()).to_pylist()
    takes = [span.takes(*each) for each in zip(positions, enqueued_us, strict=True)]
    return told.filter(pa.array(takes, pa.bool_()))
