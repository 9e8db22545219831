"""The statements of every commit, said once for all databases, and their texts in one dialect.

They are compiled once and run as driver SQL with tuples: Core's own execution takes
dictionaries and costs twice as much a row (`storage.md`, rule 8). Where a database has a
faster way to do the same to many rows, that is in the file of its dialect.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Dialect,
    any_,
    bindparam,
    delete,
    exists,
    insert,
    select,
    update,
)
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import BODY, MARK, MESSAGE, NODE, QUARANTINE, QUEUE, SUBSCRIPTION

MESSAGE_COLUMNS: Final = tuple(column.name for column in MESSAGE.columns)

DELETE_QUEUE: Final = delete(QUEUE).where(QUEUE.c.name == bindparam("which"))
"""name"""

DELETE_NODE: Final = delete(NODE).where(
    NODE.c.kind == bindparam("of_kind"), NODE.c.address == bindparam("at")
)
"""kind, address"""

DELETE_SUBSCRIPTION: Final = delete(SUBSCRIPTION).where(SUBSCRIPTION.c.queue == bindparam("which"))
"""queue"""

INSERT_QUEUE: Final = insert(QUEUE)
"""id, name"""

INSERT_NODE: Final = insert(NODE).from_select(
    ["kind", "address"],
    select(
        bindparam("kind", type_=NODE.c.kind.type), bindparam("address", type_=NODE.c.address.type)
    ).where(
        ~exists().where(NODE.c.kind == bindparam("of_kind"), NODE.c.address == bindparam("at"))
    ),
)
"""kind, address, and both again: one that is there stays"""

INSERT_SUBSCRIPTION: Final = (
    insert(SUBSCRIPTION)
    .values({column: bindparam(column.name) for column in list(SUBSCRIPTION.columns)[1:]})
    .inline()
)
"""The columns of SUBSCRIPTION behind its id, in their order."""

SET_MARK: Final = (
    update(MARK).where(MARK.c.name == bindparam("which")).values(value=bindparam("number"))
)
"""value, name"""

INSERT_MESSAGE: Final = insert(MESSAGE)
"""The columns of MESSAGE, in their order."""

INSERT_BODY: Final = insert(BODY)
"""number, encoded"""

FALL_DUE: Final = (
    update(MESSAGE)
    .where(MESSAGE.c.number == bindparam("which"))
    .values(position=bindparam("place"), deliver_at_ms=0)
)
"""position, 0, number"""

COUNT: Final = (
    update(MESSAGE)
    .where(MESSAGE.c.number == bindparam("which"))
    .values(delivery_count=bindparam("count"))
)
"""delivery_count, number"""

REWRITE: Final = (
    update(MESSAGE)
    .where(MESSAGE.c.number == bindparam("which"))
    .values(checksum=bindparam("sum"), body=None, encoded=bindparam("bytes"))
)
"""checksum, None, encoded, number"""

DELETE_MESSAGES: Final = delete(MESSAGE).where(
    MESSAGE.c.number.between(bindparam("first"), bindparam("last"))
)
"""first, last"""

DELETE_BODY: Final = delete(BODY).where(BODY.c.number == bindparam("which"))
"""number"""

MESSAGE_ROWS: Final = select(*MESSAGE.columns, BODY.c.encoded.label("shared")).select_from(
    MESSAGE.outerjoin(BODY, BODY.c.number == MESSAGE.c.body)
)
"""Messages with their bytes: `encoded`, or `shared` where `body` names a row of that table."""

LOADABLE: Final = MESSAGE_ROWS.where(
    MESSAGE.c.queue.in_(select(QUEUE.c.id)),
    MESSAGE.c.number.not_in(select(QUARANTINE.c.number)),
).order_by(MESSAGE.c.number)
"""Those of the queues that there are, without those that are set aside."""

LOAD: Final = (
    LOADABLE.where(MESSAGE.c.number > bindparam("behind"))
    .limit(bindparam("part"))
    .offset(bindparam("skipped"))
)
"""number, how many, 0"""

WINDOW: Final = LOADABLE.where(MESSAGE.c.number.between(bindparam("first"), bindparam("last")))
"""first, last"""

WINDOW_OF: Final = LOADABLE.where(
    MESSAGE.c.number == any_(bindparam("numbers", type_=ARRAY(BigInteger)))
)
"""numbers, as an array: where each statement is a journey, and there are arrays"""


class Texts:
    """What a driver is given for a statement. Parameters come in the order said there."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect: Final = dialect
        self._texts: Final[dict[ClauseElement, str]] = {}

    def of(self, statement: ClauseElement) -> str:
        """The text of `statement`, compiled when it is first asked for."""
        text = self._texts.get(statement)
        if text is None:
            text = str(statement.compile(dialect=self._dialect))
            self._texts[statement] = text
        return text
