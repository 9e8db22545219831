"""What is read of messages: their places without contents, and windows by number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, func, select
from sqlalchemy.sql.expression import ColumnElement

from storage.records import StoredPlaces
from storage.sql.rows import ranges
from storage.sql.statements import WINDOW, WINDOW_OF, Texts
from storage.sql.tables import BODY, MESSAGE, QUARANTINE, QUEUE

PLACES_AT_ONCE: Final = 20_000
"""Messages whose places are read together at a start."""

_SIZE: Final[ColumnElement[int]] = func.coalesce(
    func.length(MESSAGE.c.encoded), func.length(BODY.c.encoded), 0
)
PLACES: Final = (
    select(
        MESSAGE.c.number,
        QUEUE.c.name,
        MESSAGE.c.position,
        _SIZE,
        MESSAGE.c.expires_at_ms,
        MESSAGE.c.deliver_at_ms,
    )
    .select_from(
        MESSAGE.outerjoin(BODY, BODY.c.number == MESSAGE.c.body).join(
            QUEUE, QUEUE.c.id == MESSAGE.c.queue
        )
    )
    .where(
        MESSAGE.c.number > bindparam("behind"),
        MESSAGE.c.number.not_in(select(QUARANTINE.c.number)),
    )
    .order_by(MESSAGE.c.number)
    .limit(PLACES_AT_ONCE)
)


def read_places(connection: Connection, behind: int) -> StoredPlaces:
    """Some of the messages with numbers above `behind`, of the queues that there are."""
    found = StoredPlaces()
    rows = connection.execute(PLACES, {"behind": behind}).fetchall()
    if rows:
        columns = zip(*rows, strict=True)
        found.numbers.extend(next(columns))
        found.queues.extend(next(columns))
        found.positions.extend(next(columns))
        found.sizes.extend(next(columns))
        found.expires_at_ms.extend(next(columns))
        found.deliver_at_ms.extend(next(columns))
    return found


def read_window(connection: Connection, texts: Texts, numbers: list[int]) -> Sequence[Row[Any]]:
    """The rows of those messages that are there, ascending."""
    if connection.dialect.name == "postgresql":
        return connection.exec_driver_sql(texts.of(WINDOW_OF), (numbers,)).all()
    found: list[Row[Any]] = []
    for between in ranges(numbers):
        found += connection.exec_driver_sql(texts.of(WINDOW), between)
    return found
