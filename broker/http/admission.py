"""Which connections may be open: bounded for each source, with a reserve for this machine.

A connection that is not answering a request (it has sent no head, half of one, or waits between
two) gives way to a newcomer when its source, or all sources, have their share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from broker.http.limits import CONNECTIONS_MAX, CONNECTIONS_PER_SOURCE_MAX, LOOPBACK_RESERVE

C = TypeVar("C")

NOTICE_EVERY_S: Final = 10.0
"""A flood of connections is one line of the log in this time, with their number."""


@dataclass(frozen=True, kw_only=True)
class Seat(Generic[C]):
    """An open connection, as far as admission judges it. `waiting_since` is None if it answers."""

    connection: C
    source: str
    is_local: bool
    waiting_since: float | None


@dataclass(frozen=True)
class Admission(Generic[C]):
    """Whether a newcomer may stay, and which connection ends for it."""

    admitted: bool
    displaced: C | None = None


def admit(source: str, *, is_local: bool, present: Iterable[Seat[C]]) -> Admission[C]:
    """Judge a newcomer from `source` beside the connections that are `present` already."""
    seats = list(present)
    own = [seat for seat in seats if seat.source == source]
    if len(own) >= CONNECTIONS_PER_SOURCE_MAX:
        return _in_place_of(own)
    room = CONNECTIONS_MAX if is_local else CONNECTIONS_MAX - LOOPBACK_RESERVE
    if len(seats) >= room:
        return _in_place_of([seat for seat in seats if is_local or not seat.is_local])
    return Admission(admitted=True)


def _in_place_of(seats: list[Seat[C]]) -> Admission[C]:
    """Admit in place of the one that has waited longest; of nobody if all of them answer."""
    waiting = [
        (seat.waiting_since, seat.connection) for seat in seats if seat.waiting_since is not None
    ]
    if not waiting:
        return Admission(admitted=False)
    return Admission(admitted=True, displaced=min(waiting, key=lambda each: each[0])[1])


class Displacements:
    """Counts connections that ended for others, or were not admitted; reports them at times."""

    def __init__(self) -> None:
        self._unreported = 0
        self._next_notice_s = 0.0

    def note(self, source: str, now_s: float) -> str | None:
        """Count one that made room for a newcomer from `source`; the notice if one is due."""
        self._unreported += 1
        if now_s < self._next_notice_s:
            return None
        count, self._unreported = self._unreported, 0
        self._next_notice_s = now_s + NOTICE_EVERY_S
        return (
            f"HTTP: {count} connections dropped for lack of room, the last one because of {source};"
            f" at most {CONNECTIONS_MAX} may be open, {CONNECTIONS_PER_SOURCE_MAX} of one source"
        )
