"""Note messages for the store, and keep back those that must be durable before their delivery.

Most messages are delivered before they are stored. Some are not: those published by the commit of
a transaction or a sink, those moved from one queue to another, those whose id is remembered for
duplicate detection, those of durable queues, and those of addresses with
`deliver_before_commit = false`. In a queue no message overtakes one that waits for its commit
(`commit_gate.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from broker.message import AT_ONCE
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.record_mapping import as_stored
from storage.batch import DISCHARGE, Batch

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue


def store(entry: QueueEntry, deliver_at_ms: i64, batch: Batch) -> None:
    """Note `entry` for the store under a new number. `deliver_at_ms` is AT_ONCE or wall time."""
    queue = entry.queue
    number = queue.router.next_stored_number()
    entry.stored_number = number
    batch.append(as_stored(entry, deliver_at_ms))
    if batch.scope != queue.ack_latency.scope:
        _judge(entry, batch)
    if deliver_at_ms != AT_ONCE:
        batch.is_urgent = True


def _judge(entry: QueueEntry, batch: Batch) -> None:
    """Keep `entry` back if it must be committed first; decide whether `batch` is urgent.

    It is not urgent if the queue's consumers acknowledge so soon that the write may be avoided.
    """
    queue = entry.queue
    if batch.scope == DISCHARGE or queue.gate.defers:
        queue.gate.bar(entry, batch)
        batch.is_urgent = True
        return
    ack_latency = queue.ack_latency
    if batch.is_urgent and ack_latency.hold.us == 0:
        ack_latency.scope = batch.scope
        return
    if queue.consumers:
        ack_latency.arrived(entry.stored_number, batch.scope, queue.router.clock.now_us())
    else:
        ack_latency.nobody_consumes(batch.scope)
    if not ack_latency.is_prompt:
        batch.is_urgent = True
    if ack_latency.producer_window.has_narrowed:
        _narrow(queue)


def _narrow(queue: Queue) -> None:
    """Have the producers of `queue` give back credit that exceeds their smaller window."""
    queue.ack_latency.producer_window.has_narrowed = False
    for producer in queue.producers:
        producer.narrow()


def forget(entry: QueueEntry, batch: Batch, *, consumed: bool) -> None:
    """Remove `entry` from the store; `consumed` if a consumer has settled it."""
    number = entry.stored_number
    if not consumed:
        batch.remove(number)
    else:
        batch.consume(number)
    queue = entry.queue
    if number == queue.ack_latency.timed:
        if consumed:
            queue.ack_latency.settled(queue.router.clock.now_us())
            if queue.ack_latency.producer_window.has_narrowed:
                _narrow(queue)
        else:
            queue.ack_latency.left()
