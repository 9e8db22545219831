"""Conversion of queue entries to the records that the store keeps of them, and back."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from broker.amqp.sections import split
from broker.large_body import LargeBody, LargeBodyReferences
from broker.message import AT_ONCE, NOWHERE, Message, Origin, opaque_message, optional_fields_in
from broker.routing.entries.entry import DeliveryHistory, QueueEntry
from broker.routing.entries.groups import NOBODY
from storage.records import StoredMessage

HELD_PLACES: Final[i64] = 1 << 62
"""Added to the stored position of a message that could not be moved (`moves.py`).

It is more than any position: at a start such messages are loaded at once, and never taken for
waiting ones.
"""


def stored_position(entry: QueueEntry) -> i64:
    """Return the position of `entry` in the store, which has one order for all priorities."""
    return entry.position * 10 + entry.message.priority


def as_stored(entry: QueueEntry, queue: str, deliver_at_ms: i64 = AT_ONCE) -> StoredMessage:
    """Return the record of `entry` for the queue of that name in the store.

    The position of `entry` is final unless it has a delivery time.
    """
    message = entry.message
    large = message.large
    return StoredMessage(
        number=entry.stored_number,
        queue=queue,
        position=stored_position(entry),
        encoded=message.encoded,
        priority=message.priority,
        ttl_ms=message.ttl_ms,
        arrived_ms=message.arrived_ms,
        expires_at_ms=message.expires_at_ms,
        deliver_at_ms=deliver_at_ms,
        delivery_count=entry.delivery_count,
        durable=message.durable,
        content=None if large is None else large.stored,
        message_format=message.message_format,
        opaque=message.opaque,
        publisher=message.origin.publisher,
        volatile=entry.is_volatile,
    )


def leased_count(entry: QueueEntry) -> int:
    """Return the delivery count as `StoredLeaseBatch.counts` has it.

    The lowest bit: a consumer has had the message before.
    """
    return int(entry.delivery_count) * 2 + int(entry.history is not None)


def take_leased_count(entry: QueueEntry, count: int) -> None:
    """Give `entry` the delivery count of which `leased_count` has returned `count`.

    The consumer that has the message next takes its group over.
    """
    entry.delivery_count = count >> 1
    if count & 1:
        entry.history = DeliveryHistory(NOBODY, None)


def as_message(
    stored: StoredMessage, origin: Origin = NOWHERE, references: LargeBodyReferences | None = None
) -> Message:
    """Return the message of a record, which came from `origin`.

    `references` is asked to hold its large body, if it has one.
    """
    encoded = stored.encoded
    large: LargeBody | None = None
    if stored.content is not None and references is not None:
        hold = references.hold(int(stored.content.number))
        large = LargeBody(stored.content, hold, is_saved=True)
    if stored.opaque:
        return opaque_message(
            encoded,
            message_format=stored.message_format,
            origin=origin,
            large=large,
            arrived_ms=stored.arrived_ms,
        )
    sections = split(encoded, 0, i64(len(encoded)))
    return Message(
        encoded=encoded,
        durable=stored.durable,
        priority=stored.priority,
        ttl_ms=stored.ttl_ms,
        arrived_ms=stored.arrived_ms,
        expires_at_ms=stored.expires_at_ms,
        origin=origin,
        optional_fields=optional_fields_in(
            sections,
            encoded,
            stored.deliver_at_ms,
            large=large,
            message_format=stored.message_format,
        ),
    )
