"""The words of the jobs' statements: kinds of events, and conditions that several statements share.

A statement has the names of WORDS in braces, and those of its tables and values. Each rule of the
audit is written once: both engines run the same statements, in Spark's SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark_amqp.engines.engine import Table, literal
from pyspark_amqp.rows.columns import EVENT_LOG_COLUMNS

if TYPE_CHECKING:
    from pyspark_amqp.engines.engine import Engine

KEY: Final = ("address", "subscription", "position", "messageId")

SAME: Final = ("address", "subscription", "position", "enqueuedAt", "JMSMessageID")
"""Columns that are the same in two rows of an archive if they are of one message."""

GIVEN: Final = ("delivered", "leased")
"""Kinds of events by which a consumer or a lease gets a message."""

BEGINS: Final = ("enqueued", "scheduled")

ACCEPTED: Final = ("accepted", "settled")
ENDS: Final = (*ACCEPTED, "expired", "deadlettered", "moved", "purged")

SETTLEMENTS: Final = (*ACCEPTED, "released", "modified", "rejected")
"""Kinds of events by which a consumer or a lease gives a message back, or ends its life."""

MOVES: Final = ("deadlettered", "expired")
"""Kinds of events with which the broker may move a message to another queue."""

NO_TARGET: Final = "no dead-letter node takes it"
"""The reason of `purged` if `deadlettered` has already ended the message's life."""

LEASE: Final = "lease"
"""The link of a lease. Its name is its `consumer`, and it keeps its messages over restarts."""

BULK: Final = -1
"""The position in a row about many messages: a queue was deleted, or purged unread."""

HASHES: Final = 1_000_000_007
"""Hashes are taken modulo this number, so that sums of them stay within 64 bits."""

WORDS: Final = {
    "key": ", ".join(KEY),
    # columns that identify a scheduled message: its position changes when it enters its queue
    "by_id": "address, subscription, messageId",
    "event_columns": ", ".join(f"e.{name}" for name in EVENT_LOG_COLUMNS),
    "same": ", ".join(SAME),
    "begins": literal(BEGINS),
    "given": literal(GIVEN),
    "accepted": literal(ACCEPTED),
    "settlements": literal(SETTLEMENTS),
    "moves": literal(MOVES),
    "bulk": literal(BULK),
    # a row that ends a life
    "is_end": f"(kind IN {literal(ENDS)} AND NOT (kind = 'purged' AND reason = '{NO_TARGET}'))",
    # the process whose end takes a message from its consumer; empty for a lease
    "process": f"CASE WHEN link = '{LEASE}' THEN '' ELSE boot END",
    # a number that identifies the consumer or the lease in a row: the session of a link that was
    # resumed is another, but its container and name are the same
    "holder": (
        f"CAST(hash(consumer, link, CASE WHEN link = '{LEASE}' THEN '' ELSE boot END)"
        f" % {HASHES} AS BIGINT)"
    ),
    # -- of a row of `lives`
    # its last life ends with its broker
    "is_not_stored": "(lastBeginId = notStoredId)",
    # it was accepted at most once in each life
    "is_accepted_once": "(accepted <= greatest(enqueued, 1))",
    # -- of a row of `stated`
    # it is known when the message arrived that was given: not if it began before the event log, or
    # if several messages without an id had its place
    "is_in_order_known": "(beganId < giftId AND enqueued = 1)",
    # its rows have to be looked at, by `given_to_two` and by `accepted_by_another`
    "may_be_given_to_two": "(NOT isUnclear AND given > 1)",
    "may_be_accepted_by_another": (
        "(NOT isUnclear AND accepted > 0 AND accepted <= greatest(enqueued, 1)"
        " AND NOT (given = settlements AND coalesce(holders, 0) = 0))"
    ),
}


def query(statement: str, **given: object) -> Table:
    """Return the rows of a statement. `given` has its tables, at least one, and its values."""
    tables = {name: each for name, each in given.items() if isinstance(each, Table)}
    values = {name: literal(each) for name, each in given.items() if name not in tables}
    names = {name: f"{{{name}}}" for name in tables}
    engine: Engine = next(iter(tables.values())).engine
    return engine.run(statement.format(**WORDS, **values, **names), tables)


def union(parts: list[Table]) -> Table:
    """Return the rows of all tables, which have the same columns in the same order."""
    if len(parts) == 1:
        return parts[0]
    named = {f"part{index}": part for index, part in enumerate(parts)}
    return query(" UNION ALL ".join(f"SELECT * FROM {{{name}}}" for name in named), **named)
