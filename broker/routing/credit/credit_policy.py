"""Decides whether any producer of the broker may get credit now: one place for all shortages.

`docs/design/flow-control.md` says in which order this and the limits of each node apply.
"""

from __future__ import annotations

from typing import Final, final

from broker.routing.credit.blocked_producers import BlockedProducers
from broker.routing.credit.disk_guard import DiskGuard
from broker.routing.credit.memory import MemoryBudget
from broker.routing.credit.store_backpressure import StoreBackpressure
from broker.routing.entries.participants import Producer


@final
class CreditPolicy:
    """The shortages of the whole broker: of room on the disk, of the store's speed, of memory.

    `disk_guard` is None if the store is not on a disk, or no room is to be kept there. `draining`
    is None unless the broker drains: then it has the producers, none of which gets credit.
    """

    def __init__(self, memory: MemoryBudget) -> None:
        self.disk_guard: DiskGuard | None = None
        self.draining: BlockedProducers | None = None
        self.store_backpressure: Final = StoreBackpressure()
        self.memory: Final = memory

    def shortage(self) -> BlockedProducers | None:
        """Return the producers that wait for what is short now, None if nothing is short."""
        disk_guard = self.disk_guard
        if disk_guard is not None and disk_guard.is_short:
            return disk_guard.waiting
        if self.draining is not None:
            return self.draining
        if self.store_backpressure.is_behind:
            return self.store_backpressure.waiting
        if self.memory.is_short:
            return self.memory.producers
        return None

    def leave(self, producer: Producer) -> None:
        """Remove `producer` from all that wait."""
        if self.disk_guard is not None:
            self.disk_guard.waiting.leave(producer)
        if self.draining is not None:
            self.draining.leave(producer)
        self.store_backpressure.waiting.leave(producer)
        self.memory.producers.leave(producer)
