"""Chooses the login whose password is checked next: fair between sources, with a limit for each.

A check takes a core for tens of milliseconds, so a flood of wrong passwords makes a queue. Sources
take turns, and so do the user names within a source: a flood delays only its own source, and
there first the name that it tries.
"""

from __future__ import annotations

import socket
from collections import OrderedDict, deque
from ipaddress import IPv6Address, ip_address
from typing import Final, Generic, TypeVar

T = TypeVar("T")

WAITING_PER_SOURCE_MAX: Final = 32
"""Maximum waiting checks of one source: with 26 ms each, the last one starts within a second."""

WAITING_MAX: Final = 1000
"""Maximum waiting checks of all sources."""

IPV6_SOURCE_BITS: Final = 64
"""Prefix length of an IPv6 source: one host may use any address of such a network."""


class TooManyLogins(Exception):  # noqa: N818 - as refusals are named in this project
    """Too many logins of a source wait, so this one was not checked. It may be tried again."""


def source_of(host: str) -> str:
    """Return the source that the address `host` of a peer counts for: IPv4 /32, IPv6 /64.

    A `host` that is no address is returned as it is. A flood of logins asks this five times for
    each, and nearly all of them have IPv4 addresses: `ip_address` would take 10 µs each time.
    """
    try:
        socket.inet_pton(socket.AF_INET, host)
    except (OSError, ValueError):
        return _source_of_other(host)
    return host


def _source_of_other(host: str) -> str:
    """Return the source of a `host` that is no IPv4 address."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    shift = 128 - IPV6_SOURCE_BITS
    return f"{IPv6Address(int(address) >> shift << shift)}/{IPV6_SOURCE_BITS}"


class Turns(Generic[T]):
    """Waiting items, by source and user name. `take` serves sources, then names, in turn."""

    def __init__(
        self, *, per_source_max: int = WAITING_PER_SOURCE_MAX, total_max: int = WAITING_MAX
    ) -> None:
        self._per_source_max: Final = per_source_max
        self._total_max: Final = total_max
        self._sources: Final[OrderedDict[str, OrderedDict[str, deque[T]]]] = OrderedDict()
        self._counts: Final[dict[str, int]] = {}
        # sources by their number of items, so that the largest is found without a search of all
        self._sized: Final[list[dict[str, None]]] = [{} for _ in range(per_source_max + 1)]
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def put(self, source: str, name: str, item: T) -> T | None:
        """Add `item`. Return the item that loses its place for it, None if there is room.

        If the source is at its limit, its name with the most items loses the oldest one; if all
        sources together are, that happens in the source with the most items.
        """
        displaced: T | None = None
        if self._counts.get(source, 0) >= self._per_source_max:
            displaced = self._displace(source)
        elif self._total >= self._total_max:
            displaced = self._displace(next(iter(next(filter(None, reversed(self._sized))))))
        names = self._sources.setdefault(source, OrderedDict())
        names.setdefault(name, deque()).append(item)
        self._count(source, 1)
        return displaced

    def take(self) -> T:
        """Remove and return the next item. IndexError if no item waits."""
        if not self._sources:
            raise IndexError("no login waits")
        source = next(iter(self._sources))
        item = self._pop(source, next(iter(self._sources[source])))
        if source in self._sources:
            self._sources.move_to_end(source)
        return item

    def _displace(self, source: str) -> T:
        names = self._sources[source]
        return self._pop(source, max(names, key=lambda name: len(names[name])))

    def _pop(self, source: str, name: str) -> T:
        """Remove and return the oldest item of a name, and make that name the last in turn."""
        names = self._sources[source]
        items = names[name]
        item = items.popleft()
        if items:
            names.move_to_end(name)
        else:
            del names[name]
        if not names:
            del self._sources[source]
        self._count(source, -1)
        return item

    def _count(self, source: str, change: int) -> None:
        """Count `change` more items of `source`."""
        before = self._counts.pop(source, 0)
        self._sized[before].pop(source, None)
        if before + change:
            self._counts[source] = before + change
            self._sized[before + change][source] = None
        self._total += change
