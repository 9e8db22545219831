"""Record an unsuccessful delivery attempt in its queue entry: counts and history."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i32, i64

from broker.message import AT_ONCE
from broker.routing.addresses.policy import AddressPolicy
from broker.routing.entries import redelivery
from broker.routing.entries.entry import NOT_STORED, QueueEntry
from broker.routing.entries.participants import Consumer
from broker.routing.entries.redelivery import Disposal
from storage.batch import Batch

FAILURES_MAX: Final[i32] = 2**31 - 2
"""Failures of an entry are counted up to one more than this, the maximum of its 32-bit counter."""


def release(entry: QueueEntry, consumers: list[Consumer], now_ms: i64) -> i64:
    """Record that its consumer has released `entry`; return when it may have it again.

    `consumers` are those of the queue, by ascending number. The result is a time in ms on the
    steady clock, AT_ONCE if there is no pause.
    """
    consumer = entry.consumer
    assert consumer is not None
    history = entry.history_with(consumer.number, consumers)
    pause = history.release(consumer.failures)
    if pause > 0:
        history.paused_until_ms = now_ms + pause
    return history.paused_until_ms if pause > 0 else AT_ONCE


def note(
    entry: QueueEntry, disposal: Disposal, batch: Batch, *, consumers: list[Consumer], limit: i64
) -> bool:
    """Record in `entry` that its delivery ended as `disposal`; True if it failed too often.

    `consumers` are those of the queue, by ascending number; a `limit` of 0 is none.
    """
    consumer = entry.consumer
    if redelivery.is_refusal(disposal):
        assert consumer is not None
        entry.history_with(consumer.number, consumers).refused = True
    if disposal is Disposal.ELSEWHERE:
        return False
    entry.delivery_count += 1
    if entry.stored_number != NOT_STORED:
        batch.count(entry.stored_number, entry.delivery_count)
    if disposal is Disposal.COUNT:
        return False
    entry.failures = min(entry.failures, FAILURES_MAX) + 1
    if consumer is not None:
        consumer.failures += 1
    return redelivery.is_exhausted(i64(entry.failures), limit)


def delay_of(entry: QueueEntry, policy: AddressPolicy) -> i64:
    """Return how long, in ms, `entry` waits after its latest failure."""
    return redelivery.delay_after(
        i64(entry.failures),
        first_ms=policy.redelivery_delay_ms,
        factor=policy.redelivery_backoff,
        at_most_ms=policy.redelivery_delay_max_ms,
    )
