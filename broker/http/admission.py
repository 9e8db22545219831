"""Admission of connections: limited in all and per source, with a reserve for this machine.

At a limit a new connection displaces one that is not answering a request: its client has sent no
head or part of one, or is idle between two requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from broker.http.limits import CONNECTIONS_MAX, CONNECTIONS_PER_SOURCE_MAX, LOOPBACK_RESERVE

C = TypeVar("C")

NOTICE_EVERY_S: Final = 10.0
"""Minimum seconds between two notices; each has the number of connections since the last."""


@dataclass(frozen=True, kw_only=True)
class Seat(Generic[C]):
    """An open connection, as admission sees it.

    `waiting_since` is when it began to wait for a request, in seconds; None while it answers one
    or has pending output.
    """

    connection: C
    source: str
    is_local: bool
    waiting_since: float | None


@dataclass(frozen=True)
class Admission(Generic[C]):
    """The decision on a new connection; `displaced` is the connection to drop for it, or None."""

    admitted: bool
    displaced: C | None = None


def admit(source: str, *, is_local: bool, present: Iterable[Seat[C]]) -> Admission[C]:
    """Decide on a new connection from `source`, given the connections `present` already."""
    seats = list(present)
    own = [seat for seat in seats if seat.source == source]
    if len(own) >= CONNECTIONS_PER_SOURCE_MAX:
        return _in_place_of(own)
    room = CONNECTIONS_MAX if is_local else CONNECTIONS_MAX - LOOPBACK_RESERVE
    if len(seats) >= room:
        return _in_place_of([seat for seat in seats if is_local or not seat.is_local])
    return Admission(admitted=True)


def _in_place_of(seats: list[Seat[C]]) -> Admission[C]:
    """Displace the connection that has waited longest; do not admit if all of them answer."""
    waiting = [
        (seat.waiting_since, seat.connection) for seat in seats if seat.waiting_since is not None
    ]
    if not waiting:
        return Admission(admitted=False)
    return Admission(admitted=True, displaced=min(waiting, key=lambda each: each[0])[1])


class Displacements:
    """Counts connections that were displaced or not admitted, for a notice now and then."""

    def __init__(self) -> None:
        self._unreported = 0
        self._next_notice_s = 0.0

    def note(self, source: str, now_s: float) -> str | None:
        """Count one that a new connection from `source` caused; return a notice if one is due."""
        self._unreported += 1
        if now_s < self._next_notice_s:
            return None
        count, self._unreported = self._unreported, 0
        self._next_notice_s = now_s + NOTICE_EVERY_S
        return (
            f"HTTP: {count} connections dropped for lack of room, the last one because of {source};"
            f" at most {CONNECTIONS_MAX} may be open, {CONNECTIONS_PER_SOURCE_MAX} of one source"
        )
