"""Spilling: messages that are not durable are written to the store because memory is short.

The store keeps them until they are consumed, or until it is opened the next time. A queue that it
does not know otherwise, temporary or of a volatile subscription, has a name there from its first
such message on.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from broker.routing.addresses.address import SUBSCRIPTION_PREFIX
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.record_mapping import as_stored
from storage.batch import Batch

if TYPE_CHECKING:
    from broker.routing.queues.queue import Queue


def spill(entry: QueueEntry, batch: Batch) -> None:
    """Note `entry`, which only memory has, for the store."""
    queue = entry.queue
    if not queue.has_spilled:
        queue.has_spilled = True
        if queue.stored_as == "":
            queue.stored_as = SUBSCRIPTION_PREFIX + secrets.token_urlsafe(16)
    router = queue.router
    entry.stored_number = router.next_stored_number()
    entry.is_volatile = True
    batch.append(as_stored(entry))
    batch.is_urgent = True
    router.stats.spilled += 1


def forget_all(queue: Queue, batch: Batch) -> None:
    """Remove all messages of the deleted `queue` from a store that does not know it otherwise."""
    if queue.has_spilled and not queue.is_stored:
        batch.remove_subscription(queue.stored_as)
