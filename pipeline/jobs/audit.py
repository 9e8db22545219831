"""The audit: five things that the journal must prove, and the messages that break them.

Pure functions from frames to frames. `journal` has the columns of `pipeline.columns.JOURNAL`.

- no loss: each life that began has ended, or the message is where it should be. Not judged where
  it began before the journal, or before a gap in it, or was not stored and the broker restarted,
  or may have, or waits for a subscriber of a topic who has no name.
- no duplicate: there are no more accepts than lives. Not judged where the first of them may have
  begun before the journal and there is no name: subscribers of a topic share such a place.
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
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from pipeline.jobs.lives import BULK, GIVEN, KEY, NOT_STORED, TAKER, lives, traced

LOSS: Final = "no loss"
DUPLICATE: Final = "no duplicate"
EARLY: Final = "not early"
ORDER: Final = "order"
EXCLUSIVE: Final = "exclusive"
CHECKS: Final = (LOSS, DUPLICATE, EARLY, ORDER, EXCLUSIVE)

ENDED: Final = "ended"
MISSING: Final = "missing"
UNSEEN: Final = "unseen"

SECOND_LOOK_S: Final = 3.0
"""An expired message is told of when the broker comes by, a second later at most; and rows of
messages that are not durable go with the next commit. So what is missing is looked for again, and
what has just become due is not overdue."""

BLOCK: Final = 65_536
"""Ids are counted in blocks of so many: a gap is found without sorting the journal."""


@dataclass(frozen=True)
class Bounds:
    """What there is of a journal. `sees_from`: from that id on no row is missing."""

    rows: int
    first: int
    last: int
    missing: int
    sees_from: int
    boot: str
    ends_at: datetime | None
    scheduled: int

    @property
    def has_scheduled(self) -> bool:
        """Whether any message had a delivery time."""
        return self.scheduled > 0


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
    """What is known of the queues beside the journal.

    `waiting` has `address`, `subscription` and `position` of what somebody saw there, when the
    journal's last row was `last`. `topics` are addresses where others wait whom nobody can see.
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


def bounds(journal: DataFrame) -> Bounds:
    """Look through the whole journal once. Ids have no gaps but where rows were trimmed."""
    blocks = (
        journal.groupBy(F.floor(F.col("id") / BLOCK).alias("block"))
        .agg(
            F.count("*").alias("rows"),
            F.min("id").alias("first"),
            F.max("id").alias("last"),
            F.max_by("boot", "id").alias("boot"),
            F.max_by("at", "id").alias("at"),
            F.sum((F.col("kind") == "scheduled").cast("int")).alias("scheduled"),
        )
        .orderBy("block")
        .collect()
    )
    if not blocks:
        return Bounds(0, 0, 0, 0, 0, "", None, 0)
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
        boot=end["boot"],
        ends_at=end["at"],
        scheduled=sum(each["scheduled"] for each in blocks),
    )


# -- the five checks


