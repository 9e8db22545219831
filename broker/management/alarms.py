"""The alarms of a broker: states in which it takes less than it is asked to, or answers nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.links.container import Container
    from storage.api import Store

DISK: Final = "disk"
"""Less than `disk_free_min` is free: producers get no more credit."""

DISK_FULL: Final = "disk_full"
"""A commit found no room: the broker has used its ballast."""

MEMORY: Final = "memory"
"""Clients use most of `memory_max`: the broker reads less from them."""

STORE_AWAY: Final = "store_away"
"""The store cannot be reached: nothing is acknowledged until it is there again."""

STORE_STANDBY: Final = "store_standby"
"""Commits wait for a standby server of the database: nothing is acknowledged until it answers."""


def alarms_of(container: Container, store: Store) -> dict[str, bool]:
    """Return each alarm, and whether it holds now."""
    guard = container.router.credit_policy.disk_guard
    return {
        DISK: guard is not None and guard.is_short,
        DISK_FULL: store.is_full(),
        MEMORY: container.router.memory.is_short,
        STORE_AWAY: store.is_away(),
        STORE_STANDBY: store.waits_for_standby(),
    }
