"""Record an unsuccessful delivery attempt in its queue entry: counts and history."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i32, i64

from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries import redelivery
from broker.routing.entries.entry import NOT_STORED, DeliveryHistory, QueueEntry
from broker.routing.entries.redelivery import Disposal
from storage.batch import Batch

FAILURES_MAX: Final[i32] = 2**31 - 2
"""Failures of an entry are counted up to one more than this, the maximum of its 32-bit counter."""


def note(entry: QueueEntry, disposal: Disposal, batch: Batch) -> bool:
    """Record in `entry` that its delivery ended as `disposal`; True if it failed too often."""
    if disposal is Disposal.RELEASE:
        _note_release(entry)
        return False
    if redelivery.is_refusal(disposal):
        _history(entry).refused = True
    if disposal is Disposal.ELSEWHERE:
        return False
    entry.delivery_count += 1
    if entry.stored_number != NOT_STORED:
        batch.count(entry.stored_number, entry.delivery_count)
    if disposal is Disposal.COUNT:
        return False
    entry.failures = min(entry.failures, FAILURES_MAX) + 1
    consumer = entry.consumer
    if consumer is not None:
        consumer.failures += 1
    queue = entry.queue
    # only consumers and administrators take messages out of a durable queue (DST-11)
    limit = i64(0) if queue.stores_all else queue.policy.max_delivery_count
    return redelivery.is_exhausted(i64(entry.failures), limit)


def annotate(entry: QueueEntry, annotations: bytes, batch: Batch) -> None:
    """Add an encoded map to the annotations of an acquired message, in its queue alone.

    Raise Fault if the annotations become too large, or cannot be read.
    """
    queue = entry.queue
    message = entry.message.annotated(annotations)
    queue.bytes += message.size - entry.message.size
    queue.memory.replaced(entry.message, message)
    entry.message = message
    if entry.stored_number != NOT_STORED and not queue.is_deleted:
        batch.rewrite(entry.stored_number, message.encoded)


def _note_release(entry: QueueEntry) -> None:
    queue = entry.queue
    consumer = entry.consumer
    assert consumer is not None
    history = entry.history_with(consumer.number, queue.consumers)
    pause = history.release(consumer.failures)
    if pause > 0:
        history.paused_until_ms = queue.router.clock.now_ms() + pause
        queue.router.timer_queue.at(history.paused_until_ms, queue)


def _history(entry: QueueEntry) -> DeliveryHistory:
    consumer = entry.consumer
    assert consumer is not None
    return entry.history_with(consumer.number, entry.queue.consumers)


def delay_of(entry: QueueEntry, policy: AddressPolicy) -> i64:
    """Return how long, in ms, `entry` waits after its latest failure."""
    return redelivery.delay_after(
        i64(entry.failures),
        first_ms=policy.redelivery_delay_ms,
        factor=policy.redelivery_backoff,
        at_most_ms=policy.redelivery_delay_max_ms,
    )
