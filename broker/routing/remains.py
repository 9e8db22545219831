"""Messages that deleted queues had in memory, let go some at a time."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from broker.clock import Clock
from broker.routing.agenda import Agenda, Due
from broker.routing.entry import QueueEntry
from broker.routing.memory import MemoryBudget

LET_GO_AT_ONCE: Final[i64] = 10_000
"""Entries let go in one turn of the event loop: about two milliseconds of work."""


@final
class Remains(Due):
    """Entries of deleted queues that have not been let go. The budget counts them until then.

    Subscribers that leave together may have a million: other clients have turns in between.
    """

    def __init__(self, memory: MemoryBudget, agenda: Agenda, clock: Clock) -> None:
        self._memory: Final = memory
        self._agenda: Final = agenda
        self._clock: Final = clock
        self._entries: Final[list[list[QueueEntry]]] = []
        self._left: i64 = LET_GO_AT_ONCE
        self._is_due = False

    def take(self, entries: list[QueueEntry]) -> None:
        """Let go of `entries`, now as far as this turn of the event loop still may."""
        if entries:
            self._entries.append(entries)
            self._let_go()

    def due(self, now_ms: i64) -> None:  # noqa: ARG002 - the next slice, whatever the time
        """Go on in a later turn."""
        self._is_due = False
        self._left = LET_GO_AT_ONCE
        if self._entries:
            self._let_go()

    def _let_go(self) -> None:
        memory = self._memory
        while self._entries and self._left > 0:
            entries = self._entries[-1]
            while entries and self._left > 0:
                memory.leaves(entries.pop().message)
                self._left -= 1
            if not entries:
                del self._entries[-1]
        if not self._is_due:
            self._is_due = True
            self._agenda.at(self._clock.now_ms(), self)
