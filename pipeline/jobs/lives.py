"""What the journal tells of each message: pure functions, journal frames in, frames out.

A message is known by its address, subscription, position and JMSMessageID. That need not be one
message: plain subscribers of a topic have no name, and positions begin anew with a queue. So lives
are counted: a message is lost where fewer lives have ended than begun, never where two rows differ.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

KEY: Final = ("address", "subscription", "position", "messageId")

GIVEN: Final = ("delivered", "leased")
"""A consumer, or a lease, has it."""

ACCEPTED: Final = ("accepted", "settled")
ENDS: Final = (*ACCEPTED, "expired", "deadlettered", "moved", "purged")

NO_TARGET: Final = "no dead-letter node takes it"
"""Why a message is purged whose life `deadlettered` has ended already."""

NOT_STORED: Final = "not stored"
"""Why an enqueued message does not outlive its broker."""

TAKER: Final = ("consumer", "link", "session", "boot")
"""Who has got a message."""

BULK: Final = -1
"""The position of a row that tells of many messages: a queue was deleted, or purged unread."""


def is_end() -> Column:
    """Whether a row ends one life."""
    return F.col("kind").isin(*ENDS) & ~(
        (F.col("kind") == "purged") & (F.col("reason") == NO_TARGET)
    )


def traced(journal: DataFrame) -> DataFrame:
    """Rows of single messages, each with what came before it in the lives of its message.

    `before`, `beforeBoot`, `beforeId`: the row before. `open`: how many lives are under way behind
    this row.
    """
    own = Window.partitionBy(*KEY).orderBy("id")
    so_far = own.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    begins = (F.col("kind") == "enqueued").cast("int")
    return (
        journal.filter(F.col("position") > BULK)
        .withColumn("before", F.lag("kind").over(own))
        .withColumn("beforeBoot", F.lag("boot").over(own))
        .withColumn("beforeId", F.lag("id").over(own))
        .withColumn("open", F.sum(begins - is_end().cast("int")).over(so_far))
    )


def lives(trace: DataFrame, sees_from: int) -> DataFrame:
    """One row for each message of `traced`: how its lives went, and where it is now.

    Rows with ids below `sees_from` may be missing, so a gift across that is no proof of anything.
    """

    def times(condition: Column) -> Column:
        return F.sum(condition.cast("int"))

    kind = F.col("kind")
    is_second = (
        kind.isin(*GIVEN)
        & (F.col("open") <= 1)
        & (
            (F.col("before") == "leased")
            | ((F.col("before") == "delivered") & (F.col("beforeBoot") == F.col("boot")))
        )
        & ((F.col("beforeId") >= sees_from) | (F.col("id") < sees_from))
    )
    return trace.groupBy(*KEY).agg(
        times(kind == "enqueued").alias("enqueued"),
        times(kind == "scheduled").alias("scheduled"),
        times(kind.isin(*ACCEPTED)).alias("accepted"),
        times(is_end()).alias("ended"),
        times(kind.isin(*GIVEN)).alias("given"),
        F.min("at").alias("firstAt"),
        F.max(F.when(kind == "enqueued", F.col("id"))).alias("enqueuedId"),
        F.max_by("reason", F.when(kind == "enqueued", F.col("id"))).alias("enqueuedReason"),
        F.max_by("boot", F.when(kind.isin("enqueued", "scheduled"), F.col("id"))).alias(
            "enqueuedBoot"
        ),
        F.max("deliverAt").alias("deliverAt"),
        F.max("id").alias("lastId"),
        F.max("at").alias("lastAt"),
        F.min_by("kind", "id").alias("firstKind"),
        F.max_by("kind", "id").alias("lastKind"),
        F.max_by("boot", "id").alias("lastBoot"),
        F.max(F.when(kind.isin(*ACCEPTED), F.col("id"))).alias("acceptedId"),
        F.min(F.when(is_second, F.col("id"))).alias("secondId"),
        F.min(F.when(kind == "enqueued", F.col("id"))).alias("beganId"),
        F.min_by(F.struct("id", "at", *TAKER), F.when(kind.isin(*GIVEN), F.col("id"))).alias(
            "gift"
        ),
    )
