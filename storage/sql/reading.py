"""What is read of messages: their places without contents, and windows by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, func, select

from storage.records import StoredPlaces
from storage.sql.rows import ranges
from storage.sql.statements import WINDOW, WINDOW_OF, Texts
from storage.sql.tables import BODY, MESSAGE, QUARANTINE

PLACES_AT_ONCE: Final = 5000
"""Messages whose places are read together at a start."""

PLACES: Final = (
    select(
        MESSAGE.c.number,
        MESSAGE.c.queue,
        MESSAGE.c.position,
        func.length(MESSAGE.c.encoded),
        MESSAGE.c.expires_at_ms,
        MESSAGE.c.deliver_at_ms,
        MESSAGE.c.body,
    )
    .where(MESSAGE.c.number > bindparam("behind"))
    .order_by(MESSAGE.c.number)
    .limit(PLACES_AT_ONCE)
)
"""Of one table: a join would cost more than all the rest. The columns lie before the bytes."""


def read_places(connection: Connection, names: Mapping[int, str], behind: int) -> StoredPlaces:
    """Some of the messages with numbers above `behind`, of the queues that have names."""
    found = StoredPlaces()
    left_out = set(connection.execute(select(QUARANTINE.c.number)).scalars())
    while not found.numbers:
        rows = connection.execute(PLACES, {"behind": behind}).fetchall()
        if not rows:
            break
        last: int = rows[-1][0]
        shared = [row[6] for row in rows if row[6] is not None]
        sizes = _sizes(connection, min(shared), max(shared)) if shared else {}
        kept = [row for row in rows if row[1] in names and row[0] not in left_out]
        found.numbers.extend([row[0] for row in kept])
        found.queues.extend([names[row[1]] for row in kept])
        found.positions.extend([row[2] for row in kept])
        found.sizes.extend([sizes.get(row[6], 0) if row[3] is None else row[3] for row in kept])
        found.expires_at_ms.extend([row[4] for row in kept])
        found.deliver_at_ms.extend([row[5] for row in kept])
        behind = last
    return found


def _sizes(connection: Connection, first: int, last: int) -> dict[int, int]:
    """The sizes of the shared bodies from `first` to `last`, by number."""
    bodies = select(BODY.c.number, func.length(BODY.c.encoded))
    rows = connection.execute(bodies.where(BODY.c.number.between(first, last)))
    return {row[0]: row[1] for row in rows}


def read_window(connection: Connection, texts: Texts, numbers: list[int]) -> Sequence[Row[Any]]:
    """The rows of those messages that are there, ascending."""
    if connection.dialect.name == "postgresql":
        return connection.exec_driver_sql(texts.of(WINDOW_OF), (numbers,)).all()
    found: list[Row[Any]] = []
    for between in ranges(numbers):
        found += connection.exec_driver_sql(texts.of(WINDOW), between).all()
    return found
