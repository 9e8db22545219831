"""The audit: five things that the event log must prove, and the messages that break them.

Pure functions from frames to frames. `events` has the columns of `rows.columns.EVENT_LOG_COLUMNS`.

- no loss: each life that began has ended, or the message is where it should be. Not judged where
  it began before the event log, or before a gap in it, or was not stored and the broker restarted,
  or may have, or waits for a subscriber of a topic who has no name.
- no duplicate: there are no more accepts than lives. Not judged where the first of them may have
  begun before the event log and there is no name: subscribers of a topic share such a place.
- not early: nothing is in a queue, or given, before its delivery time. Not judged over a restart,
  which is another clock, and for messages without an id.
- order: a consumer gets messages of one priority as they came, the first time each is given.
- exclusive: nothing is given while somebody has it. Not judged over a restart, but for leases, and
  among plain subscribers of a topic, who share a name (as above where that cannot be known).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import itemgetter
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

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
"""What the checks have to know of each message, beside its state."""

BY_ID: Final = ["address", "subscription", "messageId"]
"""What a scheduled message is known again by: in its queue it has another position."""

ENDED: Final = "ended"
MISSING: Final = "missing"
UNSEEN: Final = "unseen"

SECOND_LOOK_S: Final = 3.0
"""An expired message is told of when the broker comes by, a second later at most; and rows of
messages that are not durable go with the next commit. So what is missing is looked for again, and
what has just become due is not overdue."""

BLOCK_BITS: Final = 16
"""Ids are counted in blocks of 65,536: a gap is found without sorting the event log."""


@dataclass(frozen=True)
class Bounds:
    """The extent of an event log. `sees_from`: from that id on no row is missing. `boot_from`: from
    that id on, all rows are of the process that wrote the last one."""

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
    """Which messages are judged: those first seen in [since, until), at these addresses."""

    since: datetime | None = None
    until: datetime | None = None
    addresses: tuple[str, ...] = ()

    def takes(self) -> Column:
        """The condition on a frame with `address` and `firstAt`."""
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
    """What is known of the queues beside the event log.

    `waiting` has `address`, `subscription` and `position` of what somebody saw there, when the
    event log's last row was `last`. `topics` are addresses where others wait whom nobody can see.
    `drained`: they were empty in the end and nobody had anything, so all that is open is lost.
    Without either nothing is known, so nothing is lost.
    """

    waiting: DataFrame | None = None
    last: int | None = None
    topics: frozenset[str] = frozenset()
    drained: bool = False

    @property
    def tells(self) -> bool:
        """Whether a loss could be seen."""
        return self.drained or self.waiting is not None


NO_LOOK: Final = Look()


def bounds(events: DataFrame) -> Bounds:
    """Return the extent of an event log, in one pass. Ids have gaps only where rows were trimmed;
    the rows of one process lie together."""
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
            # where in the block is not known, so nothing in it counts as seen from its begin
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
    """Messages of `lives` with a `state`: where each is whose life has not ended.

    `ended`: nothing is open, or nothing can be known of it: it began before a gap, or all that was
    in its queue went at once. `gone`: not stored, and its broker is another. `given`: a consumer or
    a lease has it, as far as the event log tells. `held`: it waits for another try. `there`: it was
    seen in its queue. `moving`: something happened to it since somebody looked. `unseen`: it need
    not have been seen, for it waits at a topic, or was not stored and nothing tells that the broker
    is still the same. `missing`: it should be in its queue; where nobody has looked, nobody knows.
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
    # the event log does not tell whose these are: of a queue, or of several subscribers of a topic
    is_shared = (F.col("subscription") == "") & ~F.col("firstBeginId").eqNullSafe(F.col("firstId"))
    return joined.select(*KEY, *STATED, is_shared.alias("isShared"), state.alias("state"))


def _cannot_be_seen(known: Bounds, look: Look) -> Column:
    """Whether a look into the queues says nothing of a message that it did not find."""
    if look.waiting is None:
        return F.lit(False)
    hidden = (F.col("subscription") == "") & F.col("address").isin(*look.topics)
    # a row behind the look is the only sign of which broker it was that was looked into
    is_same_broker = known.last > (known.last if look.last is None else look.last)
    return hidden | (is_not_stored() & F.lit(not is_same_broker))


