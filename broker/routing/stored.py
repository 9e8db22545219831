"""What the store keeps of a queue's entry, and where; and the way back."""

from mypy_extensions import i64

from broker.amqp.sections import split
from broker.message import AT_ONCE, Message, particulars_in
from broker.routing.entry import QueueEntry
from storage.records import StoredMessage


def stored_position(entry: QueueEntry) -> i64:
    """Where `entry` is in the store, which knows one order for entries of all priorities."""
    return entry.position * 10 + entry.message.priority


def as_stored(entry: QueueEntry, deliver_at_ms: i64 = AT_ONCE) -> StoredMessage:
    """What the store keeps of `entry`, which has its place unless it waits for a delivery time."""
    message = entry.message
    return StoredMessage(
        number=entry.stored_number,
        queue=entry.queue.stored_as,
        position=stored_position(entry),
        encoded=message.encoded,
        priority=message.priority,
        ttl_ms=message.ttl_ms,
        arrived_ms=message.arrived_ms,
        expires_at_ms=message.expires_at_ms,
        deliver_at_ms=deliver_at_ms,
        delivery_count=entry.delivery_count,
        durable=message.durable,
    )


def as_message(stored: StoredMessage) -> Message:
    """The message of a record. Whoever published it, and under which key, mattered only then."""
    encoded = stored.encoded
    sections = split(encoded, 0, i64(len(encoded)))
    return Message(
        encoded=encoded,
        durable=stored.durable,
        priority=stored.priority,
        ttl_ms=stored.ttl_ms,
        arrived_ms=stored.arrived_ms,
        expires_at_ms=stored.expires_at_ms,
        particulars=particulars_in(sections, encoded, stored.deliver_at_ms),
    )
