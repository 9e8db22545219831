"""The audit's checks of lives: five properties, and the messages that violate them.

Pure functions from frames to frames. `events` has the columns of `rows.columns.EVENT_LOG_COLUMNS`.
`custody.py` has the other checks, `verdict.py` puts them together.

A message is *unclear* if its rows may be those of several messages, or of a life that began before
the event log: it is of a subscriber of a topic without a name, its first row is not a beginning, or
rows are missing among its own.

- no loss: each life that began has ended, or the message is where it should be. Not judged if it
  began before the event log, or before a hole in it; if it was not stored and the broker restarted,
  or may have; if it waits for a subscriber of a topic that has no name; or if it was in motion, so
  that a look into its queue proves nothing.
- no duplicate: there are no more accepts than lives. Not judged if it is unclear.
- not early: no message is in a queue, or given, before its delivery time. Not judged over a
  restart, which means another clock, for messages without an id, and for those that an operator
  made ready.
- order: a consumer gets messages of one priority in the order of their arrival, the first time each
  is given. Not judged if no row shows when it arrived.
- exclusive: no message is given while a consumer or a lease has it. Not judged over a restart,
  except for leases, and if it is unclear.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pyspark_amqp.jobs.extent import Bounds
from pyspark_amqp.jobs.findings import DUPLICATE, EARLY, EXCLUSIVE, LOSS, ORDER, broken
from pyspark_amqp.jobs.lives import (
    BULK,
    GIVEN,
    HURRIED,
    KEY,
    given_twice,
    is_accepted_once,
    is_not_stored,
    lives,
)

STATED: Final = (
    *("enqueued", "scheduled", "accepted", "ended", "given", "deliverAt"),
    *("settlements", "holders", "named"),
    *("lastId", "acceptedId", "beganId", "giftId", "stream"),
)
"""Columns that the checks need of each message, besides its state."""

BY_ID: Final = ["address", "subscription", "messageId"]
"""Columns that identify a scheduled message: its position changes when it enters its queue."""

ENDED: Final = "ended"
BEFORE: Final = "before"
GONE: Final = "gone"
THERE: Final = "there"
MISSING: Final = "missing"
UNSEEN: Final = "unseen"

SECOND_LOOK_S: Final = 3.0
"""Seconds until a second look, and until a message that has become due is overdue.

