"""The life of each message by the event log: pure functions from event log frames to frames.

A message is identified by its address, subscription, position and JMSMessageID. Several messages
may share these: plain subscribers of a topic have no name, and positions begin anew with a queue.
So lives are counted: a message is lost if fewer lives have ended than begun, never because two rows
differ.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

KEY: Final = ("address", "subscription", "position", "messageId")

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

NOT_STORED: Final = "not stored"
"""Begin of the reason of `enqueued` and `scheduled` if the message ends with its broker process."""

HURRIED: Final = "made ready by an operator"
"""End of the reason of `enqueued` if the message was not due."""

TAKER: Final = ("address", "subscription", "consumer", "link", "session", "boot")
"""Columns that identify the consumer of a message, and the queue or subscription it is from."""

NAMELESS: Final = "subscriber/"
"""Begin of the `session` in the first row of a message for a subscriber of a topic without a name.

Other first rows name the queue of the message: `queue/7`. Those of older brokers name nothing.
"""

LEASE: Final = "lease"
"""The link of a lease. Its name is its `consumer`, and it keeps its messages over restarts."""

BULK: Final = -1
"""The position in a row about many messages: a queue was deleted, or purged unread."""


def is_end() -> Column:
    """Return the condition that a row ends a life."""
    return F.col("kind").isin(*ENDS) & ~(
        (F.col("kind") == "purged") & (F.col("reason") == NO_TARGET)
    )


def is_not_stored() -> Column:
    """Return the condition that the last life of a message of `lives` ends with its broker."""
    return F.col("lastBeginId") == F.col("notStoredId")


def is_accepted_once() -> Column:
    """Return the condition that a message of `lives` was accepted at most once in each life."""
    return F.col("accepted") <= F.greatest("enqueued", F.lit(1))


def process() -> Column:
    """Return the process whose end takes a message from its consumer; empty for a lease."""
    return F.when(F.col("link") == LEASE, F.lit("")).otherwise(F.col("boot"))


def holder() -> Column:
    """Return a number that identifies the consumer or the lease in a row.

    The session of a link that was resumed is another, but its container and name are the same.
    """
    return F.hash("consumer", "link", process())


def first(condition: Column) -> Column:
    """Return the id of the first row that fulfils the condition."""
    return F.min(F.when(condition, F.col("id")))


def last(condition: Column) -> Column:
    """Return the id of the last row that fulfils the condition."""
    return F.max(F.when(condition, F.col("id")))


def lives(events: DataFrame) -> DataFrame:
    """Return a row for each message: how its lives went, and where it is now.

    All columns are numbers and times, above all ids of rows: Spark aggregates these in a hash
    table, but would have to sort the event log for texts, such as the last row's kind. `holders`
    is 0 if each delivery was settled by the consumer or lease that had it.
    """

    # identifies the messages of one priority that one consumer gets; among a million streams, two
    # have the same hash with a probability of 3 in 10^8
    stream = F.xxhash64(*TAKER, F.col("position") % 10)
    kind = F.col("kind")
    is_begin, is_given, is_accepted = (kind.isin(*each) for each in (BEGINS, GIVEN, ACCEPTED))
    is_enqueued = kind == "enqueued"
    is_settlement = kind.isin(*SETTLEMENTS)
    who = holder().cast("bigint")
    return (
        events.filter(F.col("position") > BULK)
        .groupBy(*KEY)
        .agg(
            F.count_if(is_enqueued).alias("enqueued"),
            F.count_if(kind == "scheduled").alias("scheduled"),
            F.count_if(is_accepted).alias("accepted"),
            F.count_if(is_end()).alias("ended"),
            F.count_if(is_given).alias("given"),
            F.count_if(is_settlement).alias("settlements"),
            F.sum(F.when(is_given, who).when(is_settlement, -who)).alias("holders"),
            F.count_if(is_begin & F.col("session").startswith(NAMELESS)).alias("nameless"),
            F.count_if(is_begin & (F.col("session") != "")).alias("named"),
            F.min("at").alias("firstAt"),
            F.max("deliverAt").alias("deliverAt"),
            F.min("id").alias("firstId"),
            F.max("id").alias("lastId"),
            first(is_begin).alias("firstBeginId"),
            last(is_begin).alias("lastBeginId"),
            first(is_enqueued).alias("beganId"),
            last(is_enqueued).alias("enqueuedId"),
            last(is_begin & F.col("reason").startswith(NOT_STORED)).alias("notStoredId"),
            last(is_accepted).alias("acceptedId"),
            last(is_end()).alias("endId"),
            *(
                last(kind == each).alias(f"{each}Id")
                for each in ("leased", "delivered", "modified")
            ),
            first(is_given).alias("giftId"),
            F.min_by(stream, F.when(is_given, F.col("id"))).alias("stream"),
        )
    )


def given_twice(events: DataFrame, sees_from: int) -> DataFrame:
    """Return for each message the first row (`id`) that gave it while a consumer or lease had it.

    Rows with ids below `sees_from` may be missing, so rows on both sides of that id prove nothing.
    """
    own = Window.partitionBy(*KEY).orderBy("id")
    so_far = own.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begins = (F.col("kind") == "enqueued").cast("int")
    return (
        events.withColumn("before", F.lag("kind").over(own))
        .withColumn("beforeBoot", F.lag("boot").over(own))
        .withColumn("beforeId", F.lag("id").over(own))
        .withColumn("open", F.sum(begins - is_end().cast("int")).over(so_far))
        .filter(
            F.col("kind").isin(*GIVEN)
            & (F.col("open") <= 1)
            & (
                (F.col("before") == "leased")
                | ((F.col("before") == "delivered") & (F.col("beforeBoot") == F.col("boot")))
            )
            & ((F.col("beforeId") >= sees_from) | (F.col("id") < sees_from))
        )
        .groupBy(*KEY)
        .agg(F.min("id").alias("id"))
    )
