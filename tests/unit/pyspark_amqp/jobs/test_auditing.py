"""Facts that an audit reports beside its table of verdicts, and its looks at a broker."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from proton import Message
from proton.utils import BlockingConnection

from broker import Broker
from pyspark_amqp.engines.duckdb_engine import duckdb_engine
from pyspark_amqp.jobs import audit
from pyspark_amqp.jobs.archive import dated
from pyspark_amqp.jobs.auditing import Auditing, notes_of
from pyspark_amqp.jobs.extent import Bounds, Hole
from pyspark_amqp.jobs.findings import CHECKS, LOSS, ORDER
from pyspark_amqp.jobs.layout import EVENTS, Archive
from pyspark_amqp.jobs.local_archive import BatchFiles
from pyspark_amqp.jobs.verdict import Verdict
from tests.spark.event_logs import Writer

KNOWN: Final = Bounds(9, 1, 9, 0, 1, 1, None, 0, 0)
NONE: Final = dict.fromkeys(CHECKS, 0)
SOUND: Final = Verdict(KNOWN, 3, {}, {**NONE, LOSS: 3}, NONE)

HOLES: Final = tuple(Hole(number, number) for number in range(3, 15, 2))

NOTES: Final = [
    ("all is well", SOUND, ""),
    (
        "nobody has looked",
        replace(SOUND, open={"missing": 1}, judged={**NONE, LOSS: 2}),
        "1 have not ended: in a queue, by the event log; nobody has looked",
    ),
    (
        "it was looked",
        replace(SOUND, open={"missing": 1}, looked=True),
        "1 have not ended: in no queue",
    ),
    (
        "rows were trimmed",
        replace(SOUND, known=replace(KNOWN, missing=2, sees_from=7, holes=(Hole(5, 6),))),
        "2 rows of the event log are missing (rows 5 to 6): what began before them is not judged",
    ),
    (
        "many rows are missing",
        replace(SOUND, known=replace(KNOWN, missing=6, sees_from=14, holes=HOLES)),
        "6 rows of the event log are missing (…, row 5, row 7, row 9, row 11, row 13)",
    ),
    (
        "a group that moves is not told from a fault of order",
        replace(SOUND, broken={**NONE, ORDER: 1}),
        "the event log has no groups",
    ),
]


@pytest.mark.requirement("PIP-63")
@pytest.mark.parametrize(
    ("verdict", "note"), [each[1:] for each in NOTES], ids=[each[0] for each in NOTES]
)
def test_what_else_has_to_be_known(verdict: Verdict, note: str) -> None:
    first, *others = notes_of(verdict)
    assert first == "9 events of 3 messages"
    assert len(others) == bool(note)
    assert all(other.startswith(note) for other in others)


STORED: Final = """
SELECT table_name FROM duckdb_columns() JOIN duckdb_tables() USING (table_name)
WHERE column_name = 'deliverAt'
"""


@pytest.mark.requirement("PIP-63")
@pytest.mark.requirement("PIP-75")
def test_rows_of_the_first_look_are_deleted_before_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "SECOND_LOOK_S", 0)
    told = Writer()
    told.note("enqueued")
    with Broker(address=[{"pattern": "*", "event_log": True}]) as broker, duckdb_engine() as engine:
        connection = BlockingConnection(broker.url)
        sender = connection.create_sender("orders")
        for _ in range(3):
            sender.send(Message(body="x"))
        connection.close()
        BatchFiles(Archive(tmp_path), EVENTS, "query", 0).write(dated(told.table(engine), EVENTS))
        stored = set(engine.connection.execute(STORED).fetchall())
        rows: list[int] = []

        def say(text: str) -> None:
            if not text.endswith("looking again"):
                return
            names = set(engine.connection.execute(STORED).fetchall()) - stored
            for (name,) in names:
                (count,) = engine.connection.execute(f"SELECT count(*) FROM {name}").fetchall()
                rows.append(*count)

        verdict, _ = Auditing(tmp_path, {"url": broker.url}).run(engine, say)
    assert verdict.broken[LOSS] == 1
    assert rows
    assert sum(rows) == 0