def lost(stated: DataFrame, *, drained: bool) -> DataFrame:
    """Messages that have begun, have not ended, and are nowhere."""
    state = F.col("state")
    is_lost = ~state.isin(ENDED, "gone") if drained else state == MISSING
    return _broken(LOSS, stated.filter(is_lost), "lastId", F.lit("it is nowhere"))


def overdue(events: DataFrame, stated: DataFrame, known: Bounds, look: Look) -> DataFrame:
    """Scheduled messages whose time has come, by the event log's last row, and who never came."""
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
    """Messages that were accepted more often than they began."""
    often = stated.filter(
        ~F.col("isShared") & (F.col("accepted") > F.greatest("enqueued", F.lit(1)))
    )
    detail = F.concat("accepted", F.lit(" accepts, enqueued "), "enqueued")
    return _broken(DUPLICATE, often, "acceptedId", detail)


def early(events: DataFrame, scope: Scope) -> DataFrame:
    """The first row of each message that was in a queue, or given, before its delivery time."""
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
    """Messages that a consumer got, the first time, behind one that had come after them.

    By the ids of the rows that began their lives, which are in the order of the queue, whatever
    becomes of positions; of one priority, which is the last digit of a position.
    """
    stream = Window.partitionBy("stream").orderBy("giftId")
    # of a message that began before the event log nothing tells when
    known = stated.filter(F.col("beganId") < F.col("giftId"))
    found = known.withColumn("beforeIt", F.lag("beganId").over(stream)).filter(
        F.col("beforeIt") > F.col("beganId")
    )
    detail = F.concat(F.lit("came in row "), "beganId", F.lit(", given after that of "), "beforeIt")
    return _broken(ORDER, found, "giftId", detail)


def given_to_two(events: DataFrame, stated: DataFrame, known: Bounds) -> DataFrame:
    """Messages that were given while somebody had them. Few are given more than once, so only of
    those the rows are put in order."""
    again = stated.filter(may_be_given_to_two()).select(*KEY)
    found = given_twice(events.join(again, [*KEY], "semi"), known.sees_from)
    return _broken(EXCLUSIVE, found, "id", F.lit("given while somebody had it"))


def may_be_given_to_two() -> Column:
    return ~F.col("isShared") & (F.col("given") > 1)


def _broken(check: str, found: DataFrame, id_: str, detail: Column) -> DataFrame:
    """Messages that break a check; `id` is of the row by which that is seen."""
    return found.select(
        F.lit(check).alias("check"), *KEY, F.col(id_).alias("id"), detail.alias("detail")
    )


def _with_rows(found: DataFrame, events: DataFrame) -> DataFrame:
    """Messages that break a check, with what the rows by which it is seen tell."""
    rows = events.select(
        "id", "at", F.trim(F.concat_ws(" ", "kind", "consumer", "link")).alias("row")
    )
    detail = F.concat("detail", F.lit(" ("), "row", F.lit(")"))
    return found.join(rows, "id").select("check", *KEY, "id", "at", detail.alias("detail"))


def places_to_look(events: DataFrame, known: Bounds, scope: Scope) -> list[tuple[str, str]]:
    """(address, subscription) of messages that should be in their queues."""
    stated = with_state(events, lives(events).filter(scope.takes()), known, NO_LOOK)
    wanted = stated.filter(F.col("state") == MISSING).select("address", "subscription").distinct()
    return sorted((row["address"], row["subscription"]) for row in wanted.collect())


# -- the verdict


@dataclass(frozen=True)
class Verdict:
    """What came out: for each check how many messages were judged, and how many break it."""

    known: Bounds
    messages: int
    open: dict[str, int]
    """How many have not ended, by `state`."""
    judged: dict[str, int]
    broken: dict[str, int]

    @property
    def holds(self) -> bool:
        """Whether no message breaks anything."""
        return not any(self.broken.values())

    @property
    def is_of_nothing(self) -> bool:
        """Whether there was no message to be judged."""
        return self.holds and self.messages == 0


def _offenders(
    events: DataFrame, known: Bounds, stated: DataFrame, *, look: Look, scope: Scope
) -> list[DataFrame]:
    """Messages that break a check, but for those that were given to two."""
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
    """The verdict, and the messages that break a check, a row for each check that they break."""
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
