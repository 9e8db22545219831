"""The verdict of the audit: which messages it judged by each check, and which violate one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from pyspark_amqp.jobs import audit, custody, extent
from pyspark_amqp.jobs.audit import (
    BEFORE,
    ENDED,
    EVERYTHING,
    GONE,
    MISSING,
    NO_LOOK,
    THERE,
    Look,
    Scope,
)
from pyspark_amqp.jobs.extent import Bounds
from pyspark_amqp.jobs.findings import (
    CHECKS,
    DEAD_LETTER,
    DUPLICATE,
    EARLY,
    EXCLUSIVE,
    FIRST,
    HOLDER,
    LOSS,
    ORDER,
    RECORDED,
    WHOLE,
    with_rows,
)
from pyspark_amqp.jobs.lives import is_accepted_once, lives

NOT_JUDGED: Final = (BEFORE, GONE)
"""States in which a message is not judged for loss even if all queues were empty in the end."""


@dataclass(frozen=True)
class Verdict:
    """The result: for each check, how many messages were judged, and how many violate it.

    `no hole` counts rows in place of messages.
    """

    known: Bounds
    messages: int
    open: dict[str, int]
    """The number of messages that have not ended, by `state`."""
    judged: dict[str, int]
    broken: dict[str, int]
    looked: bool = False
    """The contents of the queues were known."""

    @property
    def holds(self) -> bool:
        """Return whether no message violates a check, and no row is missing."""
        return not any(self.broken.values())

    @property
    def is_of_nothing(self) -> bool:
        """Return whether there was no message to be judged."""
        return self.holds and self.messages == 0


def judge(
    events: DataFrame,
    known: Bounds,
    *,
    look: Look = NO_LOOK,
    scope: Scope = EVERYTHING,
) -> tuple[Verdict, DataFrame]:
    """Return the verdict, and the messages that violate a check, a row for each such check."""
    seen = lives(events).filter(scope.takes())
    stated = audit.with_state(events, seen, known, look).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        by_state = _counted(stated, known)
        judged = _judged(by_state, look=look)
        parts = _offenders(events, known, stated, look=look, scope=scope)
        if _sum(by_state, "givenAgain"):
            parts.append(audit.given_to_two(events, stated, known))
        if _sum(by_state, "doubtful"):
            parts.append(custody.accepted_by_another(events, stated))
        if known.moves:
            sent = custody.sent_away(events, known).filter(scope.takes())
            parts.append(custody.never_arrived(events, sent))
        judged |= _judged_apart(events, known, scope)
        found = reduce(DataFrame.unionByName, parts).persist(StorageLevel.MEMORY_AND_DISK)
        counted = {
            each["check"]: each["count"] for each in found.groupBy("check").count().collect()
        }
    finally:
        stated.unpersist()
    counted[WHOLE] = known.missing
    judged[WHOLE] = known.rows + known.missing
    judged[FIRST] += counted.get(FIRST, 0)
    judged[RECORDED] += counted.get(RECORDED, 0)
    verdict = Verdict(
        known=known,
        messages=_sum(by_state, "messages"),
        open={each["state"]: each["messages"] for each in by_state if each["state"] != ENDED},
        judged={check: judged[check] for check in CHECKS},
        broken={check: counted.get(check, 0) for check in CHECKS},
        looked=look.tells,
    )
    return verdict, with_rows(found, events)


def _counted(stated: DataFrame, known: Bounds) -> list[Row]:
    """Return counts of messages by their state.

    A scheduled message has another position, and counts, once it has come into its queue.
    """
    is_clear = ~F.col("isUnclear")
    is_given, is_accepted = F.col("given") > 0, F.col("accepted") > 0
    is_recorded = (F.col("named") > 0) & (F.col("beganId") >= known.sees_from)
    counts: dict[str, Column] = {
        "accepted": is_accepted & is_clear,
        "acceptedOnce": is_accepted & is_clear & is_accepted_once(),
        "given": is_given & is_clear,
        "ordered": is_given & audit.is_in_order_known(),
        "recorded": is_recorded,
        "givenAgain": audit.may_be_given_to_two(),
        "doubtful": custody.may_be_accepted_by_another(),
    }
    return (
        stated.filter((F.col("scheduled") == 0) | (F.col("enqueued") + F.col("ended") > 0))
        .groupBy("state")
        .agg(
            F.count("*").alias("messages"),
            *(F.count_if(condition).alias(name) for name, condition in counts.items()),
        )
        .collect()
    )


def _judged(by_state: list[Row], *, look: Look) -> dict[str, int]:
    """Return how many messages each check has judged, as far as their states say it."""
    known = (ENDED, THERE, MISSING) if look.tells else (ENDED,)
    return {
        **dict.fromkeys(CHECKS, 0),
        LOSS: sum(
            each["messages"]
            for each in by_state
            if each["state"] in known or (look.drained and each["state"] not in NOT_JUDGED)
        ),
        DUPLICATE: _sum(by_state, "accepted"),
        ORDER: _sum(by_state, "ordered"),
        EXCLUSIVE: _sum(by_state, "given"),
        FIRST: _sum(by_state, "acceptedOnce"),
        HOLDER: _sum(by_state, "acceptedOnce"),
        RECORDED: _sum(by_state, "recorded"),
    }


def _judged_apart(events: DataFrame, known: Bounds, scope: Scope) -> dict[str, int]:
    """Return how many messages were judged by the checks that take some rows alone."""
    frames = []
    if known.scheduled:
        frames.append(audit.timed(events, scope).select(F.lit(EARLY).alias("check")))
    if known.moves:
        sent = custody.sent_away(events, known).filter(scope.takes())
        frames.append(sent.select(F.lit(DEAD_LETTER).alias("check")))
    if not frames:
        return {}
    counted = reduce(DataFrame.unionByName, frames).groupBy("check").count().collect()
    return {each["check"]: each["count"] for each in counted}


def _sum(rows: Iterable[Row], name: str) -> int:
    return sum(int(each[name]) for each in rows)


def _offenders(
    events: DataFrame, known: Bounds, stated: DataFrame, *, look: Look, scope: Scope
) -> list[DataFrame]:
    """Return messages that violate a check, of all checks that do not depend on counts."""
    parts = [audit.accepted_again(stated), audit.out_of_order(stated)]
    if look.tells:
        parts.append(audit.lost(stated, drained=look.drained))
    if known.scheduled:
        parts.append(audit.early(events, scope))
        if look.tells:
            parts.append(audit.overdue(events, stated, known, look))
    if known.holes:
        parts.append(extent.holes_of(events, known))
    lacking = custody.gaps(events, known)
    if lacking is not None:
        parts.append(custody.unrecorded(events, lacking.filter(scope.takes())))
    return parts
