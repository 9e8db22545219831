"""Messages that are not durable, in the store for want of memory: what their queue does about it.

They are kept until they are consumed, or the store is opened the next time. A queue that the
store does not know otherwise, be it temporary or of a volatile subscription, has a name there
from its first such message on.
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
    """Remove from the store all messages of `queue`, which has ended and is not known there."""
    if queue.has_spilled and not queue.is_stored:
        batch.remove_subscription(queue.stored_as)