The broker reports an expired message up to a second later, and rows of messages that are not
durable are written with the next commit. So missing messages are looked for again.
"""


@dataclass(frozen=True)
class Scope:
    """The messages to judge: those first seen in [since, until), at `addresses` (empty: any)."""

    since: datetime | None = None
    until: datetime | None = None
    addresses: tuple[str, ...] = ()

    def takes(self) -> Column:
        """Return the condition on a frame with `address` and `firstAt`."""
        wanted = F.lit(True)
        if self.since is not None:
            wanted = wanted & (F.col("firstAt") >= F.lit(self.since))
        if self.until is not None:
            wanted = wanted & (F.col("firstAt") < F.lit(self.until))
        if self.addresses:
            wanted = wanted & F.col("address").isin(*self.addresses)
        return wanted


EVERYTHING: Final = Scope()


@dataclass(frozen=True)
class Look:
    """The contents of the queues, known apart from the event log.

    `waiting` has `address`, `subscription` and `position` of messages that were seen in queues,
    when the event log's last row was `last`. `topics` are addresses at which other messages may
    wait that cannot be seen. `drained` says that queues were empty in the end and no consumer had a
    message, so each open message is lost. Without either nothing is known, so nothing is lost.
    """

    waiting: DataFrame | None = None
    last: int | None = None
    topics: frozenset[str] = frozenset()
    drained: bool = False

    @property
    def tells(self) -> bool:
        """Return whether a loss can be seen."""
        return self.drained or self.waiting is not None


NO_LOOK: Final = Look()


# -- the five checks


def with_state(events: DataFrame, seen: DataFrame, known: Bounds, look: Look) -> DataFrame:
    """Return messages of `lives` with a `state`: where each message is whose life has not ended.

    `ended`: no life is open, or its whole queue was deleted or purged. `gone`: not stored, and its
    broker process has ended. `there`: it was seen in its queue. `before`: it began before the event
    log, or before a hole, which may have its end. `moving`: it has rows since the look. `given`: a
    consumer or a lease has it, by the event log. `held`: it waits for another attempt. `unseen`:
    the look may have missed it, as it waits at a topic, or was not stored and nothing proves that
    the broker has not restarted. `missing`: it should be in its queue; without a look, nothing is
    known.
    """
    joined = seen.withColumn("bulkId", F.lit(None).cast("bigint"))
    if known.bulks:
        bulk = (
            events.filter(F.col("position") == BULK)
            .groupBy("address", "subscription")
            .agg(F.max("id").alias("bulkId"))
        )
        joined = seen.join(F.broadcast(bulk), ["address", "subscription"], "left")
    is_there = F.lit(None).cast("boolean")
    if look.waiting is not None:
        there = look.waiting.select(
            "address",
            F.coalesce("subscription", F.lit("")).alias("subscription"),
            "position",
            F.lit(True).alias("isThere"),
        ).distinct()
        joined = joined.join(there, ["address", "subscription", "position"], "left")
        is_there = F.col("isThere")
    begun = F.coalesce("enqueuedId", "lastId")
    has_begun = (F.col("enqueued") > F.col("ended")) & (begun >= known.sees_from)
    is_now = F.col("lastId") >= known.boot_from
    state = (
        F.when(_has_ended() | (F.col("bulkId") > begun), F.lit(ENDED))
        .when(is_not_stored() & (F.col("lastBeginId") < known.boot_from), F.lit(GONE))
        .when(is_there, F.lit(THERE))
        .when(~has_begun, F.lit(BEFORE))
        .when(F.col("lastId") > (known.last if look.last is None else look.last), F.lit("moving"))
        .when(F.col("lastId") == F.col("leasedId"), F.lit("given"))
        .when((F.col("lastId") == F.col("deliveredId")) & is_now, F.lit("given"))
        .when((F.col("lastId") == F.col("modifiedId")) & is_now, F.lit("held"))
        .when(_cannot_be_seen(known, look), F.lit(UNSEEN))
        .otherwise(F.lit(MISSING))
    )
    is_whole = (F.col("firstId") >= known.sees_from) | (F.col("lastId") < known.hole_from)
    is_clear = is_whole & F.col("firstBeginId").eqNullSafe(F.col("firstId"))
    is_unclear = ~is_clear | (F.col("nameless") > 0)
    return joined.select(*KEY, *STATED, is_unclear.alias("isUnclear"), state.alias("state"))


def _has_ended() -> Column:
    """Return the condition that no life of a message of `lives` is open.

    A queue has one message at a place. So behind an end, a life without an end of its own has ended
    with an earlier queue, or an earlier broker.
    """
    is_even = (F.col("enqueued") <= F.col("ended")) & (F.col("ended") > 0)
    is_of_one = (F.col("subscription") != "") | ((F.col("named") > 0) & (F.col("nameless") == 0))
    return is_even | (is_of_one & (F.col("endId") > F.col("lastBeginId")))


def _cannot_be_seen(known: Bounds, look: Look) -> Column:
    """Return the condition that a look proves nothing about a message that it did not find."""
    if look.waiting is None:
        return F.lit(False)
    hidden = (F.col("subscription") == "") & F.col("address").isin(*look.topics)
    # a row written behind the look is the only proof that the look was at the same broker process
    is_same_broker = known.last > (known.last if look.last is None else look.last)
    return hidden | (is_not_stored() & F.lit(not is_same_broker))


def lost(stated: DataFrame, *, drained: bool) -> DataFrame:
    """Return messages that have begun, have not ended, and are nowhere."""
    state = F.col("state")
    is_lost = ~state.isin(ENDED, GONE, BEFORE) if drained else state == MISSING
    return broken(LOSS, stated.filter(is_lost), "lastId", F.lit("it is nowhere"))


def overdue(events: DataFrame, stated: DataFrame, known: Bounds, look: Look) -> DataFrame:
    """Return scheduled messages that were due by the event log's last row and never came."""
    assert known.ends_at is not None, "who has a message has a row"
    due = known.ends_at - timedelta(seconds=0 if look.drained else SECOND_LOOK_S)
    never = stated.filter(
        (F.col("scheduled") > 0)
        & (F.col("enqueued") == 0)
        & (F.col("ended") == 0)
        & ~F.col("state").isin(ENDED, GONE)
        & (F.col("messageId") != "")
        & (F.col("lastId") >= known.sees_from)
        & (F.col("deliverAt") < F.lit(due))
    )
    came = (
        events.filter(F.col("kind") == "enqueued")
        .join(never.select(*BY_ID).distinct(), BY_ID, "semi")
        .groupBy(*BY_ID)
        .agg(F.max("id").alias("cameId"))
    )
    still = never.join(came, BY_ID, "left").filter(
        F.col("cameId").isNull() | (F.col("cameId") < F.col("lastId"))
    )
    return broken(LOSS, still, "lastId", F.lit("its delivery time came, and it did not"))