def with_state(journal: DataFrame, seen: DataFrame, known: Bounds, look: Look) -> DataFrame:
    """Messages of `lives` with a `state`: where each is whose life has not ended.

    `ended`: nothing is open, or nothing can be known of it: it began before a gap, or all that was
    in its queue went at once. `gone`: not stored, and its broker is another. `given`: a consumer or
    a lease has it, as far as the journal tells. `held`: it waits for another try. `there`: it was
    seen in its queue. `moving`: something happened to it since somebody looked. `unseen`: it need
    not have been seen, for it waits at a topic, or was not stored and nothing tells that the broker
    is still the same. `missing`: it should be in its queue; where nobody has looked, nobody knows.
    """
    bulk = (
        journal.filter(F.col("position") == BULK)
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
    is_now = F.col("lastBoot") == known.boot
    state = (
        F.when(~is_open | (F.col("bulkId") > begun), F.lit(ENDED))
        .when(
            (F.col("enqueuedReason") == NOT_STORED) & (F.col("enqueuedBoot") != known.boot),
            F.lit("gone"),
        )
        .when(is_there, F.lit("there"))
        .when(F.col("lastId") > (known.last if look.last is None else look.last), F.lit("moving"))
        .when(F.col("lastKind") == "leased", F.lit("given"))
        .when((F.col("lastKind") == "delivered") & is_now, F.lit("given"))
        .when((F.col("lastKind") == "modified") & is_now, F.lit("held"))
        .when(_cannot_be_seen(known, look), F.lit(UNSEEN))
        .otherwise(F.lit(MISSING))
    )
    return joined.withColumn("state", state).drop("bulkId", "isThere")


def _cannot_be_seen(known: Bounds, look: Look) -> Column:
    """Whether a look into the queues says nothing of a message that it did not find."""
    if look.waiting is None:
        return F.lit(False)
    hidden = (F.col("subscription") == "") & F.col("address").isin(*look.topics)
    # a row behind the look is the only sign of which broker it was that was looked into
    is_same_broker = known.last > (known.last if look.last is None else look.last)
    return hidden | ((F.col("enqueuedReason") == NOT_STORED) & F.lit(not is_same_broker))


def overdue(journal: DataFrame, seen: DataFrame, known: Bounds, look: Look) -> DataFrame:
    """Scheduled messages whose time has come, by the journal's last row, and who never came."""
    assert known.ends_at is not None, "who has a message has a row"
    due = known.ends_at - timedelta(seconds=0 if look.drained else SECOND_LOOK_S)
    never = seen.filter(
        (F.col("scheduled") > 0)
        & (F.col("enqueued") == 0)
        & (F.col("ended") == 0)
        & (F.col("messageId") != "")
        & (F.col("lastId") >= known.sees_from)
        & (F.col("deliverAt") < F.lit(due))
    )
    came = (
        journal.filter(F.col("kind") == "enqueued")
        .select("address", "subscription", "messageId", F.col("id").alias("cameId"))
        .join(never.select("address", "messageId").distinct(), ["address", "messageId"], "semi")
    )
    return (
        never.join(came, ["address", "subscription", "messageId"], "left")
        .groupBy(*never.columns)
        .agg(F.max("cameId").alias("cameId"))
        .filter(F.col("cameId").isNull() | (F.col("cameId") < F.col("lastId")))
        .drop("cameId")
    )


def early(journal: DataFrame) -> DataFrame:
    """The first row of each message that was in a queue, or given, before its delivery time."""
    later = (
        journal.filter((F.col("kind") == "scheduled") & (F.col("messageId") != ""))
        .groupBy("address", "subscription", "messageId")
        .agg(
            F.min("deliverAt").alias("due"),
            F.min("id").alias("scheduledId"),
            F.min_by("boot", "id").alias("scheduledBoot"),
        )
    )
    seen = journal.filter(F.col("kind").isin("enqueued", *GIVEN)).drop("deliverAt")
    return (
        seen.join(F.broadcast(later), ["address", "subscription", "messageId"])
        .filter(
            (F.col("id") > F.col("scheduledId"))
            & (F.col("boot") == F.col("scheduledBoot"))
            & (F.col("at") < F.col("due"))
        )
        .groupBy("address", "subscription", "messageId")
        .agg(
            *(F.min_by(name, "id").alias(name) for name in ("position", "at", "due")),
            F.min("id").alias("firstId"),
        )
        .withColumnRenamed("firstId", "id")
    )


def out_of_order(seen: DataFrame) -> DataFrame:
    """Messages that a consumer got, the first time, behind one that had come after them.

    By the ids of the rows that began their lives, which are in the order of the queue, whatever
    becomes of positions; of one priority, which is the last digit of a position.
    """
    taker = [F.col(f"gift.{name}") for name in TAKER]
    consumer = Window.partitionBy(
        "address", "subscription", *taker, F.col("position") % 10
    ).orderBy("gift.id")
    # of a message that began before the journal nothing tells when
    known = seen.filter(F.col("beganId") < F.col("gift.id"))
    return known.withColumn("beforeIt", F.lag("beganId").over(consumer)).filter(
        F.col("beforeIt") > F.col("beganId")
    )


def faults(stated: DataFrame, look: Look) -> DataFrame:
    """What is wrong with the lives of messages; `stated` is of `with_state`."""
    lost = F.col("state") == MISSING if look.tells else F.lit(False)
    if look.drained:
        lost = ~F.col("state").isin(ENDED, "gone")
    # the journal does not tell whose these are: of a queue, or of several subscribers of a topic
    is_shared = (F.col("subscription") == "") & ~F.col("firstKind").isin("enqueued", "scheduled")
    found = F.array_compact(
        F.array(
            F.when(lost, _fault(LOSS, "lastId", F.concat(F.lit("its last row: "), "lastKind"))),
            F.when(
                ~is_shared & (F.col("accepted") > F.greatest("enqueued", F.lit(1))),
                _fault(
                    DUPLICATE,
                    "acceptedId",
                    F.concat("accepted", F.lit(" accepts, enqueued "), "enqueued"),
                ),
            ),
            F.when(
                ~is_shared & F.col("secondId").isNotNull(),
                _fault(EXCLUSIVE, "secondId", F.lit("given while somebody had it")),
            ),
        )
    )
    told = stated.withColumn("fault", F.explode(found))
    return told.select("fault.check", *KEY, "fault.id", F.col("lastAt").alias("at"), "fault.detail")


def _fault(check: str, id_: str, detail: Column) -> Column:
    return F.struct(F.lit(check).alias("check"), F.col(id_).alias("id"), detail.alias("detail"))


def offenders(
    journal: DataFrame,
    known: Bounds,
    *,
    look: Look = NO_LOOK,
    scope: Scope = EVERYTHING,
) -> DataFrame:
    """All messages that break a check, one row for each check that they break."""
    seen = lives(traced(journal), known.sees_from).filter(scope.takes())
    return _offenders(journal, known, with_state(journal, seen, known, look), look, scope)


def _offenders(
    journal: DataFrame, known: Bounds, stated: DataFrame, look: Look, scope: Scope
) -> DataFrame:
    parts = [
        faults(stated, look),
        _scoped(
            out_of_order(stated).select(*KEY, "gift.*", "beganId", "beforeIt"),
            scope,
            ORDER,
            F.concat(
                *(F.lit("came in row "), "beganId", F.lit(", given after that of row ")),
                *("beforeIt", F.lit(" to "), "consumer", F.lit(" "), "link"),
            ),
        ),
    ]
    if known.has_scheduled:
        parts.append(_scoped(early(journal), scope, EARLY, F.concat(F.lit("due "), "due")))
        if look.tells:
            never = overdue(journal, stated, known, look).withColumnsRenamed(
                {"lastId": "id", "lastAt": "at"}
            )
            parts.append(
                _scoped(never, scope, LOSS, F.lit("its delivery time came, and it did not"))
            )
    return reduce(DataFrame.unionByName, parts)


def _scoped(frame: DataFrame, scope: Scope, check: str, detail: Column) -> DataFrame:
    wanted = frame.withColumn("firstAt", F.col("at")).filter(scope.takes())
    return wanted.select(F.lit(check).alias("check"), *KEY, "id", "at", detail.alias("detail"))


def places_to_look(journal: DataFrame, known: Bounds, scope: Scope) -> list[tuple[str, str]]:
    """(address, subscription) of messages that should be in their queues."""
    seen = lives(traced(journal), known.sees_from).filter(scope.takes())
    stated = with_state(journal, seen, known, NO_LOOK)
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


def judge(
    journal: DataFrame,
    known: Bounds,
    *,
    look: Look = NO_LOOK,
    scope: Scope = EVERYTHING,
) -> tuple[Verdict, DataFrame]:
    """The verdict, and the offenders, who stay at hand until they are unpersisted."""
    seen = lives(traced(journal), known.sees_from).filter(scope.takes())
    stated = with_state(journal, seen, known, look).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        found = _offenders(journal, known, stated, look, scope)
        found = found.persist(StorageLevel.MEMORY_AND_DISK)
        counted = found.groupBy("check").agg(F.count("*").alias("n")).collect()
        by_state = (
            stated.filter((F.col("scheduled") == 0) | (F.col("enqueued") + F.col("ended") > 0))
            .groupBy("state")
            .agg(
                F.count("*").alias("messages"),
                F.sum((F.col("accepted") > 0).cast("int")).alias("accepted"),
                F.sum((F.col("given") > 0).cast("int")).alias("given"),
            )
            .collect()
        )
    finally:
        stated.unpersist()
    totals = {
        name: sum(each[name] for each in by_state) for name in ("messages", "accepted", "given")
    }
    opened = {each["state"]: each["messages"] for each in by_state if each["state"] != ENDED}
    unknown = opened.get(UNSEEN, 0) if look.tells else sum(opened.values())
    broken = {each["check"]: each["n"] for each in counted}
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
    return verdict, found
