"""The statements of every commit, compiled once and run as driver SQL with tuples.

Core's own execution takes dictionaries and costs twice as much a row (`storage.md`, rule 8).
"""

from typing import Final

from sqlalchemy import Dialect, bindparam, delete, insert, select, update
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import BODY, MESSAGE, QUARANTINE, QUEUE

MESSAGE_COLUMNS: Final = tuple(column.name for column in MESSAGE.columns)


LOADABLE: Final = (
    select(*MESSAGE.columns, BODY.c.encoded.label("shared"))
    .select_from(MESSAGE.outerjoin(BODY, BODY.c.number == MESSAGE.c.body))
    .where(
        MESSAGE.c.queue.in_(select(QUEUE.c.id)),
        MESSAGE.c.number.not_in(select(QUARANTINE.c.number)),
    )
    .order_by(MESSAGE.c.number)
)
"""Messages with their bytes, of the queues that there are, without those that are set aside."""


class Statements:
    """SQL texts for one dialect. Parameters are positional, in the order that is said here."""

    def __init__(self, dialect: Dialect) -> None:
        number = MESSAGE.c.number
        self.insert_message: Final = _text(insert(MESSAGE), dialect)
        """The columns of MESSAGE, in their order."""
        self.insert_body: Final = _text(insert(BODY), dialect)
        """number, encoded"""
        self.delete_messages: Final = _text(
            delete(MESSAGE).where(number.between(bindparam("first"), bindparam("last"))), dialect
        )
        """first, last"""
        self.delete_body: Final = _text(
            delete(BODY).where(BODY.c.number == bindparam("which")), dialect
        )
        """number"""
        self.count: Final = _text(
            update(MESSAGE)
            .where(number == bindparam("which"))
            .values(delivery_count=bindparam("count")),
            dialect,
        )
        """delivery_count, number"""
        self.fall_due: Final = _text(
            update(MESSAGE)
            .where(number == bindparam("which"))
            .values(position=bindparam("place"), deliver_at_ms=0),
            dialect,
        )
        """position, 0, number"""
        self.rewrite: Final = _text(
            update(MESSAGE)
            .where(number == bindparam("which"))
            .values(checksum=bindparam("sum"), body=None, encoded=bindparam("bytes")),
            dialect,
        )
        """checksum, None, encoded, number"""
        self.load: Final = _text(
            LOADABLE.where(number > bindparam("behind"))
            .limit(bindparam("part"))
            .offset(bindparam("skipped")),
            dialect,
        )
        """number, how many, 0"""
        self.window: Final = _text(
            LOADABLE.where(number.between(bindparam("first"), bindparam("last"))), dialect
        )
        """first, last"""


def _text(statement: ClauseElement, dialect: Dialect) -> str:
    return str(statement.compile(dialect=dialect))