def accepted_again(stated: DataFrame) -> DataFrame:
    """Return messages that were accepted more often than they began."""
    often = stated.filter(~F.col("isUnclear") & ~is_accepted_once())
    detail = F.concat("accepted", F.lit(" accepts, enqueued "), "enqueued")
    return broken(DUPLICATE, often, "acceptedId", detail)


def _due(events: DataFrame) -> DataFrame:
    """Return the messages with an id that were scheduled, each with its first delivery time.

    Those that an operator made ready before it are left out.
    """
    hurried = events.filter((F.col("kind") == "enqueued") & F.col("reason").endswith(HURRIED))
    return (
        events.filter((F.col("kind") == "scheduled") & (F.col("messageId") != ""))
        .groupBy(*BY_ID)
        .agg(
            F.min("deliverAt").alias("due"),
            F.min("id").alias("scheduledId"),
            F.min("at").alias("scheduledAt"),
            F.min_by("boot", "id").alias("scheduledBoot"),
        )
        .join(hurried.select(*BY_ID).distinct(), BY_ID, "anti")
    )


def _come(events: DataFrame) -> DataFrame:
    """Return the rows of scheduled messages that are in their queue, or given."""
    return (
        events.filter(F.col("kind").isin("enqueued", *GIVEN))
        .join(_due(events), BY_ID)
        .filter(F.col("id") > F.col("scheduledId"))
    )


def timed(events: DataFrame, scope: Scope) -> DataFrame:
    """Return the scheduled messages that `early` can judge: they did not come after a restart."""
    came = _come(events).groupBy(*BY_ID).agg(F.min_by("boot", "id").alias("cameBoot"))
    due = _due(events).withColumn("firstAt", F.col("scheduledAt")).filter(scope.takes())
    is_judged = F.col("cameBoot").isNull() | (F.col("cameBoot") == F.col("scheduledBoot"))
    return due.join(came, BY_ID, "left").filter(is_judged)


def early(events: DataFrame, scope: Scope) -> DataFrame:
    """Return the first row of each message that was in a queue, or given, before its time."""
    found = (
        _come(events)
        .filter((F.col("boot") == F.col("scheduledBoot")) & (F.col("at") < F.col("due")))
        .groupBy(*BY_ID)
        .agg(
            *(F.min_by(name, "id").alias(name) for name in ("position", "due")),
            F.min_by("at", "id").alias("firstAt"),
            F.min("id").alias("firstId"),
        )
        .filter(scope.takes())
    )
    return broken(EARLY, found, "firstId", F.concat(F.lit("due "), "due"))


def out_of_order(stated: DataFrame) -> DataFrame:
    """Return messages first given to a consumer after a message that had arrived later.

    The ids of the rows that began their lives are in the order of the queue, even if positions
    change. Only messages of one priority, the last digit of a position, are compared.
    """
    stream = Window.partitionBy("stream").orderBy("giftId")
    found = (
        stated.filter(is_in_order_known())
        .withColumn("beforeIt", F.lag("beganId").over(stream))
        .filter(F.col("beforeIt") > F.col("beganId"))
    )
    detail = F.concat(F.lit("came in row "), "beganId", F.lit(", given after that of "), "beforeIt")
    return broken(ORDER, found, "giftId", detail)


def is_in_order_known() -> Column:
    """Return the condition that it is known when a message arrived that was given.

    It is not if it began before the event log, or if several messages without an id had its place.
    """
    return (F.col("beganId") < F.col("giftId")) & (F.col("enqueued") == 1)


def given_to_two(events: DataFrame, stated: DataFrame, known: Bounds) -> DataFrame:
    """Return messages that were given while a consumer or a lease had them.

    Few are given more than once, so only the rows of those are sorted.
    """
    again = stated.filter(may_be_given_to_two()).select(*KEY)
    found = given_twice(events.join(again, [*KEY], "semi"), known.sees_from)
    return broken(EXCLUSIVE, found, "id", F.lit("given while somebody had it"))


def may_be_given_to_two() -> Column:
    """Return the condition that `given_to_two` has to look at a message's rows."""
    return ~F.col("isUnclear") & (F.col("given") > 1)


def places_to_look(events: DataFrame, known: Bounds, scope: Scope) -> list[tuple[str, str]]:
    """Return (address, subscription) of the messages that should be in their queues."""
    stated = with_state(events, lives(events).filter(scope.takes()), known, NO_LOOK)
    wanted = stated.filter(F.col("state") == MISSING).select("address", "subscription").distinct()
    return sorted((row["address"], row["subscription"]) for row in wanted.collect())
