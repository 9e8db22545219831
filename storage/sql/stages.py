"""Stages and sinks in SQL: a row each. Their messages lie where all messages do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import SINK, STAGE
from storage.stages import StageChanges, StoredSink, StoredStage

INSERT_STAGE: Final = insert(STAGE)
"""The columns of STAGE, in their order."""

DELETE_STAGE: Final = delete(STAGE).where(STAGE.c.number == bindparam("which"))
"""number"""

INSERT_SINK: Final = insert(SINK)
"""The columns of SINK, in their order."""

DELETE_SINK: Final = delete(SINK).where(SINK.c.query == bindparam("which"))
"""query"""

Statement = tuple[ClauseElement, Sequence[tuple[object, ...]]]


def statements_of(changes: StageChanges) -> list[Statement]:
    """What is to be written for `changes`."""
    sinks = [(each.query, int(each.batch), int(each.at_ms)) for each in changes.sinks.values()]
    replaced = dict.fromkeys([*changes.forgotten, *changes.sinks])
    statements: list[Statement] = [
        (DELETE_STAGE, [(number,) for number in changes.removed]),
        (DELETE_SINK, [(query,) for query in replaced]),
        (INSERT_STAGE, [_row(stage) for stage in changes.added.values()]),
        (INSERT_SINK, sinks),
    ]
    return [(statement, rows) for statement, rows in statements if rows]


def _row(stage: StoredStage) -> tuple[object, ...]:
    return (
        int(stage.number),
        stage.query,
        int(stage.batch),
        int(stage.partition),
        int(stage.attempt),
        stage.kind,
        stage.address,
        stage.publisher,
        int(stage.begun_ms),
    )


def stages(connection: Connection) -> list[StoredStage]:
    """Every stage, by ascending number."""
    return [
        StoredStage(
            number=row.number,
            query=row.query,
            batch=row.batch,
            partition=row.partition,
            attempt=row.attempt,
            kind=row.kind,
            address=row.address,
            publisher=row.publisher,
            begun_ms=row.begun_ms,
        )
        for row in connection.execute(select(STAGE).order_by(STAGE.c.number))
    ]


def sinks(connection: Connection) -> list[StoredSink]:
    """Every query that has committed something, by name."""
    rows = connection.execute(select(SINK).order_by(SINK.c.query))
    return [StoredSink(query=row.query, batch=row.batch, at_ms=row.at_ms) for row in rows]
