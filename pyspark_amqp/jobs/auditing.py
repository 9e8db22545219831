"""The command `jms-broker pipeline audit`: its reading, its looks into queues, its output."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from errno import EACCES
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark_amqp.jobs.layout import EVENTS, Archive

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Engine, Table
    from pyspark_amqp.jobs.audit import Look, Scope
    from pyspark_amqp.jobs.extent import Bounds, Hole
    from pyspark_amqp.jobs.report_page import Judged
    from pyspark_amqp.jobs.verdict import Verdict

COLUMNS: Final = ("check", "address", "subscription", "position", "messageId", "id", "at", "detail")

HOLES_SHOWN: Final = 5
"""Holes of the event log that are printed, the last ones."""

LOOKS: Final = 2
"""The number of looks. See `SECOND_LOOK_S`."""


@dataclass(frozen=True)
class Auditing:
    """One run of the audit, of an archive (`place`), of a broker (`broker`: its options), or both.

    Rows that were written since the archive are read from the broker, and the contents of its
    queues.
    """

    place: Path | None
    broker: Mapping[str, str] | None
    since: datetime | None = None
    until: datetime | None = None
    addresses: tuple[str, ...] = ()
    drained: bool = False
    from_row: int = 0
    """Rows with lower ids are left out, and may be missing."""

    def check(self, out: Path | None = None) -> None:
        """Raise an error if anything is wrong, before Spark starts; `out` is the file to write."""
        from pyspark_amqp.option_table import Use
        from pyspark_amqp.options import read_options
        from pyspark_amqp.wire.connection import connected

        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            if out.is_dir() or not os.access(out.parent, os.W_OK):
                raise PermissionError(EACCES, "it cannot be written", str(out))
        if self.place is not None:
            Archive(self.place).check(EVENTS)
        if self.broker is not None:
            with connected(read_options({**self.broker, "mode": "events"}, Use.BATCH)):
                pass

    def rows(self, engine: Engine) -> Table:
        """Return the event log's rows of that time and those addresses, as a report needs them."""
        from pyspark_amqp.jobs.audit import at_addresses
        from pyspark_amqp.jobs.statements import query

        found = self._events(engine)
        if self.since is not None:
            found = query("SELECT * FROM {e} e WHERE e.at >= {since}", e=found, since=self.since)
        if self.until is not None:
            found = query("SELECT * FROM {e} e WHERE e.at < {until}", e=found, until=self.until)
        return at_addresses(found, self.addresses)

    def run(self, engine: Engine, say: Callable[[str], None]) -> tuple[Verdict, Table]:
        """Return the verdict, and the messages that violate a check."""
        from pyspark_amqp.jobs.audit import Look, Scope
        from pyspark_amqp.jobs.extent import bounds
        from pyspark_amqp.jobs.verdict import judge

        scope = Scope(self.since, self.until, self.addresses)
        say("reading the event log")
        if self.broker is not None:
            return self._with_looks(engine, scope, say)
        events = self._events(engine)
        known = bounds(events)
        say(f"judging {known.rows:,} events")
        return judge(events, known, look=Look(drained=self.drained), scope=scope)

    def _events(self, engine: Engine) -> Table:
        from pyspark_amqp.jobs.looking import live_events
        from pyspark_amqp.jobs.statements import query

        if self.place is None:
            assert self.broker is not None
            return live_events(engine, self.broker, max(0, self.from_row - 1))
        return query(
            "SELECT {event_columns} FROM {archived} e WHERE id >= {from_row}",
            archived=Archive(self.place).read(engine, EVENTS),
            from_row=self.from_row,
        )

    def _with_looks(
        self, engine: Engine, scope: Scope, say: Callable[[str], None]
    ) -> tuple[Verdict, Table]:
        """Judge with a look into the queues; if messages are missing, look once more."""
        from pyspark_amqp.jobs.audit import SECOND_LOOK_S
        from pyspark_amqp.jobs.extent import bounds
        from pyspark_amqp.jobs.findings import LOSS
        from pyspark_amqp.jobs.verdict import judge

        archived = 0 if self.place is None else bounds(self._events(engine)).last
        for number in range(LOOKS):
            kept: list[Table] = []
            before = self._whole(engine, archived, kept)
            known = bounds(before)
            say(f"judging {known.rows:,} events")
            looked = self._look(before, known, scope, say)
            kept += [] if looked.waiting is None else [looked.waiting]
            after = self._whole(engine, archived, kept)
            verdict, found = judge(after, bounds(after), look=looked, scope=scope)
            if verdict.broken[LOSS] == 0 or number == LOOKS - 1:
                return verdict, found
            for each in kept:
                each.release()
            say(f"{verdict.broken[LOSS]} messages are missing: looking again")
            time.sleep(SECOND_LOOK_S)
        raise AssertionError("the last look decides")

    def _whole(self, engine: Engine, archived: int, kept: list[Table]) -> Table:
        """Return the event log up to this moment, without rows that are written later.

        `archived` is the last id of the archive, 0 without one. The rows of the broker are added to
        `kept`.
        """
        from pyspark_amqp.jobs.looking import first_kept, live_events
        from pyspark_amqp.jobs.statements import query, union

        assert self.broker is not None
        behind = max(archived, self.from_row - 1, 0)
        newer = live_events(engine, self.broker, behind).kept()
        kept.append(newer)
        _compute(newer)
        if self.place is None:
            # the broker may have removed rows among those that were read meanwhile
            first = first_kept(self.broker)
            return query("SELECT * FROM {newer} WHERE id >= {first}", newer=newer, first=first)
        return union([self._events(engine), newer])

    def _look(self, events: Table, known: Bounds, scope: Scope, say: Callable[[str], None]) -> Look:
        from pyspark_amqp.jobs.audit import Look, places_to_look
        from pyspark_amqp.jobs.looking import waiting

        assert self.broker is not None
        places = places_to_look(events, known, scope)
        say(f"looking into {len(places)} queues")
        seen, topics = waiting(events.engine, self.broker, places)
        seen = seen.kept()
        _compute(seen)
        return Look(seen, known.last, topics)

    def write(self, offending: Table, path: Path) -> None:
        """Write all offending messages to a file: Parquet if its name ends so, else CSV."""
        import pyarrow.parquet as pq

        from pyspark_amqp.jobs.csv_file import write_csv
        from pyspark_amqp.jobs.findings import in_order

        table = in_order(offending).arrow()
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
            return
        write_csv(path, table.column_names, (row.values() for row in table.to_pylist()))


