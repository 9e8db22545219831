"""The statements of every commit, defined once for all databases, and their texts in one dialect.

They are compiled once and run as driver SQL with tuples: Core's own execution takes
dictionaries and costs twice as much per row (`docs/design/data-path.md`, rule 8 of the store). If a
database has a faster way to write many rows, that is in the file of its dialect.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Dialect,
    Integer,
    bindparam,
    column,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.tables import BODY, MARK, NODE, QUEUE, SEGMENT, SUBSCRIPTION

DELETE_QUEUE: Final = delete(QUEUE).where(QUEUE.c.name == bindparam("which"))
"""Parameters: name."""

DELETE_NODE: Final = delete(NODE).where(
    NODE.c.kind == bindparam("of_kind"), NODE.c.address == bindparam("at")
)
"""Parameters: kind, address."""

DELETE_SUBSCRIPTION: Final = delete(SUBSCRIPTION).where(SUBSCRIPTION.c.queue == bindparam("which"))
"""Parameters: queue."""

SET_SUBSCRIPTION_OWNER: Final = (
    update(SUBSCRIPTION)
    .where(SUBSCRIPTION.c.queue == bindparam("which"))
    .values(owner=bindparam("new_owner"))
)
"""Parameters: owner, queue."""

INSERT_QUEUE: Final = insert(QUEUE)
"""Parameters: id, name."""

INSERT_NODE: Final = insert(NODE).from_select(
    ["kind", "address", "creator", "auto_created"],
    select(
        bindparam("kind", type_=NODE.c.kind.type),
        bindparam("address", type_=NODE.c.address.type),
        bindparam("creator", type_=NODE.c.creator.type),
        bindparam("auto_created", type_=NODE.c.auto_created.type),
    ).where(
        ~exists().where(NODE.c.kind == bindparam("of_kind"), NODE.c.address == bindparam("at"))
    ),
)
"""Parameters: kind, address, creator, whether a client created it by naming it; then kind and
address again. A node that is there stays."""

INSERT_SUBSCRIPTION: Final = (
    insert(SUBSCRIPTION)
    .values({column: bindparam(column.name) for column in list(SUBSCRIPTION.columns)[1:]})
    .inline()
)
"""Parameters: the columns of SUBSCRIPTION behind its id, in their order."""

SET_MARK: Final = (
    update(MARK).where(MARK.c.name == bindparam("which")).values(value=bindparam("number"))
)
"""Parameters: value, name."""

INSERT_SEGMENT: Final = insert(SEGMENT)
"""Parameters: number, size, facts."""

INSERT_BODY: Final = insert(BODY)
"""Parameters: number, encoded, labels."""

CHANGE_SEGMENT: Final = (
    update(SEGMENT)
    .where(SEGMENT.c.number == bindparam("which"))
    .values(size=bindparam("bytes"), facts=bindparam("records"))
)
"""Parameters: size, facts, number."""

CHANGE_BODY: Final = (
    update(BODY).where(BODY.c.number == bindparam("which")).values(encoded=bindparam("bytes"))
)
"""Parameters: encoded, number."""

DELETE_SEGMENTS: Final = delete(SEGMENT).where(
    SEGMENT.c.number.between(bindparam("first"), bindparam("last"))
)
"""Parameters: first, last."""

DELETE_BODIES: Final = delete(BODY).where(
    BODY.c.number.between(bindparam("first"), bindparam("last"))
)
"""Parameters: first, last."""

SEGMENTS: Final = select(SEGMENT).order_by(SEGMENT.c.number)
"""Returned columns: number, size, facts."""

WITH_BYTES: Final = (
    select(*SEGMENT.columns, BODY.c.encoded, BODY.c.labels)
    .select_from(SEGMENT.outerjoin(BODY, BODY.c.number == SEGMENT.c.number))
    .order_by(SEGMENT.c.number)
)
"""Returned columns: those of SEGMENTS, then encoded and labels. Both are null if their row is lost;
labels are null, too, if there are none."""

_LOWER: Final = SEGMENT.alias()


def _from(number: ColumnElement[int]) -> ColumnElement[int]:
    """Return SQL for the number of the last segment that begins at `number` or before, else 0."""
    lower = select(func.max(_LOWER.c.number)).where(_LOWER.c.number <= number)
    return func.coalesce(lower.scalar_subquery(), literal_column("0"))


_BEHIND: Final = SEGMENT.c.number >= _from(bindparam("behind", type_=BigInteger))
_PART: Final = bindparam("part", type_=Integer)
_SKIPPED: Final = bindparam("skipped", type_=Integer)

FOLLOWING: Final = SEGMENTS.where(_BEHIND).limit(_PART).offset(_SKIPPED)
"""Segments from a message on. Parameters: its number, maximum segments, 0 (segments to skip)."""

FOLLOWING_WITH_BYTES: Final = WITH_BYTES.where(_BEHIND).limit(_PART).offset(_SKIPPED)
"""Segments with their bytes; parameters as in FOLLOWING."""

_RANGE: Final = (
    SEGMENT.c.number >= _from(bindparam("first", type_=BigInteger)),
    SEGMENT.c.number <= bindparam("last", type_=BigInteger),
)

BETWEEN: Final = SEGMENTS.where(*_RANGE)
"""Segments that may have messages with numbers in a range. Parameters: first, last."""

BETWEEN_WITH_BYTES: Final = WITH_BYTES.where(*_RANGE)
"""Segments with their bytes; parameters as in BETWEEN."""

_ASKED: Final = (
    func.unnest(bindparam("numbers", type_=ARRAY(BigInteger)))
    .table_valued(column("number", BigInteger), name="asked")
    .render_derived()
)
_OF_ANY: Final = SEGMENT.c.number.in_(select(_from(_ASKED.c.number)).select_from(_ASKED))

HOLDING: Final = SEGMENTS.where(_OF_ANY)
"""Segments that may have messages with certain numbers. Parameters: the numbers, as an array. For
databases that have arrays, and in which each statement costs a round trip."""

HOLDING_WITH_BYTES: Final = WITH_BYTES.where(_OF_ANY)
"""Segments with their bytes; parameters as in HOLDING."""


class Texts:
    """Statements as text for a driver. A statement's docstring gives its parameters in order."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect: Final = dialect
        self._texts: Final[dict[ClauseElement, str]] = {}

    def of(self, statement: ClauseElement) -> str:
        """Return the text of `statement`, which is compiled at the first request."""
        text = self._texts.get(statement)
        if text is None:
            text = str(statement.compile(dialect=self._dialect))
            self._texts[statement] = text
        return text
