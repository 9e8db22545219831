"""Stages and sinks in SQL: one row each. Messages of stages are stored like all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import SINK, STAGE
from storage.stages import StageChanges, StoredSink, StoredStage

INSERT_STAGE: Final = insert(STAGE)
"""Parameters: the columns of STAGE, in their order."""

DELETE_STAGE: Final = delete(STAGE).where(STAGE.c.number == bindparam("which"))
"""Parameters: number."""

INSERT_SINK: Final = insert(SINK)
"""Parameters: the columns of SINK, in their order."""

DELETE_SINK: Final = delete(SINK).where(SINK.c.query == bindparam("which"))
"""Parameters: query."""

OWNER: Final = "\x1f"
"""Separates the publisher of a stage from the owner of its query, in one column.

The name of a user has no control characters. Rows of broker versions that knew no owner lack it.
"""

Statement = tuple[ClauseElement, Sequence[tuple[object, ...]]]


def statements_of(changes: StageChanges) -> list[Statement]:
    """Return the statements that write `changes`, each with its rows of parameters."""
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
        _publisher_and_owner(stage),
        int(stage.begun_ms),
    )


def _publisher_and_owner(stage: StoredStage) -> str:
    return stage.publisher if stage.owner is None else f"{stage.publisher}{OWNER}{stage.owner}"


def _stage(row: Row[Any]) -> StoredStage:
    publisher, is_owned, owner = row.publisher.rpartition(OWNER)
    return StoredStage(
        number=row.number,
        query=row.query,
        batch=row.batch,
        partition=row.partition,
        attempt=row.attempt,
        kind=row.kind,
        address=row.address,
        publisher=publisher if is_owned else row.publisher,
        begun_ms=row.begun_ms,
        owner=owner if is_owned else None,
    )


def stages(connection: Connection) -> list[StoredStage]:
    """Return every stage, by ascending number."""
    return [_stage(row) for row in connection.execute(select(STAGE).order_by(STAGE.c.number))]


def sinks(connection: Connection) -> list[StoredSink]:
    """Return every query that has committed a batch, ordered by name."""
    rows = connection.execute(select(SINK).order_by(SINK.c.query))
    return [StoredSink(query=row.query, batch=row.batch, at_ms=row.at_ms) for row in rows]
