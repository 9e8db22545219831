"""The audit's checks of custody: messages are recorded, given, accepted and moved without a break.

Pure functions from frames to frames. Some need facts that older brokers did not record: their rows
are not judged.

- given first: an accepted message was enqueued, and delivered or leased, before. Not judged if its
  first row is not that of its beginning, unless its place in the order of its queue proves that
  this row is missing.
- by its holder: a message is accepted by the consumer or lease that it was given to last.
- dead letter: a message that was dead-lettered, or has expired, comes to the queue that its row
  names. Not judged if that queue has no event log.
- recorded: for each position that a queue has given in one broker process, between the first and
  the last one, there is a message with rows.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pyspark_amqp.jobs.extent import Bounds
from pyspark_amqp.jobs.findings import DEAD_LETTER, FIRST, HOLDER, RECORDED, broken
from pyspark_amqp.jobs.lives import (
    ACCEPTED,
    BEGINS,
    BULK,
    GIVEN,
    KEY,
    MOVES,
    SETTLEMENTS,
    is_accepted_once,
    lives,
    process,
)

TARGET: Final = r"(?s)to queue (.*)$"
"""Pattern of the reason of a row of MOVES: the address that the message was moved to."""

NO_EVENT_LOG: Final = ", which has no event log"
"""The end of such a reason if the target has no rows."""

REASON_MAX: Final = 255
"""Characters at which the broker cuts a reason: one as long may not have the whole address."""

SEQUENCE: Final = ("boot", "session", "priority")
"""Columns that identify messages which a queue has numbered without a gap."""

GAP_MAX: Final = 1_000_000
"""Maximum positions of one gap that are reported, each as a message."""

PRIORITIES: Final = 10
"""A position is the number of a message in its queue and priority, and the priority as a digit."""


# -- given first, by its holder


def may_be_accepted_by_another() -> Column:
    """Return the condition that `accepted_by_another` has to look at a message's rows."""
    is_even = (F.col("given") == F.col("settlements")) & (F.col("holders") == 0)
    return ~F.col("isUnclear") & (F.col("accepted") > 0) & is_accepted_once() & ~is_even


def accepted_by_another(events: DataFrame, stated: DataFrame) -> DataFrame:
    """Return messages accepted by a consumer or lease that did not have them.

    Few have a delivery that was not settled by its consumer, so only the rows of those are sorted.
    """
    doubtful = stated.filter(may_be_accepted_by_another()).select(*KEY)
    own = Window.partitionBy(*KEY, "consumer", "link", process()).orderBy("id")
    so_far = Window.partitionBy(*KEY).orderBy("id").rowsBetween(Window.unboundedPreceding, 0)
    is_given = F.col("kind").isin(*GIVEN)
    found = (
        events.filter(F.col("kind").isin(*GIVEN, *SETTLEMENTS))
        .join(doubtful, [*KEY], "semi")
        .withColumn("before", F.lag("kind").over(own))
        .withColumn("gifts", F.count_if(is_given).over(so_far))
        .filter(F.col("kind").isin(*ACCEPTED))
        .filter(~F.coalesce(F.col("before").isin(*GIVEN), F.lit(False)))
        .groupBy(*KEY)
        .agg(F.min("id").alias("id"), F.min_by("gifts", "id").alias("gifts"))
    )
    was_given = F.col("gifts") > 0
    check = F.when(was_given, F.lit(HOLDER)).otherwise(F.lit(FIRST))
    detail = F.when(was_given, F.lit("another had it")).otherwise(F.lit("it was given to nobody"))
    return broken(check, found, "id", detail)


# -- dead letter


def sent_away(events: DataFrame, known: Bounds) -> DataFrame:
    """Return rows of messages that went to a queue with an event log: its row is the next one."""
    hidden = [hole.first for hole in known.holes]
    reason = F.col("reason")
    return events.filter(
        F.col("kind").isin(*MOVES)
        & reason.contains("to queue ")
        & ~reason.endswith(NO_EVENT_LOG)
        & (F.length(reason) < REASON_MAX)
        & (F.col("id") < known.last)
        & ~(F.col("id") + 1).isin(*hidden)
    ).select(
        *KEY,
        "id",
        F.col("at").alias("firstAt"),
        F.regexp_extract("reason", TARGET, 1).alias("target"),
        (F.col("id") + 1).alias("nextId"),
    )


