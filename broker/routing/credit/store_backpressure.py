"""Holds producers back while the store is behind: unwritten messages take memory.

A producer need not wait for outcomes, so nothing else limits how much it sends ahead of the disk.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.credit.blocked_producers import BlockedProducers

UNWRITTEN_MAX: Final[i64] = 12 * 1024 * 1024
"""Maximum bytes of memory that unwritten messages take before producers wait: some pages of the
journal, so that the store finds a full page when it has written one."""


@final
class StoreBackpressure:
    """The state of the store, which may be behind, and the producers that wait for it."""

    def __init__(self) -> None:
        self.is_behind = False
        self.waiting: Final = BlockedProducers()

    def look(self, unwritten: i64) -> None:
        """Update `is_behind`, given the bytes of memory that unwritten messages take.

        Resume the producers once the store has caught up.
        """
        was_behind = self.is_behind
        self.is_behind = unwritten > UNWRITTEN_MAX
        if was_behind and not self.is_behind:
            self.waiting.resume()
