"""Filters of this broker's own: a slice of a batch of a lease, and a part of a queue.

Both are for receivers that get copies. Each copy carries the position of its message in the queue
and its arrival time: in the delivery-annotations, because these are the broker's and not the
sender's. They also have the message-format, if that is not AMQP's own: not all client libraries
show it otherwise. If the message has a ttl, they have the time at which it ends: the ttl in the
header is what is left of it at the delivery, so it has another value in each copy.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.amqp.descriptors import DELIVERY_ANNOTATIONS
from broker.amqp.encode import (
    BytesWriter,
    put_compound,
    put_descriptor,
    put_long,
    put_symbol,
    put_timestamp,
)
from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.terminus import SourceFilter
from broker.amqp.types import Integer, Map
from broker.message import NEVER, UNKNOWN
from broker.routing.batches.lease_batch import SLICES_MAX
from broker.routing.entries.browse_slice import WHENEVER, BrowseSlice
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.record_mapping import stored_position

LEASE_SLICE: Final = "jms-broker:lease-slice:map"
BROWSE_SLICE: Final = "jms-broker:browse-slice:map"

POSITION: Final = "x-opt-position"
ENQUEUED_TIME: Final = "x-opt-enqueued-time"
TTL_END: Final = "x-opt-ttl-end"
MESSAGE_FORMAT: Final = "x-opt-message-format"

NUMBER_MAX: Final = 2**63 - 1


@final
class LeaseSlice:
    """The slice that a receiver wants to read: `index` in the batch `batch_number` of a lease."""

    def __init__(self, *, lease: str, fencing_token: i64, batch_number: i64, index: i64) -> None:
        self.lease: Final = lease
        self.fencing_token: Final[i64] = fencing_token
        self.batch_number: Final[i64] = batch_number
        self.index: Final[i64] = index


def lease_slice_of(stated: SourceFilter) -> LeaseSlice:
    """Return the slice that a filter names; raise LinkFault if the filter is invalid."""
    said = _map_of(stated, ["lease", "fencing_token", "batch", "slice"])
    lease = said.get("lease")
    if not isinstance(lease, str):
        raise LinkFault(INVALID_FIELD, "lease of lease-slice is a string")
    return LeaseSlice(
        lease=lease,
        fencing_token=_number(said, "fencing_token", NUMBER_MAX),
        batch_number=_number(said, "batch", NUMBER_MAX),
        index=_number(said, "slice", int(SLICES_MAX) - 1),
    )


def part_of(stated: SourceFilter) -> BrowseSlice:
    """Return the part of a queue that a filter names; raise LinkFault if the filter is invalid."""
    said = _map_of(stated, ["slice", "slices", "arrived_until_ms"])
    slices = _number(said, "slices", int(SLICES_MAX), low=1, default=1)
    return BrowseSlice(
        index=_number(said, "slice", slices - 1, default=0),
        slices=slices,
        arrived_until_ms=_number(said, "arrived_until_ms", NUMBER_MAX, default=int(WHENEVER)),
    )


def _map_of(stated: SourceFilter, known: list[str]) -> Map:
    value = stated.value
    if not isinstance(value, Map):
        raise LinkFault(INVALID_FIELD, f"the filter {stated.key:.50} is a map")
    for key, _ in value.pairs:
        if key not in known:
            raise LinkFault(INVALID_FIELD, f"{stated.key:.50} knows {', '.join(known)}")
    return value


def _number(said: Map, name: str, high: int, *, low: int = 0, default: int = -1) -> int:
    """Return an integer of any AMQP width; if `default` is negative, it must be present."""
    value = said.get(name)
    if value is None and default >= 0:
        return default
    number = value.value if isinstance(value, Integer) else value
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise LinkFault(INVALID_FIELD, f"{name} of the filter is a number from {low} to {high}")
    return number


def placed(entry: QueueEntry) -> bytes:
    """Return delivery-annotations with the position of `entry`, and with what is known of it."""
    content = BytesWriter()
    count = 2
    put_symbol(content, POSITION)
    put_long(content, stored_position(entry))
    arrived_ms = entry.message.arrived_ms
    if arrived_ms != UNKNOWN:
        count += 2
        put_symbol(content, ENQUEUED_TIME)
        put_timestamp(content, arrived_ms)
    ttl_ends_ms = entry.message.ttl_ends_ms
    if ttl_ends_ms != NEVER:
        count += 2
        put_symbol(content, TTL_END)
        put_timestamp(content, ttl_ends_ms)
    message_format = entry.message.message_format
    if message_format != 0:
        count += 2
        put_symbol(content, MESSAGE_FORMAT)
        put_long(content, message_format)
    out = BytesWriter()
    put_descriptor(out, DELIVERY_ANNOTATIONS)
    put_compound(out, 0xC1, content, count=count)
    return out.getvalue()
