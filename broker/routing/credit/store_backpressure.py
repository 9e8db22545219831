"""Holding producers back while the store is behind: what is not written yet is in memory.

A producer need not wait for outcomes, so nothing else bounds what it may send ahead of the disk.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.routing.credit.blocked_producers import BlockedProducers

UNWRITTEN_MAX: Final[i64] = 12 * 1024 * 1024
"""Bytes: some pages of the journal, so that the store finds a full one when it has written one."""


@final
class StoreBackpressure:
    """Whether the store is behind, and the producers that wait for it."""

    def __init__(self) -> None:
        self.is_behind = False
        self.waiting: Final = BlockedProducers()

    def look(self, unwritten: i64) -> None:
        """What is not written now takes so many bytes."""
        self.is_behind = unwritten > UNWRITTEN_MAX
        if not self.is_behind and self.waiting.any():
            self.waiting.resume()