def never_arrived(events: DataFrame, sent: DataFrame) -> DataFrame:
    """Return messages of `sent_away` that did not come to the queue that their row names."""
    came = events.filter(F.col("kind").isin(*BEGINS)).select(
        F.col("id").alias("cameId"),
        F.col("address").alias("cameTo"),
        F.col("messageId").alias("cameAs"),
    )
    is_there = (
        (F.col("nextId") == F.col("cameId"))
        & (F.col("target") == F.col("cameTo"))
        & (F.col("messageId") == F.col("cameAs"))
    )
    missing = sent.join(came, is_there, "anti")
    return broken(DEAD_LETTER, missing, "id", F.concat(F.lit("it did not come to "), "target"))


# -- recorded


def gaps(events: DataFrame, known: Bounds) -> DataFrame | None:
    """Return positions between those of two messages that no message began at; None for none.

    Each has the `boot` of its queue, the ids of the rows around it, and `firstAt` of the later one.
    A queue gives a position to each message that is enqueued or scheduled.
    """
    begins = events.filter(
        F.col("kind").isin(*BEGINS)
        & (F.col("position") > BULK)
        & (F.col("session") != "")
        & (F.col("id") >= known.sees_from)
    ).select(
        *("id", "at", "address", "subscription", "boot", "session"),
        (F.col("position") % PRIORITIES).alias("priority"),
        F.floor(F.col("position") / PRIORITIES).alias("place"),
    )
    lacking = (
        begins.groupBy(*SEQUENCE)
        .agg(F.count("*").alias("rows"), F.min("place").alias("low"), F.max("place").alias("high"))
        .filter(F.col("high") - F.col("low") + 1 > F.col("rows"))
        .select(*SEQUENCE)
        .collect()
    )
    if not lacking:
        return None
    spark = events.sparkSession
    columns = "boot STRING, session STRING, priority BIGINT"
    wanted = F.broadcast(spark.createDataFrame([tuple(each) for each in lacking], columns))
    own = Window.partitionBy(*SEQUENCE).orderBy("place")
    return (
        begins.join(wanted, [*SEQUENCE], "semi")
        .withColumn("before", F.lag("place").over(own))
        .withColumn("beforeId", F.lag("id").over(own))
        .filter(F.col("place") > F.col("before") + 1)
        .withColumn(
            "lacking",
            F.explode(
                F.sequence(
                    F.col("before") + 1,
                    F.least(F.col("place") - 1, F.col("before") + F.lit(GAP_MAX)),
                )
            ),
        )
        .select(
            *("address", "subscription", "id", "beforeId"),
            (F.col("lacking") * PRIORITIES + F.col("priority")).alias("position"),
            F.col("at").alias("firstAt"),
        )
    )


def unrecorded(events: DataFrame, lacking: DataFrame) -> DataFrame:
    """Return the messages at positions of `gaps`: those with other rows, and those without any."""
    begunless = (
        lives(events)
        .filter((F.col("enqueued") == 0) & (F.col("scheduled") == 0))
        .select("address", "subscription", "position", "messageId", "lastId")
    )
    place = ["address", "subscription", "position"]
    seen = begunless.alias("seen")
    found = (
        lacking.join(seen, place, "left")
        .withColumn("isSeen", F.coalesce(F.col("lastId") > F.col("beforeId"), F.lit(False)))
        .groupBy(*place, "id")
        .agg(
            F.max("isSeen").alias("isSeen"),
            F.max_by("messageId", F.when(F.col("isSeen"), F.col("lastId"))).alias("messageId"),
            F.max(F.when(F.col("isSeen"), F.col("lastId"))).alias("lastId"),
        )
        .withColumn("messageId", F.coalesce("messageId", F.lit("")))
        .withColumn("shownBy", F.coalesce("lastId", "id"))
    )
    is_seen = F.col("isSeen")
    check = F.when(is_seen, F.lit(FIRST)).otherwise(F.lit(RECORDED))
    detail = F.when(is_seen, F.lit("it was never enqueued")).otherwise(
        F.lit("no row tells of this message, but of one behind it")
    )
    return broken(check, found, "shownBy", detail)
