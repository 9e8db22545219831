"""Decides which connections a broker keeps: limited in all, and per source until their login.

A client that has not logged in yet costs nothing to replace, so it gives way: at a limit the oldest
such connection of the source that has most of them is closed. So clients that never log in
displace each other, and not those of other sources.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T", bound=Hashable)

CONNECTIONS_MAX: Final = "connections_max"
UNAUTHENTICATED_MAX: Final = "unauthenticated_max"
UNAUTHENTICATED_SOURCE_MAX: Final = "unauthenticated_source_max"
"""The settings, for reports of a limit that was reached."""


@dataclass(frozen=True, kw_only=True)
class ConnectionLimits:
    """Maximum connections in all, and of those without a login, in all and of one source.

    0 is no limit. `limits_loopback` says whether the last one applies to addresses of this machine.
    """

    connections: int = 20_000
    unauthenticated: int = 5000
    unauthenticated_of_source: int = 100
    limits_loopback: bool = True


@dataclass(frozen=True)
class Entry(Generic[T]):
    """The decision on a new connection.

    `displaced` is to be closed for it, None for none; `limit` is the setting that was reached, or
    empty.
    """

    admitted: bool
    displaced: T | None = None
    limit: str = ""


class ConnectionGate(Generic[T]):
    """The connections without a login, by source. `limits` may be replaced at any time."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._source_of: Final[dict[T, str]] = {}
        self._of: Final[dict[str, dict[T, None]]] = {}
        # sources by their number of connections, so that the largest is found without a search
        self._sized: Final[dict[int, dict[str, None]]] = {}
        self._largest = 0

    def __len__(self) -> int:
        return len(self._source_of)

    def admit(self, item: T, source: str, *, is_local: bool, present: int) -> Entry[T]:
        """Add a connection to `present` others, with or without a login, unless there is no room.

        The displaced connection, if any, is removed.
        """
        limits = self.limits
        own = self._of.get(source, {})
        most = limits.unauthenticated_of_source if limits.limits_loopback or not is_local else 0
        displaced: T | None = None
        limit = ""
        if 0 < most <= len(own):
            displaced, limit = next(iter(own)), UNAUTHENTICATED_SOURCE_MAX
        elif 0 < limits.unauthenticated <= len(self):
            displaced, limit = self._oldest_of_largest(), UNAUTHENTICATED_MAX
        elif 0 < limits.connections <= present:
            limit = CONNECTIONS_MAX
            if not self._source_of:
                return Entry(admitted=False, limit=limit)
            displaced = self._oldest_of_largest()
        if displaced is not None:
            self.leave(displaced)
        self._source_of[item] = source
        of = self._of.setdefault(source, {})
        of[item] = None
        self._resize(source, len(of) - 1, len(of))
        return Entry(admitted=True, displaced=displaced, limit=limit)

    def leave(self, item: T) -> None:
        """Remove a connection that has logged in, or has ended. Idempotent."""
        source = self._source_of.pop(item, None)
        if source is None:
            return
        of = self._of[source]
        del of[item]
        if not of:
            del self._of[source]
        self._resize(source, len(of) + 1, len(of))

    def _oldest_of_largest(self) -> T:
        source = next(iter(self._sized[self._largest]))
        return next(iter(self._of[source]))

    def _resize(self, source: str, old: int, new: int) -> None:
        """Note that a source has `new` connections instead of `old`: one more, or one less."""
        if old:
            del self._sized[old][source]
            if not self._sized[old]:
                del self._sized[old]
        if new:
            self._sized.setdefault(new, {})[source] = None
        if new > self._largest or self._largest not in self._sized:
            self._largest = new
