"""Decides which accepted connections may perform their TLS handshake, and which give way.

A connection is silent until its first bytes arrive, then it waits, then its handshake runs. A
silent connection costs a socket and no more, so only running handshakes are scarce. A free place
goes to the waiting source with the fewest running handshakes. If all places are taken, a source
that runs more of them than the waiting one loses its oldest, unless that has just begun: so clients
that never finish cannot keep others out.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)

Numbers = tuple[int | None, int | None, int | None]
"""The pending connections of a source, its handshakes, and these again if a connection waits."""


@dataclass(frozen=True, kw_only=True)
class HandshakeLimits:
    """The limits of one listener.

    `running` handshakes at most, `running_per_source` of one source. `pending` connections at most
    between accept and the end of their handshake, `pending_per_source` of one source. Each has
    `seconds` until its first bytes, as many for its turn, and as many for its handshake, which is
    safe from displacement for `undisturbed_s`.

    A pending connection whose handshake has not begun costs 2 KiB, one whose handshake runs 50 KiB.
    So a source may have many of the first kind: an application host that opens all its connections
    again after a failure waits for its turns instead of being refused.
    """

    running: int = 256
    running_per_source: int = 32
    pending: int = 5000
    pending_per_source: int = 2500
    seconds: float = 5.0
    undisturbed_s: float = 0.5


class HandshakeGate(Generic[T]):
    """The pending connections of one listener, by source. Times are s of any steady clock."""

    def __init__(self, limits: HandshakeLimits) -> None:
        self._limits: Final = limits
        self._sources: Final[dict[str, _Source[T]]] = {}
        self._source_of: Final[dict[T, _Source[T]]] = {}
        self._by_pending: Final = _Ranks[T](limits.pending_per_source)
        self._by_running: Final = _Ranks[T](limits.running_per_source)
        self._waiting: Final = _Ranks[T](limits.running_per_source)
        """Sources with waiting connections, by their number of running handshakes."""
        self._running = 0

    def __len__(self) -> int:
        return len(self._source_of)

    @property
    def running(self) -> int:
        """The number of handshakes that run."""
        return self._running

    def is_waiting(self) -> bool:
        """Return whether a connection waits that may begin as soon as there is a place."""
        return self._waiting.least(self._limits.running_per_source) is not None

    def admit(self, item: T, source: str) -> T | None:
        """Add a silent connection. Return the one that was removed for it, to be closed, if any.

        At its source's limit that is the oldest of the source; at the limit of all, the oldest of
        the source with the most. Silent ones go first, running handshakes last.
        """
        displaced = None
        present = self._sources.get(source)
        if present is not None and present.pending() >= self._limits.pending_per_source:
            displaced = present.oldest()
        elif len(self) >= self._limits.pending:
            displaced = self._by_pending.most()[1].oldest()
        if displaced is not None:
            self.leave(displaced)
        into = self._sources.setdefault(source, _Source(source))
        before = into.numbers()
        into.silent[item] = None
        self._source_of[item] = into
        self._rank(into, before)
        return displaced

    def mark_readable(self, item: T) -> None:
        """Note that the first bytes of a silent connection have arrived: it waits from now on."""
        source = self._source_of[item]
        before = source.numbers()
        del source.silent[item]
        source.waiting[item] = None
        self._rank(source, before)

    def begin(self, now_s: float) -> T | None:
        """Return the waiting connection whose handshake begins now, None if none may."""
        if self._running >= self._limits.running:
            return None
        found = self._waiting.least(self._limits.running_per_source)
        if found is None:
            return None
        source = found[1]
        before = source.numbers()
        item = next(iter(source.waiting))
        del source.waiting[item]
        source.running[item] = now_s
        self._running += 1
        self._rank(source, before)
        return item

    def displace(self, now_s: float) -> T | None:
        """Remove and return the running handshake that gives way to a waiting one, if one does."""
        waiting = self._waiting.least(self._limits.running_per_source)
        if waiting is None or self._running < self._limits.running:
            return None
        most, source = self._by_running.most()
        item, since_s = next(iter(source.running.items()))
        if most <= waiting[0] or now_s - since_s < self._limits.undisturbed_s:
            return None
        self.leave(item)
        return item

    def leave(self, item: T) -> None:
        """Remove a connection, at whatever stage. Idempotent."""
        source = self._source_of.pop(item, None)
        if source is None:
            return
        before = source.numbers()
        source.silent.pop(item, None)
        source.waiting.pop(item, None)
        if source.running.pop(item, None) is not None:
            self._running -= 1
        self._rank(source, before)
        if not source.pending():
            del self._sources[source.name]

    def _rank(self, source: _Source[T], before: Numbers) -> None:
        """Move a source to its place among the others, where a number of it has changed."""
        ranks = (self._by_pending, self._by_running, self._waiting)
        for rank, old, new in zip(ranks, before, source.numbers(), strict=True):
            if old != new:
                rank.move(source, old, new)


class _Source(Generic[T]):
    """The pending connections of one source, oldest first; running ones with their begin in s."""

    __slots__ = ("name", "running", "silent", "waiting")

    def __init__(self, name: str) -> None:
        self.name = name
        self.silent: dict[T, None] = {}
        self.waiting: dict[T, None] = {}
        self.running: dict[T, float] = {}

    def pending(self) -> int:
        return len(self.silent) + len(self.waiting) + len(self.running)

    def numbers(self) -> Numbers:
        """Return the places of this source in the ranks of the gate, None for no place."""
        running = len(self.running)
        return self.pending() or None, running or None, running if self.waiting else None

    def oldest(self) -> T:
        """Return the connection to remove first."""
        return next(iter(self.silent or self.waiting or self.running))


class _Ranks(Generic[T]):
    """Sources by a number from 0 to `most`: the least and the most are found without a search."""

    def __init__(self, most: int) -> None:
        self._at: Final[list[dict[_Source[T], None]]] = [{} for _ in range(most + 1)]
        self._sources = 0

    def move(self, source: _Source[T], old: int | None, new: int | None) -> None:
        if old is not None:
            del self._at[old][source]
            self._sources -= 1
        if new is not None:
            self._at[new][source] = None
            self._sources += 1

    def least(self, below: int) -> tuple[int, _Source[T]] | None:
        """Return the least number that is `below`, and the source that has it longest."""
        if not self._sources:  # as mostly where nobody waits: spares the search
            return None
        for number in range(below):
            if self._at[number]:
                return number, next(iter(self._at[number]))
        return None

    def most(self) -> tuple[int, _Source[T]]:
        """Return the greatest number, and the source that has it longest. There must be one."""
        number = next(at for at in reversed(range(len(self._at))) if self._at[at])
        return number, next(iter(self._at[number]))