def _compute(kept: Table) -> None:
    """Compute the rows of a table now, not when they are used."""
    from pyspark_amqp.jobs.statements import query

    query("SELECT count(*) AS count FROM {kept}", kept=kept).rows()


# -- output


def table_of(verdict: Verdict) -> list[dict[str, object]]:
    """Return a row for each check."""
    from pyspark_amqp.jobs.findings import LOSS

    rows: list[dict[str, object]] = []
    for check, broken in verdict.broken.items():
        unknown = check == LOSS and verdict.judged[LOSS] < verdict.messages
        word = "BROKEN" if broken else "holds, as far as it is known" if unknown else "holds"
        rows.append(
            {"check": check, "judged": verdict.judged[check], "broken": broken, "verdict": word}
        )
    return rows


def lines_of(offending: Table, count: int) -> list[dict[str, object]]:
    """Return the first `count` offending messages."""
    if count == 0:
        return []
    from pyspark_amqp.jobs.findings import in_order

    rows = in_order(offending, count).rows()
    return [{**row, "at": row["at"].isoformat()} for row in rows]


SHOWN_IN_REPORT: Final = 50
"""Maximum offending messages in the page of a report."""


def judged_by(verdict: Verdict, offending: Table) -> Judged:
    """Return the verdict as the page of a report shows it."""
    from pyspark_amqp.jobs.report_page import Judged

    return Judged(
        verdict.holds,
        verdict.is_of_nothing,
        table_of(verdict),
        lines_of(offending, SHOWN_IN_REPORT),
        notes_of(verdict),
    )


STATES: Final = {
    "before": "not judged for loss: they began before the event log, or before missing rows",
    "missing": "in a queue, by the event log; nobody has looked (--url looks)",
    "there": "in their queues",
    "given": "with a consumer or a lease",
    "held": "waiting for another try",
    "moving": "moved while they were looked for",
    "gone": "not stored, gone with their broker's end",
    "unseen": "where a look proves nothing: with subscribers of a topic that have no name,"
    " or not stored, and their broker may be another now",
}


def nothing_judged(verdict: Verdict) -> str:
    """Return what to do, for a verdict without any message."""
    if verdict.known.rows == 0:
        return (
            "nothing could be judged: the event log is empty; the broker keeps one of the addresses"
            " that have event_log = true in its settings"
        )
    return (
        f"nothing could be judged: none of the event log's {verdict.known.rows:,} events is of what"
        " is asked for; see --address, --since and --until"
    )


def _places(holes: Sequence[Hole]) -> str:
    """Return where rows are missing, in brackets; the last places if there are many."""
    if not holes:
        return ""
    shown = ", ".join(str(hole) for hole in holes[-HOLES_SHOWN:])
    return f" ({shown})" if len(holes) <= HOLES_SHOWN else f" (…, {shown})"


def notes_of(verdict: Verdict) -> list[str]:
    """Return the notes on a verdict: its extent, open messages, and limits of its checks."""
    from pyspark_amqp.jobs.findings import ORDER

    known = verdict.known
    notes = [f"{known.rows:,} events of {verdict.messages:,} messages"]
    for state, count in sorted(verdict.open.items()):
        text = STATES[state]
        if state == "missing" and verdict.looked:
            text = "in no queue"
        notes.append(f"{count:,} have not ended: {text}")
    if known.missing:
        notes.append(
            f"{known.missing:,} rows of the event log are missing{_places(known.holes)}: what began"
            " before them is not judged for loss; if the broker removed them before they were"
            f" archived, --from {known.sees_from} judges the rows behind them"
        )
    if verdict.broken[ORDER]:
        notes.append(
            "the event log has no groups: where one (JMSXGroupID) has moved on to another consumer,"
            " what is told as out of order may be as it should be"
        )
    return notes
