"""Salvage: what can still be read of a damaged SQLite file is copied into a new store.

Every table is read by rowid from both ends until a row cannot be read. The rest between them is
halved again and again, largest pieces first, until every readable row has been read.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, delete, func, insert, select, union, update

from storage.api import StoreError
from storage.sql import ids
from storage.sql.contents import COPIED, IN_USE, mark, set_mark
from storage.sql.index import NUMBERS, NUMBERS_AT_ONCE
from storage.sql.leases import FENCING_TOKENS, highest_token
from storage.sql.reading import portions
from storage.sql.schema import HEAD, bring_up_to_date
from storage.sql.segments.packing import queues_of
from storage.sql.sqlite.sqlite import DRIVER_ERRORS, reason_of
from storage.sql.statements import Texts
from storage.sql.tables import BODY, MARK, METADATA, NODE, QUEUE, SEGMENT, SUBSCRIPTION
from storage.sql.tools.check import check
from storage.sql.tools.offline import present, reading, writing
from storage.stages import STAGED

PART: Final = 500
"""Rows that are written in one transaction."""

FAILURES_MAX: Final = 20_000
"""Maximum failed reads of one table; the unread rowids that are left then are given up."""

FAR: Final = 2**24
"""Last rowid that is searched if neither the table's end nor the mark `numbers` can be read, unless
a row behind it is found."""

ROWID_BITS: Final = 63

ROWID_MAX: Final = 2**ROWID_BITS - 1
"""The highest rowid that SQLite has."""

TOKENS_SPARED: Final = 1_000_000
"""Fencing tokens that are left out if the last one given is lost: leases that have ended may have
had higher ones than those that are there."""

FORMER: Final = ("message",)
"""Tables of older schemas that today's schema does not have."""

Row = tuple[Any, ...]
Advance = Callable[[int], None]


@dataclass
class Part:
    """The result for one table: rows saved, rows that the new table refused, unreadable rowids."""

    saved: int = 0
    refused: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Salvaged:
    """The result of a salvage: `parts` by table, messages `damaged` in the new store, the number
    of queues `adopted`, which were created for messages without one, and the number of remembered
    ids that were dropped because their nodes were lost."""

    parts: dict[str, Part]
    damaged: int
    adopted: int
    dropped_ids: int

    def is_whole(self) -> bool:
        """Return whether nothing was lost."""
        return self.damaged == 0 and not any(
            part.gaps or part.refused for part in self.parts.values()
        )


@dataclass
class Span:
    """A range of rowids of which nothing has been read yet."""

    first: int
    last: int

    def is_empty(self) -> bool:
        return self.first > self.last


