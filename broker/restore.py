"""Restoring a broker from its store at the start."""

from __future__ import annotations

from typing import Final

from broker.links.recovery import Recovery
from broker.routing.router import Router
from storage.api import Store
from storage.batch import Batch

LOADED_AT_ONCE: Final = 1000
"""Scheduled and leased messages that are loaded together at a start."""


async def restore(store: Store, router: Router, batch: Batch) -> None:
    """Restore nodes, messages, leases and sinks from an open store into `router`.

    Changes of the store that this makes necessary go into `batch`.
    """
    router.context.number_from(store.first_number)
    router.context.event_log.number_from(store.first_event)
    recovery = Recovery(router, batch)
    leases = await store.leases()
    recovery.nodes(await store.nodes(), leases)
    for subscription in await store.subscriptions():
        recovery.subscription(subscription)
    for sink in await store.sinks():
        recovery.sink(sink)
    for stage in await store.stages():
        recovery.stage(stage)
    recovery.deliveries(await store.delivered())
    recovery.leases(leases)
    recovery.outcomes(await store.unsettled())
    behind = 0
    while ids := await store.ids(behind):
        behind = int(ids[-1].number)
        for stored_id in ids:
            recovery.remembered_id(stored_id)
    behind = 0
    while (part := await store.places(behind)).numbers:
        behind = part.numbers[-1]
        recovery.places(part)
    for numbers, take in (
        (recovery.scheduled(), recovery.message),
        (recovery.leased(), recovery.leased_message),
    ):
        for first in range(0, len(numbers), LOADED_AT_ONCE):
            for message in await store.load(numbers[first : first + LOADED_AT_ONCE]):
                take(message)
    for merge, places in recovery.merging.portions():
        found = await store.load(sorted(number for _, number in places))
        await store.commit(recovery.merging.move(merge, places, found))
    if recovery.merging.merges and store.quarantined > 0:
        recovery.merging.quarantined.update(await _queues_of_quarantined(store))
    recovery.finish()


async def _queues_of_quarantined(store: Store) -> set[str]:
    """Return the names of the queues that quarantined messages belong to."""
    queues: set[str] = set()
    behind = 0
    while page := await store.quarantined_messages(behind, LOADED_AT_ONCE):
        behind = page[-1].number
        queues.update(each.queue for each in page)
    return queues
