"""The audit: five properties that the event log must prove, and the messages that violate them.

Pure functions from frames to frames. `events` has the columns of `rows.columns.EVENT_LOG_COLUMNS`.

- no loss: each life that began has ended, or the message is where it should be. Not judged if it
  began before the event log, or before a gap in it; if it was not stored and the broker restarted,
  or may have; or if it waits for a subscriber of a topic that has no name.
- no duplicate: there are no more accepts than lives. Not judged if the first life may have begun
  before the event log and there is no name: subscribers of a topic share such a place.
- not early: no message is in a queue, or given, before its delivery time. Not judged over a
  restart, which means another clock, and for messages without an id.
- order: a consumer gets messages of one priority in the order of their arrival, the first time each
  is given.
- exclusive: no message is given while a consumer or a lease has it. Not judged over a restart,
  except for leases, and among plain subscribers of a topic, which share a name (as above if that
  cannot be known).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import itemgetter
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pyspark_amqp.jobs.lives import BULK, GIVEN, KEY, given_twice, is_not_stored, lives

LOSS: Final = "no loss"
DUPLICATE: Final = "no duplicate"
EARLY: Final = "not early"
ORDER: Final = "order"
EXCLUSIVE: Final = "exclusive"
CHECKS: Final = (LOSS, DUPLICATE, EARLY, ORDER, EXCLUSIVE)

STATED: Final = (
    *("enqueued", "scheduled", "accepted", "ended", "given", "deliverAt"),
    *("lastId", "acceptedId", "beganId", "giftId", "stream"),
)
"""Columns that the checks need of each message, besides its state."""

BY_ID: Final = ["address", "subscription", "messageId"]
"""Columns that identify a scheduled message: its position changes when it enters its queue."""

ENDED: Final = "ended"
MISSING: Final = "missing"
UNSEEN: Final = "unseen"

SECOND_LOOK_S: Final = 3.0
"""Seconds until a second look, and until a message that has become due is overdue.

The broker reports an expired message up to a second later, and rows of messages that are not
durable are written with the next commit. So missing messages are looked for again.
"""

BLOCK_BITS: Final = 16
"""Bits of an id within a block. Counting ids in blocks of 65,536 finds gaps without sorting."""


@dataclass(frozen=True)
class Bounds:
    """The extent of an event log.

    No row is missing from the id `sees_from` on. All rows from the id `boot_from` on are of the
    process that wrote the last one. `missing`, `scheduled` and `bulks` are numbers of rows.
    """

    rows: int
    first: int
    last: int
    missing: int
    sees_from: int
    boot_from: int
    ends_at: datetime | None
    scheduled: int
    bulks: int


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


def bounds(events: DataFrame) -> Bounds:
    """Return the extent of an event log, in one pass.

    Ids have gaps only if rows were trimmed; the rows of one process lie together.
    """
    blocks = (
        events.groupBy(F.shiftright("id", BLOCK_BITS), "boot")
        .agg(
            F.count("*").alias("rows"),
            F.min("id").alias("first"),
            F.max("id").alias("last"),
            F.max_by("at", "id").alias("at"),
            F.count_if(F.col("kind") == "scheduled").alias("scheduled"),
            F.count_if(F.col("position") == BULK).alias("bulks"),
        )
        .collect()
    )
    if not blocks:
        return Bounds(0, 0, 0, 0, 0, 0, None, 0, 0)
    blocks.sort(key=itemgetter("first"))
    sees_from: int = blocks[0]["first"]
    missing, expected = 0, sees_from
    for each in blocks:
        gap = each["last"] - expected + 1 - each["rows"]
        if gap > 0:
            missing += gap
            # the gap's place in the block is unknown, so rows count as complete only behind the
            # block
            is_before = each["first"] - expected == gap
            sees_from = each["first"] if is_before else each["last"] + 1
        expected = each["last"] + 1
    end = blocks[-1]
    return Bounds(
        rows=sum(each["rows"] for each in blocks),
        first=blocks[0]["first"],
        last=end["last"],
        missing=missing,
        sees_from=sees_from,
        boot_from=min(each["first"] for each in blocks if each["boot"] == end["boot"]),
        ends_at=end["at"],
        scheduled=sum(each["scheduled"] for each in blocks),
        bulks=sum(each["bulks"] for each in blocks),
    )


# -- the five checks


def with_state(events: DataFrame, seen: DataFrame, known: Bounds, look: Look) -> DataFrame:
    """Return messages of `lives` with a `state`: where each message is whose life has not ended.

    `ended`: no life is open, or nothing can be known: it began before a gap, or its whole queue was
    deleted or purged. `gone`: not stored, and its broker process has ended. `given`: a consumer or
    a lease has it, by the event log. `held`: it waits for another attempt. `there`: it was seen in
    its queue. `moving`: it has rows since the look. `unseen`: the look may have missed it, as it
    waits at a topic, or was not stored and nothing proves that the broker has not restarted.
    `missing`: it should be in its queue; without a look, nothing is known.
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
    is_open = (F.col("enqueued") > F.col("ended")) & (begun >= known.sees_from)
    is_now = F.col("lastId") >= known.boot_from
    state = (
        F.when(~is_open | (F.col("bulkId") > begun), F.lit(ENDED))
        .when(is_not_stored() & (F.col("lastBeginId") < known.boot_from), F.lit("gone"))
        .when(is_there, F.lit("there"))
        .when(F.col("lastId") > (known.last if look.last is None else look.last), F.lit("moving"))
        .when(F.col("lastId") == F.col("leasedId"), F.lit("given"))
        .when((F.col("lastId") == F.col("deliveredId")) & is_now, F.lit("given"))
        .when((F.col("lastId") == F.col("modifiedId")) & is_now, F.lit("held"))
        .when(_cannot_be_seen(known, look), F.lit(UNSEEN))
        .otherwise(F.lit(MISSING))
    )
    # The event log does not say if these are of a queue, or of several subscribers of a topic.
    is_shared = (F.col("subscription") == "") & ~F.col("firstBeginId").eqNullSafe(F.col("firstId"))
    return joined.select(*KEY, *STATED, is_shared.alias("isShared"), state.alias("state"))


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
    is_lost = ~state.isin(ENDED, "gone") if drained else state == MISSING
    return _broken(LOSS, stated.filter(is_lost), "lastId", F.lit("it is nowhere"))