class Table:
    """A table of the damaged file, which is read as far as possible."""

    def __init__(self, source: sqlite3.Connection, name: str, columns: list[str]) -> None:
        self._lost: Final[list[tuple[int, int]]] = []
        self._source: Final = source
        self._name: Final = name
        self._columns: Final = ", ".join(f'"{column}"' for column in ["rowid", *columns])
        self._failures = 0

    def rows(self) -> Iterator[Row]:
        """Yield every row that can be read, once, with its rowid before its columns."""
        end, is_known = self._end()
        if not is_known and end < ROWID_MAX:
            self._give_up(Span(end + 1, ROWID_MAX))
        whole = Span(0, end)
        yield from self._ends(whole)
        spans = deque([whole])
        while spans:
            span = spans.popleft()
            if span.is_empty():
                continue
            if span.first == span.last or self._failures >= FAILURES_MAX:
                self._give_up(span)
                continue
            middle = span.first + (span.last - span.first) // 2
            for half in (Span(span.first, middle), Span(middle + 1, span.last)):
                yield from self._ends(half)
                spans.append(half)

    def _ends(self, span: Span) -> Iterator[Row]:
        """Yield rows from the beginning of `span`, then from its end; it keeps the unread rest."""
        for row in self._walk(span, "ASC"):
            span.first = row[0] + 1
            yield row
        for row in self._walk(span, "DESC"):
            span.last = row[0] - 1
            yield row

    def _walk(self, span: Span, order: str) -> Iterator[Row]:
        """Yield rows in one direction up to an unreadable one; empty `span` if there is none."""
        if span.is_empty():
            return
        asked = f'SELECT {self._columns} FROM "{self._name}" WHERE rowid BETWEEN ? AND ?'  # noqa: S608 - names of our own tables
        ordered = f"{asked} ORDER BY rowid {order}"
        try:
            yield from self._source.execute(ordered, (span.first, span.last))
        except sqlite3.DatabaseError:
            self._failures += 1
        else:
            span.first = span.last + 1
            return
        # the driver reads one row ahead, and drops the row before the error: read that one again
        try:
            yield from self._source.execute(f"{ordered} LIMIT 1", (span.first, span.last))
        except sqlite3.DatabaseError:
            return

    def _end(self) -> tuple[int, bool]:
        """Return the last rowid and True; if it cannot be read, one to search up to, and False."""
        last = self._number(f'SELECT coalesce(max(rowid), 0) FROM "{self._name}"')  # noqa: S608
        if last is not None:
            return last, True
        marked = self._number("SELECT value FROM mark WHERE name = 'numbers'")
        # chunks and events have higher rowids than messages
        return max(FAR if marked is None else marked, self._last_found()), False

    def _last_found(self) -> int:
        """Return a rowid that can be read, such that no row is found in growing steps behind it."""
        asked = f'SELECT rowid FROM "{self._name}" WHERE rowid >= {{}} ORDER BY rowid LIMIT 1'  # noqa: S608
        last, step = 0, 1 << (ROWID_BITS - 1)
        while step:
            found = self._number(asked.format(last + step)) if last <= ROWID_MAX - step else None
            if found is None:
                step >>= 1
            else:
                last, step = found, 1 << (ROWID_BITS - 1)
        return last

    def _number(self, asked: str) -> int | None:
        """Return the number that a query finds, None if there is none, or it cannot be read."""
        try:
            found = self._source.execute(asked).fetchone()
        except sqlite3.DatabaseError:
            return None
        return found[0] if found is not None and isinstance(found[0], int) else None

    def _give_up(self, span: Span) -> None:
        self._lost.append((span.first, span.last))

    def gaps(self) -> list[tuple[int, int]]:
        """Return the ranges of rowids that could not be read, after `rows` is exhausted."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(self._lost):
            if merged and merged[-1][1] + 1 == first:
                merged[-1] = (merged[-1][0], last)
            else:
                merged.append((first, last))
        return merged


def salvage(source: Path, target: Path, advance: Advance) -> Salvaged:
    """Copy what can be read of `source` into the new store `target`.

    Raise StoreError if nothing can be read, or if `target` exists already.
    """
    present(source)
    for there in (target, target.with_name(target.name + "-wal")):
        if there.exists():
            raise StoreError(f"{there} is there already: name a new file")
    with reading(source) as old:
        driver = old.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        columns = _columns(driver, source)
        with writing(target) as new:
            bring_up_to_date(new, _version(driver))
            parts = _copy(driver, columns, new=new, advance=advance)
            bring_up_to_date(new)
            _drop_halves(new)
            adopted = _adopt(new) if _owners_are_lost(parts) else 0
            dropped_ids = ids.drop_orphans(new)
            _see_to_marks(new)
            damaged = check(new, lambda _: None).damaged
            return Salvaged(parts, damaged, adopted=adopted, dropped_ids=dropped_ids)


def _version(source: sqlite3.Connection) -> str:
    """Return the schema of the damaged file; today's if it is unreadable or a later one."""
    try:
        found = source.execute("SELECT version_num FROM alembic_version").fetchone()
    except DRIVER_ERRORS:
        return HEAD
    return found[0] if found is not None and str(found[0]) < HEAD else HEAD


def _columns(source: sqlite3.Connection, database: Path) -> dict[str, list[str]]:
    """Return the tables of a store that the damaged file has, each with its columns."""
    found: dict[str, list[str]] = {}
    try:
        for name in (*METADATA.tables, *FORMER):
            told = source.execute(f'PRAGMA table_info("{name}")').fetchall()
            if told:
                found[name] = [row[1] for row in told]
    except DRIVER_ERRORS as error:
        raise StoreError(f"nothing of {database} can be read: {reason_of(error)}") from None
    if not found:
        raise StoreError(f"nothing of {database} can be read: there are no tables of a store")
    return found


