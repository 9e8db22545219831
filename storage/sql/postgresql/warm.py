"""The records of the stored messages in a standby's memory, so that a takeover need not read them.

PostgreSQL makes a new version of a row with each change, and names it by the transaction that has
made it (`xmin`). Number and version of a segment thus tell whether its records are those that the
standby has. To read these alone of 10⁶ messages takes 11 ms: the records are stored elsewhere.

A standby looks every two seconds, and reads what is new or changed, a portion at a time. Once it
leads, and nothing else is written, it looks once more, and reads the difference only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final, final

from sqlalchemy import Connection

from storage.sql.reading import SEGMENTS_AT_ONCE, behind_of, segment_of
from storage.sql.schema import HEAD, version_of
from storage.sql.segments.segment import Segment
from storage.steady_clock import steady_us

LOOK_US: Final = 2_000_000
"""Microseconds between two looks of a standby."""

OVERHEAD: Final = 256
"""Bytes of memory that a segment takes beside its records."""

VERSIONS: Final = "SELECT number, xmin, octet_length(facts) FROM segment ORDER BY number"

READ: Final = "SELECT number, size, facts, xmin FROM segment WHERE number = ANY($1)"


@final
class WarmSegments:
    """The segments of the store as they were at the last look, or none of them.

    They take at most `bytes_max` of memory; if they would take more, `tell` is called once with a
    sentence for the log, and all of them are read at a takeover.
    """

    def __init__(self, bytes_max: int, tell: Callable[[str], None]) -> None:
        self._bytes_max: Final = bytes_max
        self._tell: Final = tell
        self._kept: dict[int, tuple[int, Segment]] = {}
        """Version and segment by the segment's number."""
        self._numbers: list[int] | None = None
        """The numbers of all segments at the last look, ascending; None if none are kept."""
        self._missing: list[int] = []
        """The numbers of the segments that must be read."""
        self._looked_us = -LOOK_US
        self._has_told = False

    def is_empty(self) -> bool:
        """Return whether no segment is kept, so that it is as well to read all as they are used."""
        return not self._kept

    def is_ready(self) -> bool:
        """Return whether nothing is left to read now, or nothing is kept for want of memory."""
        return self._looked_us >= 0 and not self._missing

    def step(self, connection: Connection) -> None:
        """Do a portion of a standby's work: look if it is time, or read some segments."""
        if self._missing:
            self._read(connection)
        elif steady_us() - self._looked_us >= LOOK_US and version_of(connection) == HEAD:
            self.look(connection)

    def look(self, connection: Connection) -> None:
        """Find out which segments there are, and which of them must be read."""
        self._looked_us = steady_us()
        found = connection.exec_driver_sql(VERSIONS).all()
        needed = sum(size + OVERHEAD for _, _, size in found)
        if needed > self._bytes_max:
            self._give_up(needed)
            return
        kept = self._kept
        self._kept = {
            number: kept[number]
            for number, version, _ in found
            if number in kept and kept[number][0] == version
        }
        self._numbers = [number for number, _, _ in found]
        self._missing = [number for number in self._numbers if number not in self._kept]

    def _give_up(self, needed: int) -> None:
        self._kept, self._numbers, self._missing = {}, None, []
        if not self._has_told:
            self._has_told = True
            self._tell(
                f"the records of the stored messages take {needed} bytes, and ha.warm_bytes is"
                f" {self._bytes_max}: this broker will read them when it takes over"
            )

    def complete(self, connection: Connection) -> bool:
        """Read some of the missing segments; return whether there are more."""
        if self._missing:
            self._read(connection)
        return bool(self._missing)

    def _read(self, connection: Connection) -> None:
        wanted = self._missing[-SEGMENTS_AT_ONCE:]
        for *row, version in connection.exec_driver_sql(READ, (wanted,)):
            segment = segment_of(row)
            self._kept[int(segment.number)] = (version, segment)
        del self._missing[-SEGMENTS_AT_ONCE:]

    def following(self, behind: int) -> list[Segment] | None:
        """Return what `reading.following` would read, once all are here; None if none are kept."""
        if self._numbers is None:
            return None
        first = max(bisect_right(self._numbers, behind + 1) - 1, 0)
        numbers = self._numbers[first : first + SEGMENTS_AT_ONCE]
        return behind_of([self._kept[number][1] for number in numbers], behind)