def overdue(events: DataFrame, stated: DataFrame, known: Bounds, look: Look) -> DataFrame:
    """Return scheduled messages that were due by the event log's last row and never came."""
    assert known.ends_at is not None, "who has a message has a row"
    due = known.ends_at - timedelta(seconds=0 if look.drained else SECOND_LOOK_S)
    never = stated.filter(
        (F.col("scheduled") > 0)
        & (F.col("enqueued") == 0)
        & (F.col("ended") == 0)
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
    return _broken(LOSS, still, "lastId", F.lit("its delivery time came, and it did not"))


def accepted_again(stated: DataFrame) -> DataFrame:
    """Return messages that were accepted more often than they began."""
    often = stated.filter(
        ~F.col("isShared") & (F.col("accepted") > F.greatest("enqueued", F.lit(1)))
    )
    detail = F.concat("accepted", F.lit(" accepts, enqueued "), "enqueued")
    return _broken(DUPLICATE, often, "acceptedId", detail)


def early(events: DataFrame, scope: Scope) -> DataFrame:
    """Return the first row of each message that was in a queue, or given, before its time."""
    later = (
        events.filter((F.col("kind") == "scheduled") & (F.col("messageId") != ""))
        .groupBy(*BY_ID)
        .agg(
            F.min("deliverAt").alias("due"),
            F.min("id").alias("scheduledId"),
            F.min_by("boot", "id").alias("scheduledBoot"),
        )
    )
    found = (
        events.filter(F.col("kind").isin("enqueued", *GIVEN))
        .join(later, BY_ID)
        .filter(
            (F.col("id") > F.col("scheduledId"))
            & (F.col("boot") == F.col("scheduledBoot"))
            & (F.col("at") < F.col("due"))
        )
        .groupBy(*BY_ID)
        .agg(
            *(F.min_by(name, "id").alias(name) for name in ("position", "due")),
            F.min_by("at", "id").alias("firstAt"),
            F.min("id").alias("firstId"),
        )
        .filter(scope.takes())
    )
    return _broken(EARLY, found, "firstId", F.concat(F.lit("due "), "due"))


def out_of_order(stated: DataFrame) -> DataFrame:
    """Return messages first given to a consumer after a message that had arrived later.

    The ids of the rows that began their lives are in the order of the queue, even if positions
    change. Only messages of one priority, the last digit of a position, are compared.
    """
    stream = Window.partitionBy("stream").orderBy("giftId")
    # nothing shows when a message arrived that began before the event log
    known = stated.filter(F.col("beganId") < F.col("giftId"))
    found = known.withColumn("beforeIt", F.lag("beganId").over(stream)).filter(
        F.col("beforeIt") > F.col("beganId")
    )
    detail = F.concat(F.lit("came in row "), "beganId", F.lit(", given after that of "), "beforeIt")
    return _broken(ORDER, found, "giftId", detail)


def given_to_two(events: DataFrame, stated: DataFrame, known: Bounds) -> DataFrame:
    """Return messages that were given while a consumer or a lease had them.

    Few are given more than once, so only the rows of those are sorted.
    """
    again = stated.filter(may_be_given_to_two()).select(*KEY)
    found = given_twice(events.join(again, [*KEY], "semi"), known.sees_from)
    return _broken(EXCLUSIVE, found, "id", F.lit("given while somebody had it"))


def may_be_given_to_two() -> Column:
    """Return the condition that `given_to_two` has to look at a message's rows."""
    return ~F.col("isShared") & (F.col("given") > 1)


def _broken(check: str, found: DataFrame, id_: str, detail: Column) -> DataFrame:
    """Return messages that violate a check; `id` is of the row that shows it."""
    return found.select(
        F.lit(check).alias("check"), *KEY, F.col(id_).alias("id"), detail.alias("detail")
    )


def _with_rows(found: DataFrame, events: DataFrame) -> DataFrame:
    """Return messages that violate a check, with the time and text of the row that shows it."""
    rows = events.select(
        "id", "at", F.trim(F.concat_ws(" ", "kind", "consumer", "link")).alias("row")
    )
    detail = F.concat("detail", F.lit(" ("), "row", F.lit(")"))
    return found.join(rows, "id").select("check", *KEY, "id", "at", detail.alias("detail"))


def places_to_look(events: DataFrame, known: Bounds, scope: Scope) -> list[tuple[str, str]]:
    """Return (address, subscription) of the messages that should be in their queues."""
    stated = with_state(events, lives(events).filter(scope.takes()), known, NO_LOOK)
    wanted = stated.filter(F.col("state") == MISSING).select("address", "subscription").distinct()
    return sorted((row["address"], row["subscription"]) for row in wanted.collect())


# -- the verdict


@dataclass(frozen=True)
class Verdict:
    """The result: for each check, how many messages were judged, and how many violate it."""

    known: Bounds
    messages: int
    open: dict[str, int]
    """The number of messages that have not ended, by `state`."""
    judged: dict[str, int]
    broken: dict[str, int]

    @property
    def holds(self) -> bool:
        """Return whether no message violates a check."""
        return not any(self.broken.values())

    @property
    def is_of_nothing(self) -> bool:
        """Return whether there was no message to be judged."""
        return self.holds and self.messages == 0


def _offenders(
    events: DataFrame, known: Bounds, stated: DataFrame, *, look: Look, scope: Scope
) -> list[DataFrame]:
    """Return messages that violate a check, other than those given to two consumers."""
    parts = [accepted_again(stated), out_of_order(stated)]
    if look.tells:
        parts.append(lost(stated, drained=look.drained))
    if known.scheduled:
        parts.append(early(events, scope))
        if look.tells:
            parts.append(overdue(events, stated, known, look))
    return parts


def judge(
    events: DataFrame,
    known: Bounds,
    *,
    look: Look = NO_LOOK,
    scope: Scope = EVERYTHING,
) -> tuple[Verdict, DataFrame]:
    """Return the verdict, and the messages that violate a check, a row for each such check."""
    seen = lives(events).filter(scope.takes())
    stated = with_state(events, seen, known, look).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        by_state = (
            stated.filter((F.col("scheduled") == 0) | (F.col("enqueued") + F.col("ended") > 0))
            .groupBy("state")
            .agg(
                F.count("*").alias("messages"),
                F.count_if(F.col("accepted") > 0).alias("accepted"),
                F.count_if(F.col("given") > 0).alias("given"),
                F.count_if(may_be_given_to_two()).alias("givenAgain"),
            )
            .collect()
        )
        parts = _offenders(events, known, stated, look=look, scope=scope)
        if any(each["givenAgain"] for each in by_state):
            parts.append(given_to_two(events, stated, known))
        found = reduce(DataFrame.unionByName, parts).persist(StorageLevel.MEMORY_AND_DISK)
        counted = found.groupBy("check").count().collect()
    finally:
        stated.unpersist()
    totals = {
        name: sum(each[name] for each in by_state) for name in ("messages", "accepted", "given")
    }
    opened = {each["state"]: each["messages"] for each in by_state if each["state"] != ENDED}
    unknown = opened.get(UNSEEN, 0) if look.tells else sum(opened.values())
    broken = {each["check"]: each["count"] for each in counted}
    verdict = Verdict(
        known=known,
        messages=totals["messages"],
        open=opened,
        judged={
            LOSS: totals["messages"] - unknown,
            DUPLICATE: totals["accepted"],
            EARLY: known.scheduled,
            ORDER: totals["given"],
            EXCLUSIVE: totals["given"],
        },
        broken={check: broken.get(check, 0) for check in CHECKS},
    )
    return verdict, _with_rows(found, events)