def _copy(
    source: sqlite3.Connection, columns: dict[str, list[str]], *, new: Connection, advance: Advance
) -> dict[str, Part]:
    driver = new.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    parts: dict[str, Part] = {}
    for name, there in columns.items():
        known = [row[1] for row in driver.execute(f'PRAGMA table_info("{name}")')]
        shared = [column for column in known if column in there]
        if shared:
            table = Table(source, name, shared)
            parts[name] = _copy_rows(
                table.rows(), driver, _insertion(name, shared), advance=advance
            )
            parts[name].gaps = table.gaps()
    return parts


def _insertion(name: str, columns: list[str]) -> str:
    named = ", ".join(f'"{column}"' for column in columns)
    marks = ", ".join("?" for _ in columns)
    return f'INSERT INTO "{name}" ({named}) VALUES ({marks})'  # noqa: S608 - names of our tables


def _copy_rows(
    rows: Iterator[Row], target: sqlite3.Connection, insertion: str, *, advance: Advance
) -> Part:
    part = Part()
    while some := [row[1:] for row in islice(rows, PART)]:
        target.execute("BEGIN IMMEDIATE")
        for row in some:
            try:
                target.execute(insertion, row)
            except sqlite3.IntegrityError:
                part.refused += 1
            else:
                part.saved += 1
        target.execute("COMMIT")
        advance(len(some))
    return part


# -- repair of the new store


def _owners_are_lost(parts: dict[str, Part]) -> bool:
    """Return whether a message may have lost its queue, its node or its subscription."""
    owners = (QUEUE.name, NODE.name, SUBSCRIPTION.name)
    return any(name not in parts or parts[name].gaps or parts[name].refused for name in owners)


def _adopt(new: Connection) -> int:
    """Create queues `salvaged.ID` for messages without node or subscription; return how many."""
    owned = union(
        select(NODE.c.address).where(NODE.c.kind == "queue"), select(SUBSCRIPTION.c.queue)
    )
    # messages of stages are not committed: only their stages may use them
    mine = QUEUE.c.name.in_(owned) | (QUEUE.c.name == STAGED)
    named = set(new.execute(select(QUEUE.c.id).where(mine)).scalars())
    known = set(new.execute(select(QUEUE.c.id)).scalars())
    lost = _queues_of_messages(new) - named
    for queue in lost:
        name = f"salvaged.{queue}"
        if queue in known:
            new.execute(update(QUEUE).where(QUEUE.c.id == queue).values(name=name))
        else:
            new.execute(insert(QUEUE).values(id=queue, name=name))
        new.execute(insert(NODE).values(kind="queue", address=name))
    return len(lost)


def _drop_halves(new: Connection) -> None:
    """Delete segments without bytes and bytes without segment: neither can be delivered."""
    new.execute(delete(SEGMENT).where(SEGMENT.c.number.not_in(select(BODY.c.number))))
    new.execute(delete(BODY).where(BODY.c.number.not_in(select(SEGMENT.c.number))))


def _queues_of_messages(new: Connection) -> set[int]:
    found: set[int] = set()
    for portion in portions(new, Texts(new.dialect)):
        for segment in portion:
            found.update(queues_of(segment))
    return found


def _see_to_marks(new: Connection) -> None:
    """Set marks so that no number or fencing token is given again, and every message may have
    been delivered."""
    highest = new.execute(select(func.max(SEGMENT.c.number))).scalar() or 0
    set_mark(new, NUMBERS, max(mark(new, NUMBERS), highest + NUMBERS_AT_ONCE))
    set_mark(new, IN_USE, 1)
    set_mark(new, COPIED, 1)
    if new.execute(select(MARK).where(MARK.c.name == FENCING_TOKENS)).first() is None:
        set_mark(new, FENCING_TOKENS, highest_token(new) + TOKENS_SPARED)
