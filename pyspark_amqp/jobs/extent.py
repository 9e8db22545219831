"""The extent of an event log: its first and last row, and the holes between them.

The broker gives ids without gaps, and removes the oldest rows first. So a hole is a fault, or rows
that the broker removed before they were archived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Final, NamedTuple

from pyspark_amqp.engines.engine import Record, Table
from pyspark_amqp.jobs.findings import WHOLE
from pyspark_amqp.jobs.statements import BULK, query

BLOCK_BITS: Final = 16
"""Bits of an id within a block. Counting ids in blocks of 65,536 finds gaps without sorting."""

HOLES_MAX: Final = 1000
"""Maximum holes that are located: the last ones. All missing rows are counted."""

FAR: Final = 2**63 - 1
"""An id that no row has."""


class Hole(NamedTuple):
    """The first and the last id of rows that are missing together."""

    first: int
    last: int

    def __str__(self) -> str:
        return (
            f"row {self.first}" if self.first == self.last else f"rows {self.first} to {self.last}"
        )


@dataclass(frozen=True)
class Bounds:
    """The extent of an event log.

    No row is missing from the id `sees_from` on. All rows from the id `boot_from` on are of the
    process that wrote the last one. `missing`, `scheduled`, `bulks` and `moves` are numbers of
    rows; `holes` are ascending.
    """

    rows: int
    first: int
    last: int
    missing: int
    sees_from: int
    boot_from: int
    ends_at: datetime | None
    scheduled: int
    bulks: int
    moves: int = 0
    holes: tuple[Hole, ...] = ()

    @property
    def located_from(self) -> int:
        """Return the id from which on all missing rows are located."""
        located = sum(hole.last - hole.first + 1 for hole in self.holes)
        return self.first if located >= self.missing or not self.holes else self.holes[0].first

    @property
    def hole_from(self) -> int:
        """Return the id of the first row that may be missing; FAR if there is none."""
        if self.located_from > self.first:
            return self.first
        return self.holes[0].first if self.holes else FAR


BLOCKS: Final = """
SELECT shiftright(id, {bits}) AS block, boot,
  count(*) AS rows,
  min(id) AS first,
  max(id) AS last,
  max_by(e.at, id) AS at,
  count_if(kind = 'scheduled') AS scheduled,
  count_if(position = {bulk}) AS bulks,
  count_if(kind IN {moves}) AS moves
FROM {events} e
GROUP BY shiftright(id, {bits}), boot
"""

HOLES: Final = """
SELECT before + 1 AS first, id - 1 AS last
FROM (
  SELECT id, lag(id) OVER (PARTITION BY shiftright(id, {bits}), boot ORDER BY id) AS before
  FROM {events}
  WHERE shiftright(id, {bits}) IN {incomplete}
) traced
WHERE id > before + 1
ORDER BY id DESC
LIMIT {most}
"""
"""The last holes between two rows of a block. Only incomplete blocks are sorted."""

HOLES_FOUND: Final = """
SELECT {check} AS check, {key}, id, concat(hole, ' before it: missing') AS detail FROM {holes}
"""


def bounds(events: Table) -> Bounds:
    """Return the extent of an event log, in one pass; a second one locates holes if there are any.

    The rows of one process lie together.
    """
    blocks = query(BLOCKS, events=events, bits=BLOCK_BITS).rows()
    if not blocks:
        return Bounds(0, 0, 0, 0, 0, 0, None, 0, 0)
    blocks.sort(key=itemgetter("first"))
    end = blocks[-1]
    rows = sum(each["rows"] for each in blocks)
    missing = max(0, end["last"] - blocks[0]["first"] + 1 - rows)
    holes = _holes(events, blocks) if missing else ()
    return Bounds(
        rows=rows,
        first=blocks[0]["first"],
        last=end["last"],
        missing=missing,
        sees_from=holes[-1].last + 1 if holes else blocks[0]["first"],
        boot_from=min(each["first"] for each in blocks if each["boot"] == end["boot"]),
        ends_at=end["at"],
        scheduled=sum(each["scheduled"] for each in blocks),
        bulks=sum(each["bulks"] for each in blocks),
        moves=sum(each["moves"] for each in blocks),
        holes=holes,
    )


def _holes(events: Table, blocks: Sequence[Record]) -> tuple[Hole, ...]:
    """Return the last HOLES_MAX holes, ascending."""
    found = []
    incomplete = []
    expected = blocks[0]["first"]
    for each in blocks:
        if each["first"] > expected:
            found.append(Hole(expected, each["first"] - 1))
        if each["last"] - each["first"] + 1 > each["rows"]:
            incomplete.append(each["block"])
        expected = each["last"] + 1
    if incomplete:
        within = query(
            HOLES, events=events, bits=BLOCK_BITS, incomplete=tuple(incomplete), most=HOLES_MAX
        )
        found += [Hole(row["first"], row["last"]) for row in within.rows()]
    return tuple(sorted(found)[-HOLES_MAX:])


def holes_of(events: Table, known: Bounds) -> Table:
    """Return a finding for each hole, with the id of the row behind it."""
    columns = {
        "address": "STRING",
        "subscription": "STRING",
        "position": "BIGINT",
        "messageId": "STRING",
        "id": "BIGINT",
        "hole": "STRING",
    }
    rows = [("", "", BULK, "", hole.last + 1, str(hole)) for hole in known.holes]
    return query(HOLES_FOUND, holes=events.engine.table(columns, rows), check=WHOLE)
