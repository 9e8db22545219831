"""Outcomes that their senders have not settled, in SQL: a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, bindparam, delete, insert, select
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import UNSETTLED
from storage.unsettled import StoredOutcome, UnsettledChanges

INSERT: Final = insert(UNSETTLED)
"""Parameters: the columns of UNSETTLED, in their order."""

_OF_TARGET: Final = (UNSETTLED.c.container_id == bindparam("of_container")) & (
    UNSETTLED.c.link == bindparam("of_link")
)

DELETE_TARGET: Final = delete(UNSETTLED).where(_OF_TARGET)
"""Parameters: container-id, link."""

DELETE: Final = delete(UNSETTLED).where(_OF_TARGET, UNSETTLED.c.tag == bindparam("of_tag"))
"""Parameters: container-id, link, tag."""


def statements_of(
    changes: UnsettledChanges,
) -> list[tuple[ClauseElement, Sequence[tuple[object, ...]]]]:
    """Return the statements that write `changes`, each with its rows of parameters."""
    kept: list[tuple[object, ...]] = []
    changed: list[tuple[object, ...]] = []
    for target, outcomes in changes.outcomes.items():
        for tag, stored in outcomes.items():
            changed.append((*target, tag))
            if stored is not None:
                kept.append(_row_of(stored))
    written: list[tuple[ClauseElement, Sequence[tuple[object, ...]]]] = [
        (DELETE_TARGET, list(changes.ended)),
        (DELETE, changed),
        (INSERT, kept),
    ]
    return [(statement, rows) for statement, rows in written if rows]


def _row_of(stored: StoredOutcome) -> tuple[object, ...]:
    return (
        stored.container_id,
        stored.link,
        stored.tag,
        stored.outcome,
        stored.owner,
        stored.address,
        stored.expiry_policy,
        int(stored.timeout_s),
    )


def load(connection: Connection) -> list[StoredOutcome]:
    """Return all outcomes, those of one target together."""
    order = (UNSETTLED.c.container_id, UNSETTLED.c.link, UNSETTLED.c.tag)
    return [
        StoredOutcome(
            container_id=row.container_id,
            link=row.link,
            tag=bytes(row.tag),
            outcome=bytes(row.outcome),
            owner=row.owner,
            address=row.address,
            expiry_policy=row.expiry_policy,
            timeout_s=row.timeout_s,
        )
        for row in connection.execute(select(UNSETTLED).order_by(*order))
    ]
